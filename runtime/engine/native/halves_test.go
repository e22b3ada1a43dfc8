package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// in16 is a spec of a training with bfloat16.
func in16(s engine.Spec) engine.Spec {
	s.Training, s.Precision = true, disdel.PrecisionBF16
	return s
}

// gradients are what one step with a rate of 1 takes off the weights.
func gradients(t *testing.T, g *model.Graph, s engine.Spec, rows int) disdel.Weights {
	t.Helper()
	s.BatchSize, s.Optimizer, s.Training = 16, sgd1, true
	e := initialized(t, g, s)
	before := engine.Weights(e)
	x, y := batch(g, rows, 11)
	if _, err := enginetest.Train(e, x, y); err != nil {
		t.Fatal(err)
	}
	after := engine.Weights(e)
	for i := range after {
		for k := range after[i].Data {
			after[i].Data[k] = before[i].Data[k] - after[i].Data[k]
		}
	}
	return after
}

// The gradients of bfloat16 are those of float32 but for rounding: every operand has 8 bits, so that an array of
// weights is a few hundredths of its gradient's length off, in every layer, whole batches and short ones.
func TestGradientsOfBF16AreThoseOfFloat32(t *testing.T) {
	sets := kernel.Sets()
	if testing.Short() {
		sets = sets[:1]
	}
	pathsOf(t, sets, func(t *testing.T) {
		for name, f := range imageNetworks() {
			g := build(t, name, f)
			for _, rows := range []int{16, 5} {
				want := gradients(t, g, engine.Spec{}, rows)
				var all, away float64
				for i, v := range gradients(t, g, in16(engine.Spec{}), rows) {
					for k, x := range v.Data {
						d, w := float64(x-want[i].Data[k]), float64(want[i].Data[k])
						all, away = all+w*w, away+d*d
					}
				}
				// the variance of a few rows moves with each of them
				if r := math.Sqrt(away / all); !(r < map[int]float64{16: 0.05, 5: 0.3}[rows]) {
					t.Errorf("%s, %d rows: the gradient is %.4f of its length off", name, rows, r)
				}
			}
		}
	})
}

// The same seed and batches give the same bits with bfloat16, on any number of threads, with short batches between.
func TestThreadsDoNotChangeBitsOfBF16(t *testing.T) {
	graphs := map[string]*model.Graph{"wide": wideNetwork(t), "narrowing": narrowingNetwork(t)}
	for name, f := range imageNetworks() {
		graphs[name] = build(t, name, f)
	}
	for name, g := range graphs {
		cfg := in16(engine.Spec{
			BatchSize: 20, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}, ClipNorm: 1,
		})
		one := run(t, g, cfg, 20, 7, 20)
		for _, threads := range threadCounts(1, 3) {
			cfg.Threads = threads
			sameBits(t, fmt.Sprintf("%s on %d threads", name, threads), one, run(t, g, cfg, 20, 7, 20))
		}
	}
}

// Losses with bfloat16 follow PyTorch's curves of float32, and are not their bits.
func TestLossCurvesOfBF16FollowFloat32(t *testing.T) {
	for _, name := range []string{"lenet5", "resnet8-test", "mobilenet-test"} {
		data, err := os.ReadFile("testdata/curves/" + name + "-sgd.json")
		if err != nil {
			t.Fatal(err)
		}
		var curve struct{ Losses []float64 }
		if err := json.Unmarshal(data, &curve); err != nil {
			t.Fatal(err)
		}
		g := testNetwork(t, name)
		e := initialized(t, g, in16(engine.Spec{
			BatchSize: 16, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.05, Momentum: 0.9}},
		}))
		var sum, most float64
		for s, want := range curve.Losses {
			x, y := namedBatch(s, g.Input())
			got, err := enginetest.Train(e, x, y)
			if err != nil {
				t.Fatal(err)
			}
			away := math.Abs(got - want)
			sum, most = sum+away, max(most, away)
		}
		if mean := sum / float64(len(curve.Losses)); !(mean < 0.02) || most == 0 {
			t.Errorf("%s strays by %.4f, at most %.4f", name, mean, most)
		}
	}
}

