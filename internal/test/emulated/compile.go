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
func Compile(folder string) (string, error) { return compile(folder, "device", "main.cuh") }

// CompileLibrary makes a library in place of CUDA's driver and cuBLAS, whose device is the processor. It returns the
// folder that LD_LIBRARY_PATH must name when a program starts that uses the library. It returns the errors of Compile.
// The head of library.cuh says what a process may ask of it.
func CompileLibrary(folder string) (string, error) {
	const cuda, blas = "libcuda.so.1", "libcublas.so.13"
	_, err := compile(folder, cuda, "library.cuh", "-shared", "-fPIC", "-pthread", "-Wl,-Bsymbolic")
	if err == nil {
		err = os.Symlink(cuda, filepath.Join(folder, blas)) // one library by two names
	}
	return folder, err
}

// compile makes the emulation with what takes its orders.
func compile(folder, name, orders string, options ...string) (string, error) {
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
	source, err := program(orders)
	if err != nil {
		return "", err
	}
	from, to := filepath.Join(folder, "device.c"), filepath.Join(folder, name)
	if err := os.WriteFile(from, []byte(source), 0o600); err != nil {
		return "", err
	}
	// Without contraction: where a device has a multiply-add, the processor rounds twice, on every machine.
	options = append(options, "-std=gnu11", "-O2", "-ffp-contract=off", "-Wall", "-Werror=implicit",
		"-Wno-unknown-pragmas", "-Wno-unused", "-o", to, from, "-lm")
	output, err := exec.Command(compiler, options...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile kernels for the processor: %w\n%s", err, output)
	}
	return to, nil
}

// names are all kernels, in the order of the program's table.
func names() []string { return append(kernel.Names(), kernel.MatrixNames()...) }

// program is the emulation, the kernels, their table and what takes orders.
func program(orders string) (string, error) {
	var b strings.Builder
	var texts [3][]byte
	for i, name := range []string{"emulation.cuh", "work.cuh", orders} {
		text, err := files.ReadFile(name)
		if err != nil {
			return "", err
		}
		texts[i] = text
	}
	b.Write(texts[0])
	b.WriteString(kernel.WholeSource())
	b.WriteString("static const struct { const char *name; size_t size; void (*launch)(const void *); } kernels[] = {\n")
	for _, name := range names() {
		fmt.Fprintf(&b, "  {\"%s\", %s_size, %s_launch},\n", name, name, name)
	}
	b.WriteString("};\n")
	b.Write(texts[1])
	b.Write(texts[2])
	return b.String(), nil
}
