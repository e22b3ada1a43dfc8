package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/disdel/disdel"
)

// testProgram has the tests of the driver of real devices; make cuda-tools builds it beside this program.
const testProgram = "test-gpu"

// promises runs what every backend is held to on the device: gradients, bits, state, refusals, memory.
func promises(out io.Writer) error {
	fmt.Fprint(out, "\n## What every backend is held to, on the GPU\n\n")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := filepath.Join(filepath.Dir(self), testProgram)
	if _, err := os.Stat(program); err != nil {
		fmt.Fprintf(out, "left out: %s is not there, which make cuda-tools builds\n", program)
		return nil
	}
	tests := exec.Command(program, "-test.v", "-test.skip", "^TestOnAnEmulatedLibrary$")
	tests.Stdout, tests.Stderr = out, out // as it is said: a test that hangs is the last one
	fmt.Fprintln(out, "```")
	err = tests.Run()
	fmt.Fprintln(out, "```")
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "check", Msg: "a test on the device failed", Err: err}
	}
	return nil
}
