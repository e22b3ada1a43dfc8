package gorgonia

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

func graph(t testing.TB, input []int, classes int, layers ...disdel.Layer) *model.Graph {
	t.Helper()
	g, err := model.Build(disdel.Network{Layers: layers, Input: input, Classes: classes})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func make1(t testing.TB, g *model.Graph, cfg engine.Spec) *Engine {
	t.Helper()
	e, err := New(enginetest.On(g, cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if err := engine.SetWeights(e, engine.InitWeights(g, disdel.Init{Seed: 7})); err != nil {
		t.Fatal(err)
	}
	return e
}

func batch(g *model.Graph, rows, classes int, seed uint64) ([]float32, []int32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	x, y := make([]float32, rows*g.Input().Len()), make([]int32, rows)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for i := range y {
		y[i] = int32(rng.IntN(classes))
	}
	return x, y
}

var sgd1 = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}

// With SGD and a learning rate of 1, the weights change by the gradient: it must be the difference quotient of the
// loss.
func TestGradientsAreTheDifferenceQuotients(t *testing.T) {
	dense := func(n int) disdel.Layer { return disdel.Layer{Kind: "dense", Units: n} }
	for name, c := range map[string]struct {
		input  []int
		loss   string
		layers []disdel.Layer
	}{
		"dense": {[]int{1, 3, 3}, "crossEntropy", []disdel.Layer{dense(3), {Kind: "softmax"}}},
		"conv": {
			[]int{2, 7, 5},
			"crossEntropy",
			[]disdel.Layer{{Kind: "conv", Filters: 3, Kernel: 3, Padding: 1}, dense(3), {Kind: "softmax"}},
		},
		"strided conv": {
			[]int{2, 7, 7},
			"crossEntropy",
			[]disdel.Layer{{Kind: "conv", Filters: 2, Kernel: 3, Stride: 2}, {Kind: "tanh"}, dense(3), {Kind: "softmax"}},
		},
		"sigmoid, mse": {[]int{1, 4, 4}, "mse", []disdel.Layer{dense(4), {Kind: "sigmoid"}, dense(3)}},
		"max pool": {
			[]int{2, 6, 6},
			"crossEntropy",
			[]disdel.Layer{{Kind: "conv", Filters: 3, Kernel: 3}, {Kind: "maxPool", Kernel: 2}, dense(3), {Kind: "softmax"}},
		},
		"relu": {
			[]int{1, 4, 4},
			"crossEntropy",
			[]disdel.Layer{dense(8), {Kind: "relu"}, dense(3), {Kind: "softmax"}},
		},
		"two conv, mse": {
			[]int{1, 6, 6},
			"mse",
			[]disdel.Layer{
				{Kind: "conv", Filters: 2, Kernel: 3, Activation: "tanh"},
				{Kind: "conv", Filters: 2, Kernel: 2},
				dense(3),
				{Kind: "softmax"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := graph(t, c.input, 3, c.layers...)
			for _, rows := range []int{5, 3} { // a whole batch and a padded one
				checkGradient(t, g, c.loss, rows)
			}
		})
	}
}

func checkGradient(t *testing.T, g *model.Graph, loss string, rows int) {
	t.Helper()
	x, y := batch(g, rows, 3, 11)
	e := make1(t, g, engine.Spec{BatchSize: 5, Optimizer: sgd1, Loss: loss, Training: true})
	before := engine.Weights(e)
	if _, err := enginetest.Train(e, x, y); err != nil {
		t.Fatal(err)
	}
	after := engine.Weights(e)
	const h = 5e-4 // small enough to stay on one side of most kinks of ReLU and max pool
	at := func(w disdel.Weights) float64 {
		if err := engine.SetWeights(e, w); err != nil {
			t.Fatal(err)
		}
		sum, _, err := enginetest.Evaluate(e, x, y)
		if err != nil {
			t.Fatal(err)
		}
		return sum / float64(rows)
	}
	for i, p := range before {
		for k := 0; k < len(p.Data); k += max(1, len(p.Data)/7) {
			old := p.Data[k]
			p.Data[k] = old + h
			up := at(before)
			p.Data[k] = old - h
			down := at(before)
			p.Data[k] = old
			want, got := (up-down)/(2*h), float64(old-after[i].Data[k])
			if math.Abs(want-got) > 2e-3+0.03*math.Abs(want) {
				t.Errorf("%d rows: gradient of %s[%d] is %.5f, difference quotient %.5f", rows, p.Name, k, got, want)
			}
		}
	}
}

func TestStepsWithTheSameSeedGiveTheSameBits(t *testing.T) {
	run := func() disdel.Weights {
		g := graph(t, []int{1, 6, 6}, 3, disdel.Layer{Kind: "conv", Filters: 4, Kernel: 3, Activation: "relu"},
			disdel.Layer{Kind: "dropout", Rate: 0.4}, disdel.Layer{Kind: "dense", Units: 3, Activation: "softmax"})
		e := make1(t, g, engine.Spec{
			BatchSize: 8, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}, Seed: 3,
			Training: true,
		})
		for i := range 5 {
			x, y := batch(g, 8, 3, uint64(i))
			if _, err := enginetest.Train(e, x, y); err != nil {
				t.Fatal(err)
			}
		}
		return engine.Weights(e)
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}

func TestTrainingLearnsAnEasyTask(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "digits-cnn", Input: []int{1, 8, 8}, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	e := make1(t, g, engine.Spec{
		BatchSize: 16, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.005}},
		Training: true,
	})
	x, y := batch(g, 16, 2, 5)
	for i, label := range y { // class 1 is bright on the left
		for k := range 64 {
			if k%8 < 4 {
				x[i*64+k] += 3 * float32(label)
			}
		}
	}
	var first, last float64
	for i := range 60 {
		loss, err := enginetest.Train(e, x, y)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = loss
		}
		last = loss
	}
	if last > first/10 {
		t.Errorf("the loss went from %.4f to %.4f", first, last)
	}
	_, correct, err := enginetest.Evaluate(e, x, y)
	if err != nil || correct != 16 {
		t.Errorf("%d of 16 rows right, %v", correct, err)
	}
}

