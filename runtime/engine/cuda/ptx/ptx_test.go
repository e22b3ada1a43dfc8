package ptx_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/cuda/ptx"
)

// texts are what was compiled, each with the sources that it is of, its kernels, and the devices that it is for.
func texts() map[string]compiled {
	return map[string]compiled{
		"kernels": {ptx.Text(), kernel.Hash(), kernel.Names(), []string{"sm_70", "sm_80", "sm_90"}},
		"matrix":  {ptx.Matrix(), kernel.MatrixHash(), kernel.MatrixNames(), []string{"sm_80", "sm_90"}},
	}
}

type compiled struct {
	text, hash string
	names      []string
	devices    []string
}

func TestTheTextIsOfTheSources(t *testing.T) {
	for name, c := range texts() {
		if ptx.Of(c.text) != c.hash {
			t.Errorf("%s: the kernels have changed: scripts/cuda-deps.sh and then go generate ./runtime/engine/cuda/ptx", name)
		}
		have := ptx.Arguments(c.text)
		for _, name := range c.names {
			if have[name] == 0 {
				t.Errorf("the text has no kernel %s", name)
			}
		}
		if len(have) != len(c.names) {
			t.Errorf("%s: %d kernels, want %d", name, len(have), len(c.names))
		}
		if regexp.MustCompile(`\b(atom|red)\.`).MatchString(c.text) {
			t.Errorf("%s: a kernel has an atomic operation", name)
		}
	}
	for _, form := range []string{"m16n8k8.row.col.f32.tf32.tf32.f32", "m16n8k16.row.col.f32.bf16.bf16.f32"} {
		if !strings.Contains(ptx.Matrix(), "mma.sync.aligned."+form) {
			t.Errorf("no kernel multiplies by %s", form)
		}
	}
}

// The bounds of a block of 256 threads: of more registers two blocks would not fit beside each other on a
// multiprocessor, and 48 KB is what a block gets of shared memory without asking.
const (
	mostRegisters = 128
	mostShared    = 48 << 10
)

// What ptxas -v tells of a kernel.
var (
	used    = regexp.MustCompile(`Used (\d+) registers(.*)`)
	shared  = regexp.MustCompile(`(\d+) bytes smem`)
	spilled = regexp.MustCompile(`[1-9]\d* bytes spill`)
)

// What was compiled is accepted for the devices that there are, and each kernel leaves room for a second block.
func TestTheTextAssembles(t *testing.T) {
	assembler := os.Getenv("DISDEL_TEST_PTXAS")
	if assembler == "" {
		t.Skip("left out for want of ptxas, which DISDEL_TEST_PTXAS names: go generate brings it and runs this")
	}
	for name, c := range texts() {
		from := filepath.Join(t.TempDir(), name+".ptx")
		if err := os.WriteFile(from, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, architecture := range c.devices {
			said, err := exec.Command(assembler, "-v", "-arch="+architecture, "-o", os.DevNull, from).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", architecture, err, said)
			}
			assembled(t, architecture, string(said), len(c.names))
		}
	}
}

// assembled holds what ptxas tells of each of so many kernels against the bounds.
func assembled(t *testing.T, architecture, said string, kernels int) {
	t.Helper()
	found := used.FindAllStringSubmatch(said, -1)
	if len(found) != kernels {
		t.Errorf("%s: ptxas tells of %d kernels, want %d\n%s", architecture, len(found), kernels, said)
	}
	for _, m := range found {
		registers, _ := strconv.Atoi(m[1])
		bytes := 0
		if s := shared.FindStringSubmatch(m[2]); s != nil {
			bytes, _ = strconv.Atoi(s[1])
		}
		if registers > mostRegisters || bytes > mostShared {
			t.Errorf("%s: a kernel uses %d registers and %d bytes of shared memory", architecture, registers, bytes)
		}
	}
	if spilled.MatchString(said) {
		t.Errorf("%s: registers are spilled\n%s", architecture, said)
	}
}

func ExampleArguments() {
	fmt.Println(ptx.Arguments(ptx.Text())["pointwise_values"], "bytes")
	// Output: 40 bytes
}