// Evaluation and prediction know nothing of the precision that a network is trained in, nor does what they leave
// behind disturb the next step.
func TestBF16IsForSteps(t *testing.T) {
	for _, name := range []string{"fork", "projection", "depthwise"} {
		g := build(t, name, networks()[name])
		s := engine.Spec{BatchSize: 20, Training: true, Optimizer: sgd1}
		whole, short, undisturbed := initialized(t, g, s), initialized(t, g, in16(s)), initialized(t, g, in16(s))
		x, y := batch(g, 20, 3)
		rows := dataset.Dense(20, x, y)
		for range 2 {
			for _, e := range []*Engine{short, undisturbed} {
				if _, err := e.Step(rows); err != nil {
					t.Fatal(err)
				}
			}
			if err := engine.SetWeights(whole, engine.Weights(short)); err != nil {
				t.Fatal(err)
			}
			want, err1 := whole.Predict(rows)
			got, err2 := short.Predict(rows)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			for i, v := range want.Values {
				if got.Values[i] != v {
					t.Fatalf("%s: output %d is %v, and %v of an engine of float32", name, i, got.Values[i], v)
				}
			}
		}
		sameBits(t, name, engine.Weights(undisturbed), engine.Weights(short))
	}
}

func TestStepsOfBF16AllocateNothing(t *testing.T) {
	for _, threads := range []int{1, 2} {
		g := testNetwork(t, "mobilenet-test")
		e := initialized(t, g, in16(engine.Spec{
			BatchSize: 16, Threads: threads, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 1e-3}},
		}))
		x, y := namedBatch(0, g.Input())
		rows := dataset.Dense(len(y), x, y)
		if n := testing.AllocsPerRun(20, func() {
			if _, err := e.Step(rows); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%d threads: %v allocations of a step", threads, n)
		}
	}
}

// The memory of an engine of bfloat16 is its plan's, to the byte, and less than that of float32 where layers are many.
func TestThePlanOfBF16IsTheMemory(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "resnet18", Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	whole := enginetest.On(g, engine.Spec{BatchSize: 64, Training: true, Optimizer: sgd1})
	short := in16(whole)
	a, err1 := PlanOf(whole)
	b, err2 := PlanOf(short)
	f, err3 := Backend{}.Footprint(short)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	peakA, _ := a.ByCategory()
	peakB, _ := b.ByCategory()
	if x, y := peakB[plan.Activations], peakA[plan.Activations]; b.Bytes() > a.Bytes()*9/10 || x > y*11/20 {
		t.Errorf("%v with bf16, %v without; of activations %v and %v", b.Bytes(), a.Bytes(), x, y)
	}
	short.Memory = b.Bytes() - 1
	if _, err := New(short); !errors.Is(err, disdel.OOM) {
		t.Errorf("a byte too little: %v", err)
	}
	g = testNetwork(t, "resnet8-test")
	s := in16(engine.Spec{BatchSize: 64, Optimizer: sgd1})
	e := newEngine(t, g, s)
	p, err := PlanOf(enginetest.On(g, s))
	if err != nil || len(e.mem.Values()) != p.Len || f.Total() < b.Bytes() {
		t.Errorf("%d values, planned %d, %v; %v of footprint", len(e.mem.Values()), p.Len, err, f.Total())
	}
}

// A path of bfloat16's own instructions is named by jobs in bf16 alone: the bits of others are the plain path's.
func TestFloat32IsThePlainPaths(t *testing.T) {
	g := build(t, "conv", networks()["conv"])
	for _, s := range kernel.Sets() {
		t.Setenv(kernel.Variable, s.Name)
		whole := newEngine(t, g, engine.Spec{BatchSize: 16, Training: true, Optimizer: sgd1}).Kernels()
		short := newEngine(t, g, in16(engine.Spec{BatchSize: 16, Optimizer: sgd1})).Kernels()
		if short != s.Name || whole != strings.TrimSuffix(s.Name, "bf16") {
			t.Errorf("%s: float32 names %s, and bf16 %s", s.Name, whole, short)
		}
	}
}
