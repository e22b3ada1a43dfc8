package cuda_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/footprint"
	"github.com/disdel/disdel/runtime/engine/native"
)

func TestTheBackendKeepsItsPromises(t *testing.T) {
	enginetest.Exercise(t, cuda.Backend{Driver: emulation(t)})
}

// networks have every layer that there is, in the roles that kernels tell apart.
func networks() map[string]func(b *model.Builder) int {
	square := model.Square
	return map[string]func(b *model.Builder) int{
		"residual": func(b *model.Builder) int {
			x := b.Same("r0", b.BatchNorm("n0", b.Conv("a", 0, 6, square(3, 1, 1), 1, false)), model.OpReLU)
			y := b.BatchNorm("n1", b.Conv("b", x, 8, square(3, 2, 1), 1, false))
			z := b.BatchNorm("n2", b.Conv("c", x, 8, square(1, 2, 0), 1, false))
			return b.GlobalPool("g", b.Same("r", b.Add("add", z, y), model.OpReLU))
		},
		"option a": func(b *model.Builder) int {
			x := b.Same("r0", b.Conv("a", 0, 4, square(3, 1, 1), 1, true), model.OpReLU)
			return b.Add("add", b.Downsample("d", x, 8, 2), b.Conv("b", x, 8, square(3, 2, 1), 1, true))
		},
		"fork": func(b *model.Builder) int {
			x := b.Conv("a", 0, 4, square(3, 1, 1), 1, true)
			p := b.Pool("p", x, model.OpMaxPool, square(3, 1, 1))
			q := b.Pool("q", x, model.OpAvgPool, square(3, 1, 1))
			r := b.Same("r", x, model.OpReLU)
			d := b.Conv("d", x, 4, square(3, 1, 1), 4, true)
			return b.Concat("cat", p, b.Same("s", q, model.OpTanh), r, d, x, b.Conv("e", r, 6, square(1, 1, 0), 2, false))
		},
		"vectors": func(b *model.Builder) int { // a flatten that has to reorder, and one that has not
			x := b.Conv("a", 0, 3, square(3, 2, 1), 1, true)
			f, g := b.Flatten("f", x), b.Same("r", b.Flatten("g", x), model.OpReLU)
			return b.Add("add", b.Same("s", f, model.OpSigmoid), b.Dense("d", g, b.Out(f)[0]))
		},
		"mobile": func(b *model.Builder) int {
			x := b.Same("r0", b.BatchNorm("n0", b.Conv("a", 0, 6, square(3, 1, 1), 1, false)), model.OpReLU6)
			y := b.Same("r1", b.BatchNorm("n1", b.Conv("b", x, 6, square(3, 2, 1), 6, false)), model.OpReLU6)
			return b.AdaptivePool("p", b.Dropout("drop", y, 0.3), 2)
		},
		"hard swish": func(b *model.Builder) int {
			x := b.Same("h0", b.Conv("a", 0, 5, square(3, 1, 1), 1, true), model.OpHardSwish)
			added := b.Add("sum", x, b.BatchNorm("n", b.Conv("b", x, 5, square(3, 1, 1), 1, true)))
			return b.Same("h1", added, model.OpHardSwish)
		},
		"pools": func(b *model.Builder) int {
			x := b.Conv("a", 0, 5, square(3, 1, 1), 1, true)
			x = b.Same("r", b.Pool("p", x, model.OpMaxPool, square(2, 2, 0)), model.OpReLU)
			return b.Pool("q", b.Same("t", x, model.OpTanh), model.OpMaxPool, square(2, 1, 0))
		},
	}
}

