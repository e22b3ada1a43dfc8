package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/emulated"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda"
	"github.com/disdel/disdel/runtime/engine/native"
)

// emulation is the engine for GPUs on a device that is the processor's.
func emulation(t *testing.T) engine.Backend {
	t.Helper()
	program, err := emulatedDevice()
	if errors.Is(err, emulated.ErrNoCompiler) {
		t.Skip("left out: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cuda.Backend{Driver: emulated.Driver{Program: program}}
}

// faster is an engine that goes by another rate than it was told.
type faster struct{ engine.Backend }

func (b faster) New(s engine.Spec) (engine.Engine, error) {
	e, err := b.Backend.New(s)
	if err == nil {
		e.SetRate(1.1)
	}
	return e, err
}

// What gpu-check compares is alike on an emulated device in all precisions, and an engine that computes something else
// is found.
func TestTheCheckTellsEnginesApart(t *testing.T) {
	b := [2]engine.Backend{native.Backend{}, emulation(t)}
	lenet, _ := model.Find("lenet5")
	var text strings.Builder
	err := check(&text, b, []model.Entry{lenet})
	if err != nil || strings.Count(text.String(), ": ok\n") != 2*len(bounds) {
		t.Errorf("%v\n%s", err, text.String())
	}
	b[1] = faster{b[1]}
	if err := check(io.Discard, b, []model.Entry{lenet}); !errors.Is(err, disdel.Internal) {
		t.Errorf("an engine with another rate: %v", err)
	}
}

// squaring is an engine that computes another loss, as one that clips logarithms does.
type squaring struct{ engine.Backend }

func (b squaring) New(s engine.Spec) (engine.Engine, error) {
	if s.Loss != "" {
		s.Loss = disdel.LossMSE
	}
	return b.Backend.New(s)
}

// The check finds an engine whose loss reads sigmoids that have rounded to 0 and 1, whatever batch is drawn.
func TestTheCheckFindsALossOfRoundedSigmoids(t *testing.T) {
	emulated := emulation(t)
	for seed := range uint64(5) {
		odds, err := extremeOdds(seed)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		wrong, err := odds.steps(&text, [2]engine.Backend{native.Backend{}, emulated})
		if err != nil || wrong != 0 || strings.Count(text.String(), ": ok\n") != len(bounds) {
			t.Errorf("seed %d: %v\n%s", seed, err, text.String())
		}
		text.Reset()
		wrong, err = odds.steps(&text, [2]engine.Backend{native.Backend{}, squaring{emulated}})
		if err != nil || wrong != len(bounds) {
			t.Errorf("seed %d: %d found, %v\n%s", seed, wrong, err, text.String())
		}
	}
}

// halting has no engine for some networks.
type halting struct {
	engine.Backend
	on string
}

func (b halting) New(s engine.Spec) (engine.Engine, error) {
	if s.Graph.Name == b.on {
		return nil, &disdel.Error{Kind: disdel.Internal, Op: "make engine", Msg: "injected"}
	}
	return b.Backend.New(s)
}

// What fails for one network is in the report, and the others are checked and measured all the same.
func TestOneNetworkThatFailsStopsNoOther(t *testing.T) {
	lenet, _ := model.Find("lenet5")
	other, _ := model.Find("resnet20-cifar")
	b := [2]engine.Backend{native.Backend{}, halting{native.Backend{}, "lenet5"}}
	var text strings.Builder
	err := check(&text, b, []model.Entry{lenet, other})
	said := text.String()
	if !errors.Is(err, disdel.Internal) || !strings.Contains(said, "FAILED: make engine: injected") ||
		!strings.Contains(said, "- resnet20-cifar [3 32 32], float32: losses") {
		t.Errorf("%v\n%s", err, said)
	}
}

// pythonWithTorch is a Python that has PyTorch. Tests that need it are skipped without one.
func pythonWithTorch(t *testing.T) string {
	t.Helper()
	for _, python := range []string{os.Getenv("DISDEL_TEST_TORCH"), "python3", "/usr/bin/python3"} {
		if _, why := said(exec.Command(python, "-c", "import torch")); python != "" && why == "" {
			return python
		}
	}
	t.Skip("left out: no Python here has PyTorch (scripts/bench-deps.sh brings one)")
	return ""
}

// PyTorch comes to the same losses and gradients from the same weights, of networks whose arrays have its names and
// of some that have them in its order; what is not alike is found. `make gpu-check` compares all networks.
func TestStepsArePyTorchs(t *testing.T) {
	python := pythonWithTorch(t)
	t.Chdir("../..")
	b := emulation(t)
	var text strings.Builder
	lenet := []string{"lenet5"}
	if err := againstTorch(&text, b, python, lenet); err != nil || strings.Count(text.String(), ": ok\n") != 1 {
		t.Errorf("%v\n%s", err, text.String())
	}
	text.Reset()
	small := []string{"resnet20-cifar", "mobilenetv1"}
	if err := againstTorch(&text, native.Backend{}, python, small); err != nil ||
		strings.Count(text.String(), ": ok\n") != len(small) {
		t.Errorf("%v\n%s", err, text.String())
	}
	if err := againstTorch(io.Discard, faster{b}, python, lenet); !errors.Is(err, disdel.Internal) {
		t.Errorf("an engine with another rate: %v", err)
	}
}

// Without PyTorch the report says so, and nothing has failed.
func TestNoPyTorchIsSaid(t *testing.T) {
	var text strings.Builder
	if err := againstTorch(&text, native.Backend{}, "no-such-python", peers); err != nil ||
		!strings.Contains(text.String(), "left out: no-such-python has no PyTorch") {
		t.Errorf("%v\n%s", err, text.String())
	}
}
