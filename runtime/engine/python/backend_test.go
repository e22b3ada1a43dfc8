package python

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// planned is a program that nobody needs to start.
func planned(t *testing.T, change func(p *disdel.PythonNetwork)) *model.Graph {
	t.Helper()
	p := &disdel.PythonNetwork{
		Form: disdel.PythonModule, Floor: 200 * disdel.MB, Factor: 1.2, Basis: disdel.MemoryTraced,
		Memory: []disdel.PythonMemory{
			{Batch: 10, Train: 20 * disdel.MB, Infer: 5 * disdel.MB},
			{Batch: 30, Train: 40 * disdel.MB, Infer: 9 * disdel.MB},
			{Batch: 50, Train: 100 * disdel.MB, Infer: 15 * disdel.MB},
		},
		Integers: []disdel.CustomParam{{Name: "count"}},
	}
	if change != nil {
		change(p)
	}
	g, err := model.Build(disdel.Network{
		Custom: &disdel.CustomNetwork{
			Name: "net", Input: []int{250}, Classes: 10, Activations: 10, Backward: 10, Python: p,
			Params: []disdel.CustomParam{
				{Name: "w", Shape: []int{1000, 250}, Trainable: true}, {Name: "mean", Shape: []int{1000}},
			},
		},
		Input: []int{250}, Classes: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// What lies in the shared file is exact; the program's own memory is on the line between the batches that are known.
func TestAFootprintFollowsTheDescription(t *testing.T) {
	const trained, weights = 4 * 250_000, 4*250_000 + 4*1000 + 8
	for batch, want := range map[int]disdel.Bytes{
		10: 20 * disdel.MB, 20: 30 * disdel.MB, 40: 70 * disdel.MB, 70: 160 * disdel.MB, 1: 11 * disdel.MB,
	} {
		f, err := Backend{}.Footprint(engine.Spec{Graph: planned(t, nil), BatchSize: batch, Training: true, Optimizer: adam})
		if err != nil {
			t.Fatal(err)
		}
		for c, want := range map[footprint.Category]disdel.Bytes{
			footprint.Weights: weights, footprint.Moments: 2 * trained, footprint.Gradients: disdel.Bytes(1.2 * trained),
			footprint.Activations: disdel.Bytes(1.2 * float64(want)), footprint.Process: 200 * disdel.MB,
		} {
			if got := f.Sum(c); got != want {
				t.Errorf("batch %d: %s takes %v, want %v", batch, c, got, want)
			}
		}
		if f.Basis != footprint.Fitted || f.Spread != spreads[disdel.MemoryTraced] || f.Pages != libraryPages || f.In(footprint.Device) != 0 ||
			len(f.Layers) != 2 {
			t.Errorf("batch %d: %+v", batch, f)
		}
	}
	infer, err := Backend{}.Footprint(engine.Spec{Graph: planned(t, nil), BatchSize: 10})
	if err != nil || infer.Sum(footprint.Moments, footprint.Gradients) != 0 ||
		infer.Sum(footprint.Activations) != disdel.Bytes(1.2*float64(5*disdel.MB)) {
		t.Errorf("%+v, %v", infer, err)
	}
	// Loading a network takes its weights twice, which is more than the activations of a few rows.
	few, err := Backend{}.Footprint(engine.Spec{Graph: planned(t, func(p *disdel.PythonNetwork) {
		p.Memory = []disdel.PythonMemory{{Batch: 1, Train: 2000, Infer: 1000}}
	}), BatchSize: 1})
	if err != nil || few.Sum(footprint.Activations, footprint.Workspace) != weights {
		t.Errorf("%+v, %v", few, err)
	}
}

// The backend takes described programs and nothing else, and refuses what no engine has.
func TestWhatTheBackendRefuses(t *testing.T) {
	zoo, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := (Backend{}).Supports(zoo); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a network of the zoo is supported: %v", err)
	}
	if err := (Backend{}).Supports(planned(t, nil)); err != nil {
		t.Errorf("a program is not supported: %v", err)
	}
	g := planned(t, nil)
	for name, s := range map[string]engine.Spec{
		"no batch": {Graph: g}, "loss": {Graph: g, BatchSize: 1, Loss: "hinge"}, "zoo": {Graph: zoo, BatchSize: 1},
		"precision": {Graph: g, BatchSize: 1, Training: true, Precision: disdel.PrecisionBF16},
	} {
		if e, err := (Backend{}).New(s); !errors.Is(err, disdel.Invalid) || e != nil {
			t.Errorf("%s: New returns %v and %v", name, e, err)
		}
		if _, err := (Backend{}).Footprint(s); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: Footprint returns %v", name, err)
		}
	}
	if e, err := (Backend{}).New(engine.Spec{Graph: g, BatchSize: 1, Memory: 100_000, Code: t.TempDir()}); !errors.Is(err,
		disdel.OOM) || e != nil {
		t.Errorf("more than the limit: %v, %v", e, err)
	}
}

// An optimiser whose state cannot be stored starts anew in a new process and after a reset, and never goes on with
// half of it.
func TestAnOpaqueOptimizerStartsAnew(t *testing.T) {
	d := describe(t, small+`
import disdel

class Mine(disdel.Task):
    def model(self):
        return Net()

    def optimizer(self, model):
        return torch.optim.NAdam(model.parameters(), lr=0.01)
`, adam)
	s := d.spec(adam)
	if !s.Optimizer.Own.Opaque {
		t.Fatalf("the optimiser is described as %+v", s.Optimizer.Own)
	}
	warm, cold := start(t, s), start(t, s)
	steps(t, warm, 0, 3)
	state := everything(warm)
	if err := warm.Reset(engine.Moment); err != nil {
		t.Fatal(err)
	}
	restore(t, warm, state)
	restore(t, cold, state)
	steps(t, warm, 3, 5)
	steps(t, cold, 3, 5)
	same(t, "of a new process", everything(warm), everything(cold))
}

// A process that is killed or crashes near the memory limit of its action has lacked memory.
func TestADeathNearTheLimitIsOfMemory(t *testing.T) {
	for forward, words := range map[string]string{
		"os.kill(os.getpid(), 9)": "killed: out of memory", "os.abort()": "at its memory limit",
	} {
		s := misbehaving(t, "", forward).spec(adam)
		s.Memory = 64 * disdel.MB
		_, err := start(t, s).Step(batch(0))
		wants(t, err, disdel.OOM, words)
	}
}

// An image for clusters has its own Python for jobs that name one of another machine. Without it, a Python that is gone
// is an error: another one would have other packages.
func TestTheInterpreterOfAnImageStandsIn(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	here := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(here, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(pythonVariable, here)
	if got, err := findInterpreter(gone); got != here || err != nil {
		t.Errorf("the image's %s, not %s: %v", here, got, err)
	}
	t.Setenv(pythonVariable, "")
	if got, err := findInterpreter(gone); disdel.KindOf(err) != disdel.Invalid || !strings.Contains(err.Error(), gone) {
		t.Errorf("%s stands in for a Python that is gone: %v", got, err)
	}
}
