package emulated

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
)

//go:embed *.cuh
var files embed.FS

// ErrNoCompiler says that this machine has no C compiler.
var ErrNoCompiler = errors.New("there is no C compiler: install gcc or clang")

// compilers are what is looked for, in this order.
var compilers = []string{"cc", "gcc", "clang"}

// Compile makes the program of the emulated device in a folder and returns its path. It returns ErrNoCompiler where
// there is none, and the compiler's own words where it refuses.
func Compile(folder string) (string, error) {
	var compiler string
	for _, name := range compilers {
		if path, err := exec.LookPath(name); err == nil {
			compiler = path
			break
		}
	}
	if compiler == "" {
		return "", ErrNoCompiler
	}
	source, err := program()
	if err != nil {
		return "", err
	}
	from, to := filepath.Join(folder, "device.c"), filepath.Join(folder, "device")
	if err := os.WriteFile(from, []byte(source), 0o600); err != nil {
		return "", err
	}
	// Without contraction: where a device has a multiply-add, the processor rounds twice, on every machine.
	said, err := exec.Command(compiler, "-std=gnu11", "-O2", "-ffp-contract=off", "-Wall", "-Werror=implicit",
		"-Wno-unknown-pragmas", "-Wno-unused", "-o", to, from, "-lm").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile kernels for the processor: %w\n%s", err, said)
	}
	return to, nil
}

// names are all kernels, in the order of the program's table.
func names() []string { return append(kernel.Names(), kernel.MatrixNames()...) }

// program is the emulation, the kernels, their table and what takes orders.
func program() (string, error) {
	var b strings.Builder
	head, err := files.ReadFile("emulation.cuh")
	if err != nil {
		return "", err
	}
	tail, err := files.ReadFile("main.cuh")
	if err != nil {
		return "", err
	}
	b.Write(head)
	b.WriteString(kernel.WholeSource())
	b.WriteString("static const struct { const char *name; size_t size; void (*launch)(const void *); } kernels[] = {\n")
	for _, name := range names() {
		fmt.Fprintf(&b, "  {\"%s\", %s_size, %s_launch},\n", name, name, name)
	}
	b.WriteString("};\n")
	b.Write(tail)
	return b.String(), nil
}
