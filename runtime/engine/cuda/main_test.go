package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/disdel/disdel/internal/test/emulated"
)

// program is the emulated device, "" where there is no C compiler.
var program string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "emulated")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if program, err = emulated.Compile(folder); err != nil && !errors.Is(err, emulated.ErrNoCompiler) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(folder)
		os.Exit(code)
	}))
}

// emulation is the driver of the emulated device. Tests that need it are skipped without a C compiler.
func emulation(t testing.TB) emulated.Driver {
	t.Helper()
	if program == "" {
		t.Skip("kernels are not tested: ", emulated.ErrNoCompiler)
	}
	return emulated.Driver{Program: program}
}
