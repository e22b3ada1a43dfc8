package ptx_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/cuda/ptx"
)

func TestTheTextIsOfTheSources(t *testing.T) {
	if ptx.Of() != kernel.Hash() {
		t.Error("the kernels have changed: scripts/cuda-deps.sh and then go generate ./runtime/engine/cuda/ptx")
	}
	have := ptx.Arguments()
	for _, name := range kernel.Names() {
		if have[name] == 0 {
			t.Errorf("the text has no kernel %s", name)
		}
	}
	if len(have) != len(kernel.Names()) {
		t.Errorf("%d kernels, want %d", len(have), len(kernel.Names()))
	}
	if regexp.MustCompile(`\b(atom|red)\.`).MatchString(ptx.Text()) {
		t.Error("a kernel has an atomic operation")
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
	from := filepath.Join(t.TempDir(), "kernels.ptx")
	if err := os.WriteFile(from, []byte(ptx.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, architecture := range []string{"sm_70", "sm_80", "sm_90"} {
		said, err := exec.Command(assembler, "-v", "-arch="+architecture, "-o", os.DevNull, from).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", architecture, err, said)
		}
		found := used.FindAllStringSubmatch(string(said), -1)
		if len(found) != len(kernel.Names()) {
			t.Errorf("%s: ptxas tells of %d kernels, want %d\n%s", architecture, len(found), len(kernel.Names()), said)
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
		if spilled.Match(said) {
			t.Errorf("%s: registers are spilled\n%s", architecture, said)
		}
	}
}

func ExampleArguments() {
	fmt.Println(ptx.Arguments()["pointwise_values"], "bytes")
	// Output: 40 bytes
}