// One step of each optimiser on a known gradient, by hand.
func TestOptimizersFollowTheirFormulas(t *testing.T) {
	step := func(o disdel.Optimizer, n int) float32 {
		opt, w := newOptimizer(o, []int{1}), []float32{1}
		for range n {
			opt.next()
			opt.step(0, w, []float32{0.5})
		}
		return w[0]
	}
	for _, c := range []struct {
		name  string
		o     disdel.Optimizer
		steps int
		want  float64
	}{
		{"sgd", disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}, 2, 1 - 0.1*0.5 - 0.1*0.5},
		{
			"momentum",
			disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9}},
			2,
			1 - 0.1*0.5 - 0.1*(0.9*0.5+0.5),
		},
		{"decay", disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1, WeightDecay: 0.2}}, 1, 1 - 0.1*(0.5+0.2)},
		{
			"nesterov",
			disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9, Nesterov: true}},
			1,
			1 - 0.1*(0.5+0.9*0.5),
		},
		// a constant gradient moves by the rate
		{"adam", disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.1}}, 3, 1 - 3*0.1},
		{"rmsprop", disdel.Optimizer{RMSprop: &disdel.RMSprop{LearningRate: 0.1, Alpha: 0.75}}, 1, 1 - 0.1*2},
		{"adagrad", disdel.Optimizer{Adagrad: &disdel.Adagrad{LearningRate: 0.1}}, 2, 1 - 0.1*(1+1/math.Sqrt2)},
		{"lion", disdel.Optimizer{Lion: &disdel.Lion{LearningRate: 0.1, WeightDecay: 0.2}}, 1, 1*(1-0.1*0.2) - 0.1},
		// a step is a share of the weight, whatever the gradient
		{"lamb", disdel.Optimizer{LAMB: &disdel.LAMB{LearningRate: 0.1, WeightDecay: 0.2}}, 2, 0.9 * 0.9},
		{"adamw", disdel.Optimizer{AdamW: &disdel.Adam{LearningRate: 0.1, WeightDecay: 0.2}}, 1, 1*(1-0.1*0.2) - 0.1},
	} {
		if got := step(c.o, c.steps); math.Abs(float64(got)-c.want) > 1e-5 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWeightsComeBackAsTheyWent(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	e := make1(t, g, engine.Spec{BatchSize: 1})
	want := engine.InitWeights(g, disdel.Init{Seed: 7})
	if diff := cmp.Diff(want, engine.Weights(e)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, p := range g.Params() {
		if want[i].Name != p.Name {
			t.Errorf("weight %d is %s, want %s", i, want[i].Name, p.Name)
		}
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	g := graph(t, []int{1, 4, 4}, 3, disdel.Layer{Kind: "dense", Units: 3, Activation: "softmax"})
	e := make1(t, g, engine.Spec{BatchSize: 4, Optimizer: sgd1, Training: true})
	x, y := batch(g, 4, 3, 1)
	bad := engine.InitWeights(g, disdel.Init{})
	bad[0].Data[2] = float32(math.NaN())
	for name, c := range map[string]struct {
		err  error
		want disdel.Kind
	}{
		"too many rows": {second(enginetest.Train(e, make([]float32, 5*16), make([]int32, 5))), disdel.Invalid},
		"no rows":       {second(enginetest.Train(e, nil, nil)), disdel.Invalid},
		"few values":    {second(enginetest.Train(e, x[:17], y)), disdel.Invalid},
		"label":         {second(enginetest.Train(e, x, []int32{0, 1, 2, 3})), disdel.Invalid},
		"NaN weight":    {engine.SetWeights(e, bad), disdel.Diverged},
		"few weights":   {engine.SetWeights(e, bad[:1]), disdel.Corrupt},
		"NaN input":     {second(enginetest.Train(e, append([]float32{float32(math.Inf(1))}, x[1:]...), y)), disdel.Diverged},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
}

func second(_ float64, err error) error { return err }

// Adam follows the formula in float64: 1 - beta2 of a rounded beta2 is off by 1e-5 after the first step.
func TestAdamKeepsItsDigits(t *testing.T) {
	o := newAdam(disdel.Adam{LearningRate: 1e-3}, false, []int{1})
	w, m, v, want := []float32{1}, 0.0, 0.0, 1.0
	for step := 1; step <= 1000; step++ {
		g := math.Sin(float64(step))
		o.next()
		o.step(0, w, []float32{float32(g)})
		m, v = 0.9*m+0.1*g, 0.999*v+0.001*g*g
		if got := float64(o.arrays[1][0][0]); step == 1 && math.Abs(got-v) > 1e-6*v {
			t.Errorf("the second moment is %v, want %v", got, v)
		}
		want -= 1e-3 * m / (1 - math.Pow(0.9, float64(step))) / (math.Sqrt(v/(1-math.Pow(0.999, float64(step)))) + 1e-8)
	}
	if math.Abs(float64(w[0])-want) > 1e-5 {
		t.Errorf("the weight is %v, want %v", w[0], want)
	}
}