func build(t *testing.T, name string, f func(b *model.Builder) int, last model.Op) *model.Graph {
	t.Helper()
	b := model.NewBuilder(name, model.Shape{2, 7, 6})
	x := f(b)
	if len(b.Out(x)) == 3 {
		x = b.Flatten("flatten", x)
	}
	x = b.Dense("fc", x, 3)
	if last != model.OpUnknown {
		b.Same("last", x, last)
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func batch(g *model.Graph, rows int, seed uint64) dataset.Batch {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := dataset.Dense(rows, make([]float32, rows*g.Input().Len()), make([]int32, rows))
	for i := range b.Input.Values {
		b.Input.Values[i] = rng.Float32()*2 - 1
	}
	for i := range b.Target.Classes {
		b.Target.Classes[i] = rng.Int32N(int32(g.Output().Len()))
	}
	return b
}

// made is an engine with first weights.
func made(t *testing.T, b engine.Backend, s engine.Spec) engine.Engine {
	t.Helper()
	e, err := b.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := e.Init(disdel.Init{Seed: 5}); err != nil {
		t.Fatal(err)
	}
	return e
}

// trained makes steps on batches of so many rows and returns their losses, with that of an evaluation behind them.
func trained(t *testing.T, e engine.Engine, g *model.Graph, rows ...int) (losses []float64) {
	t.Helper()
	for i, n := range rows {
		m, err := e.Step(batch(g, n, uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, m.Loss)
	}
	m, err := e.Evaluate(batch(g, rows[0], 99))
	if err != nil {
		t.Fatal(err)
	}
	return append(losses, m.Loss)
}

// alike holds an engine's losses and arrays against another's.
func alike(t *testing.T, what string, want, got []float64, a, b disdel.Weights) {
	t.Helper()
	for i, w := range want {
		if math.Abs(got[i]-w) > 2e-4*(1+math.Abs(w)) {
			t.Errorf("%s: loss %d is %v, want %v", what, i, got[i], w)
		}
	}
	for i, w := range a {
		if w.Name != b[i].Name || !slices.Equal(w.Shape, b[i].Shape) {
			t.Fatalf("%s: %s %v, want %s %v", what, b[i].Name, b[i].Shape, w.Name, w.Shape)
		}
		for k, v := range w.Data {
			if math.Abs(float64(b[i].Data[k]-v)) > 5e-4*(1+math.Abs(float64(v))) {
				t.Errorf("%s: %s[%d] is %v, want %v", what, w.Name, k, b[i].Data[k], v)
				break
			}
		}
	}
}

// Every layer, loss and optimiser comes to what it comes to on the processor's engine, over some steps, of which one is
// short: losses, weights, statistics and moments.
func TestItTrainsAsTheProcessorsEngine(t *testing.T) {
	b := cuda.Backend{Driver: emulation(t)}
	optimizers := []disdel.Optimizer{
		{SGD: &disdel.SGD{LearningRate: 0.05, Momentum: 0.9, WeightDecay: 0.01, Nesterov: true}},
		{SGD: &disdel.SGD{LearningRate: 0.05, WeightDecay: 0.01}},
		{Adam: &disdel.Adam{LearningRate: 0.002, WeightDecay: 0.01, Epsilon: 1e-4}},
		{AdamW: &disdel.Adam{LearningRate: 0.002, WeightDecay: 0.1, Epsilon: 1e-4}},
	}
	ends := []struct {
		loss string
		last model.Op
	}{
		{"crossEntropy", model.OpSoftmax},
		{"mse", model.OpSoftmax},
		{"binaryCrossEntropy", model.OpSigmoid},
		{"binaryCrossEntropy", model.OpSoftmax},
		{"mse", model.OpTanh},
		{"", model.OpUnknown},
	}
	i := 0
	drawn := networks()
	for _, name := range slices.Sorted(maps.Keys(drawn)) {
		f := drawn[name]
		for k := range 3 { // each network with half of the ends, so that all meet all over the networks
			end, o := ends[(2*k+i)%len(ends)], optimizers[(i+k)%len(optimizers)]
			g := build(t, name, f, end.last)
			s := engine.Spec{Graph: g, BatchSize: 18, Optimizer: o, Loss: end.loss, Training: true, Seed: 3}
			if k == 2 {
				s.ClipNorm = 0.1
			}
			want, got := made(t, native.Backend{}, s), made(t, b, s)
			losses, ours := trained(t, want, g, 18, 7, 18), trained(t, got, g, 18, 7, 18)
			alike(t, fmt.Sprintf("%s, %s of %v, %s", name, end.loss, end.last, o.Name()), losses, ours,
				engine.Copies(want.State()), engine.Copies(got.State()))
		}
		i++
	}
}

// Binary cross-entropy of a last sigmoid clips nothing. For log-odds whose sigmoids round to 0 and 1, losses, weights and
// predictions are those of the engine on processors.
func TestSigmoidsOfExtremeLogOddsAreNotClipped(t *testing.T) {
	b := cuda.Backend{Driver: emulation(t)}
	rng := rand.New(rand.NewPCG(13, 14))
	for range 6 {
		rows, scale := 1+rng.IntN(20), float32(math.Pow(10, 3*rng.Float64()))
		g := build(t, "odds", func(b *model.Builder) int { return b.Flatten("f", 0) }, model.OpSigmoid)
		data := batch(g, rows, rng.Uint64())
		for i := range data.Input.Values {
			data.Input.Values[i] *= scale
		}
		s := engine.Spec{
			Graph: g, BatchSize: 20, Loss: "binaryCrossEntropy", Training: true,
			Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}},
		}
		want, got := made(t, native.Backend{}, s), made(t, b, s)
		what := fmt.Sprintf("%d rows by %v", rows, scale)
		var losses [2][]float64
		for i, e := range []engine.Engine{want, got} {
			answer, err := e.Predict(data)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range answer.Values {
				losses[i] = append(losses[i], float64(v))
			}
			for _, call := range []func(dataset.Batch) (disdel.Metrics, error){e.Evaluate, e.Step} {
				m, err := call(data)
				if err != nil {
					t.Fatal(err)
				}
				losses[i] = append(losses[i], m.Loss)
			}
		}
		alike(t, what, losses[0], losses[1], engine.Copies(want.State()), engine.Copies(got.State()))
	}
}

// Lion steps by the sign of a gradient, so that rounding decides for weights whose gradient is next to nothing. All
// others come to what they come to on the processor's engine, and all moments do.
func TestLionStepsAsOnTheProcessor(t *testing.T) {
	g := build(t, "vectors", networks()["vectors"], model.OpSoftmax)
	data := batch(g, 18, 4)
	after := func(b engine.Backend, o disdel.Optimizer, steps int) disdel.Weights {
		e := made(t, b, engine.Spec{
			Graph: g, BatchSize: 18, Optimizer: o, Loss: "crossEntropy", Training: true, Seed: 3,
		})
		for range steps {
			if _, err := e.Step(data); err != nil {
				t.Fatal(err)
			}
		}
		return engine.Copies(e.State())
	}
	sgd := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}
	lion := disdel.Optimizer{Lion: &disdel.Lion{LearningRate: 0.002, WeightDecay: 0.1}}
	before, moved := after(native.Backend{}, sgd, 0), after(native.Backend{}, sgd, 1)
	want, got := after(native.Backend{}, lion, 3), after(cuda.Backend{Driver: emulation(t)}, lion, 3)
	compared := 0
	for i, w := range want {
		for k, v := range w.Data {
			if i < len(before) && math.Abs(float64(moved[i].Data[k]-before[i].Data[k])) < 1e-3 {
				continue
			}
			compared++
			if math.Abs(float64(got[i].Data[k]-v)) > 1e-4*(1+math.Abs(float64(v))) {
				t.Errorf("%s[%d] is %v, want %v", w.Name, k, got[i].Data[k], v)
			}
		}
	}
	if compared < 200 {
		t.Errorf("%d values had gradients to compare", compared)
	}
}

