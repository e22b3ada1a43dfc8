package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/disdel/disdel/internal/test/emulated"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/gpu"
	"github.com/disdel/disdel/runtime/engine/native"
)

// The program starts itself for each piece of the report: here that is the test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-piece" {
		main()
		return
	}
	code := m.Run()
	_ = os.RemoveAll(emulatedFolder)
	os.Exit(code)
}

// emulatedFolder has the emulated device that all tests share, "" before the first of them.
var emulatedFolder string

var emulatedDevice = sync.OnceValues(func() (_ string, err error) {
	if emulatedFolder, err = os.MkdirTemp("", "emulated"); err != nil {
		return "", err
	}
	return emulated.Compile(emulatedFolder)
})

// Without a GPU the report is there all the same and says so, and nothing passes for checked.
func TestNoGPUIsSaid(t *testing.T) {
	if _, err := gpu.Devices(); err == nil {
		t.Skip("this machine has a GPU")
	}
	file := filepath.Join(t.TempDir(), "report.md")
	if err := run([]string{"-report", file}, io.Discard); err == nil {
		t.Error("nothing was checked, and nothing failed")
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "failed: devices: find a GPU: there is none to check: ") {
		t.Errorf("%v: %s", err, text)
	}
}

// The curve that a GPU's is held against is one of learning: two engines of the same backend come to the same.
func TestTheCurveIsOfLearning(t *testing.T) {
	var text strings.Builder
	if err := curves(&text, [2]engine.Backend{native.Backend{}, native.Backend{}}); err != nil {
		t.Errorf("%v\n%s", err, text.String())
	}
}