// What a network of the zoo predicts is what the processor's engine predicts, with statistics that have moved.
func TestItPredictsAsTheProcessorsEngine(t *testing.T) {
	g := build(t, "residual", networks()["residual"], model.OpSoftmax)
	sgd := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}
	s := engine.Spec{Graph: g, BatchSize: 9, Optimizer: sgd, Training: true}
	teacher := made(t, native.Backend{}, s)
	trained(t, teacher, g, 9, 9)
	s.Training = false
	want, got := made(t, native.Backend{}, s), made(t, cuda.Backend{Driver: emulation(t)}, s)
	for _, e := range []engine.Engine{want, got} {
		if err := engine.SetWeights(e, engine.Weights(teacher)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := want.Predict(batch(g, 5, 4))
	if err != nil {
		t.Fatal(err)
	}
	b, err := got.Predict(batch(g, 5, 4))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "predictions", b.Values, a.Values, 100)
}

// LeNet-5 learns, by the same curve as on the processor's engine.
func TestLeNetLearnsByTheSameCurve(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	s := engine.Spec{
		Graph: g, BatchSize: 14, Training: true,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.05, Momentum: 0.9}},
	}
	curve := func(b engine.Backend) (losses []float64) {
		e := made(t, b, s)
		for range 5 {
			m, err := e.Step(batch(g, 14, 1))
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, m.Loss)
		}
		return losses
	}
	want, got := curve(native.Backend{}), curve(cuda.Backend{Driver: emulation(t)})
	alike(t, "LeNet-5", want, got, nil, nil)
	if got[4] > 0.9*got[0] {
		t.Errorf("losses %v: nothing was learned", got)
	}
}

// Nothing depends on the order of threads and blocks, which a device does not keep.
func TestTheOrderOfThreadsAndBlocksChangesNothing(t *testing.T) {
	forwards := emulation(t)
	backwards := forwards
	backwards.Backwards = true
	for name, f := range networks() {
		g := build(t, name, f, model.OpSoftmax)
		s := engine.Spec{
			Graph: g, BatchSize: 18, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}, Training: true,
			ClipNorm: 1,
		}
		a, b := made(t, cuda.Backend{Driver: forwards}, s), made(t, cuda.Backend{Driver: backwards}, s)
		if want, got := trained(t, a, g, 18, 5), trained(t, b, g, 18, 5); !slices.Equal(want, got) {
			t.Errorf("%s: losses %v, want %v", name, got, want)
		}
		want, got := engine.Copies(a.State()), engine.Copies(b.State())
		for i := range want {
			if !slices.Equal(want[i].Data, got[i].Data) {
				t.Errorf("%s: %s has other bits", name, want[i].Name)
			}
		}
	}
}

// What the footprint says of the device is what is taken of it, in one allocation.
func TestTheFootprintIsWhatIsTaken(t *testing.T) {
	f := &faulty{driver: emulation(t)}
	g := build(t, "mobile", networks()["mobile"], model.OpSoftmax)
	adam := disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}
	s := engine.Spec{Graph: g, BatchSize: 33, Optimizer: adam, Training: true}
	e := made(t, cuda.Backend{Driver: f}, s)
	trained(t, e, g, 33)
	if want := e.Footprint().In(footprint.Device); len(f.taken) != 1 || f.taken[0] != want {
		t.Errorf("%v were taken, and %v are in the footprint", f.taken, want)
	}
	if host := e.Footprint().In(footprint.Host); host != 0 {
		t.Errorf("%v of the host", host)
	}
}

// Batches that come ahead change no bit, whether they are there before all that waits or as late as a device may let
// them come: nobody writes what a step still reads, and no step reads what is not there.
func TestBatchesAheadChangeNoBits(t *testing.T) {
	late := emulation(t)
	eager := late
	eager.Eager = true
	g := build(t, "mobile", networks()["mobile"], model.OpSoftmax)
	s := engine.Spec{
		Graph: g, BatchSize: 18, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}, Training: true,
	}
	sizes := []int{18, 7, 18, 18, 3, 18}
	plain := made(t, cuda.Backend{Driver: late}, s)
	want := trained(t, plain, g, sizes...)
	for name, d := range map[string]driver.Driver{"late": late, "eager": eager} {
		e := made(t, cuda.Backend{Driver: d}, s)
		ahead := e.Ahead()
		if err := ahead.Stage(batch(g, sizes[0], 0)); err != nil {
			t.Fatal(err)
		}
		var got []float64
		for i := range sizes {
			m, err := ahead.StepStaged(func() error {
				if i+1 == len(sizes) {
					return nil
				}
				return ahead.Stage(batch(g, sizes[i+1], uint64(i+1)))
			})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m.Loss)
		}
		m, err := e.Evaluate(batch(g, sizes[0], 99))
		if err != nil || !slices.Equal(append(got, m.Loss), want) {
			t.Errorf("%s: losses %v and %v, %v; want %v", name, got, m.Loss, err, want)
		}
		for i, w := range engine.Copies(plain.State()) {
			if !slices.Equal(w.Data, e.State()[i].Copy().Data) {
				t.Errorf("%s: %s has other bits", name, w.Name)
			}
		}
	}
}
