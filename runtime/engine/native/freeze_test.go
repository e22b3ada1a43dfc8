package native

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// wave has the values that the reference program gave its arrays.
func wave(k, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(0.3 * math.Sin(1.7*float64(i)+float64(k)))
	}
	return out
}

func waveWeights(g *model.Graph) (out disdel.Weights) {
	for k, p := range g.Params() {
		t := disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: wave(k, p.Len())}
		if engine.IsVariance(p.Name) {
			for i, v := range t.Data {
				t.Data[i] = float32(math.Abs(float64(v))) + 0.5
			}
		}
		out = append(out, t)
	}
	return out
}

// smallCNN is a convolution with a batch norm, and two dense layers, with the layers of freeze frozen.
func smallCNN(t *testing.T, freeze ...string) *model.Graph {
	t.Helper()
	g := graphOf(t, model.Shape{2, 6, 6}, func(b *model.Builder) {
		x := b.Same("r", b.BatchNorm("n", b.Conv("a", 0, 4, model.Square(3, 1, 1), 1, false)), model.OpReLU)
		x = b.Same("r2", b.Dense("b", b.Flatten("f", x), 8), model.OpReLU)
		b.Same("softmax", b.Dense("fc", x, 3), model.OpSoftmax)
	})
	if len(freeze) > 0 {
		if err := g.Freeze(disdel.Init{Freeze: strings.Join(freeze, ", ")}); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// Frozen layers give the steps of PyTorch 1.13 with requires_grad=False and batch norms in eval mode. Losses and the
// first weights after four steps are from there.
func TestFrozenLayersAgreeWithPyTorch(t *testing.T) {
	x := wave(9, 5*72)
	for i := range x {
		x[i] *= 3
	}
	y := []int32{0, 1, 2, 1, 0}
	for name, c := range map[string]struct {
		optimizer          disdel.Optimizer
		losses, head, body []float64
	}{
		"sgd": {
			disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9, WeightDecay: 0.01}},
			[]float64{1.0603553057, 1.0403640270, 1.0054910183, 0.9614946246},
			[]float64{0.2242043018, 0.2535009384, -0.2019101679, -0.1077044159},
			[]float64{-0.2879802585, 0.1178550199, 0.2461576164, -0.1917782575},
		},
		"adam": {
			disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}},
			[]float64{1.0603553057, 1.0225156546, 0.9873364568, 0.9596605301},
			[]float64{0.2319634110, 0.2380592525, -0.2086165845, -0.1011215001},
			[]float64{-0.3265198171, 0.0826891587, 0.2175370008, -0.2263853550},
		},
	} {
		g := smallCNN(t, "a", "n")
		for _, how := range []engine.Spec{
			{}, {Threads: 2}, {ClipNorm: 1e6}, {StepMemory: disdel.StepMemory{Recompute: "auto"}},
		} {
			how.BatchSize, how.Training, how.Optimizer = 5, true, c.optimizer
			e := newEngine(t, g, how)
			start := waveWeights(g)
			if err := engine.SetWeights(e, start); err != nil {
				t.Fatal(err)
			}
			for k, want := range c.losses {
				loss, err := enginetest.Train(e, x, y)
				if err != nil || math.Abs(loss-want) > 1e-5 {
					t.Errorf("%s: step %d: loss %v, PyTorch %v, %v", name, k, loss, want, err)
				}
			}
			for i, v := range engine.Weights(e) {
				frozen := strings.HasPrefix(v.Name, "a.") || strings.HasPrefix(v.Name, "n.")
				if same := slices.Equal(v.Data, start[i].Data); same != frozen {
					t.Errorf("%s: %s stayed as it was: %v", name, v.Name, same)
				}
				for k, want := range map[string][]float64{"fc.weight": c.head, "b.weight": c.body}[v.Name] {
					if math.Abs(float64(v.Data[k])-want) > 1e-5 {
						t.Errorf("%s: value %d of %s is %v, PyTorch's %v", name, k, v.Name, v.Data[k], want)
					}
				}
			}
		}
	}
}

// A frozen layer has no moments, and Reset leaves its statistics alone.
func TestFrozenLayersHaveNoState(t *testing.T) {
	g := smallCNN(t, "a", "n")
	e := newEngine(t, g, engine.Spec{
		BatchSize: 5, Training: true, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}},
	})
	if err := engine.SetWeights(e, waveWeights(g)); err != nil {
		t.Fatal(err)
	}
	if err := e.Reset(engine.Statistic); err != nil {
		t.Fatal(err)
	}
	for i, v := range engine.Weights(e) {
		if want := waveWeights(g)[i].Data; !slices.Equal(v.Data, want) {
			t.Errorf("Reset changed %s", v.Name)
		}
	}
	for _, a := range e.State() {
		frozen := strings.HasPrefix(a.Name, "a.") || strings.HasPrefix(a.Name, "n.")
		if frozen != (a.Role == engine.Frozen) {
			t.Errorf("%s is a %v", a.Name, a.Role)
		}
	}
}

// The layers above frozen ones move by the same gradients: the first step gives the same bits with and without.
func TestFreezingLeavesTheOtherGradients(t *testing.T) {
	for name, f := range networks() {
		plain := build(t, name, f)
		if slices.ContainsFunc(plain.Nodes, func(n model.Node) bool { return n.Op == model.OpBatchNorm }) {
			continue // frozen, it has other outputs
		}
		head, ok := plain.Head()
		if !ok {
			continue
		}
		frozen := build(t, name, f)
		if err := frozen.Freeze(disdel.Init{Freeze: "*", Except: head}); err != nil {
			t.Fatal(name, err)
		}
		var after [2]disdel.Weights
		x, y := batch(plain, 7, 3)
		for i, g := range []*model.Graph{plain, frozen} {
			e := initialized(t, g, engine.Spec{BatchSize: 7, Training: true, Optimizer: disdel.Optimizer{
				SGD: &disdel.SGD{LearningRate: 0.1},
			}})
			if _, err := enginetest.Train(e, x, y); err != nil {
				t.Fatal(name, err)
			}
			after[i] = engine.Weights(e)
		}
		for i, v := range after[0] {
			want := v.Data
			if !strings.HasPrefix(v.Name, head+".") {
				want = namedWeights(plain)[i].Data
			}
			if !slices.Equal(after[1][i].Data, want) {
				t.Errorf("%s: %s is another", name, v.Name)
			}
		}
	}
}

// Freezing all but the head of a network saves moments, gradients and most of the activations.
func TestFrozenLayersSaveMemory(t *testing.T) {
	network := disdel.Network{Name: "resnet18", Input: []int{3, 32, 32}, Classes: 10}
	spec := engine.Spec{BatchSize: 32, Training: true, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}}
	var of [2]footprint.Footprint
	for i, freeze := range []string{"", "conv1, bn1, layer*"} {
		network.Init.Freeze = freeze
		g, err := model.Build(network)
		if err != nil {
			t.Fatal(err)
		}
		if of[i], err = (Backend{}).Footprint(enginetest.On(g, spec)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []footprint.Category{footprint.Moments, footprint.Gradients, footprint.Backward} {
		if all, few := of[0].Sum(c), of[1].Sum(c); few > all/50 {
			t.Errorf("%s: %v of %v", c, few, all)
		}
	}
	if all, few := of[0].Total(), of[1].Total(); few > all/2 {
		t.Errorf("%v of %v", few, all)
	}
}

// A training in bf16 takes the steps of float32 but for rounding, whichever layers are frozen.
func TestFrozenLayersTrainInBF16(t *testing.T) {
	x := wave(9, 5*72)
	y := []int32{0, 1, 2, 1, 0}
	frozen := func(layers string) func(*model.Graph) error {
		return func(g *model.Graph) error { return g.Freeze(disdel.Init{Freeze: layers}) }
	}
	adapters := func(layers string, alpha float64) func(*model.Graph) error {
		return func(g *model.Graph) error {
			return g.Adapt(disdel.Init{}, disdel.LoRA{Rank: 2, Alpha: alpha, Layers: layers})
		}
	}
	for name, change := range map[string]func(*model.Graph) error{
		"convolution":   frozen("a"),
		"norm":          frozen("n"),
		"first layers":  frozen("a, n"),
		"middle":        frozen("n, b"),
		"all but head":  frozen("a, n, b"),
		"head":          frozen("fc"),
		"adapters":      adapters("*", 4),
		"first adapter": adapters("b", 4),
		"last adapter":  adapters("fc", 2),
	} {
		g := smallCNN(t)
		if err := change(g); err != nil {
			t.Fatal(err)
		}
		var losses [2][]float64
		for k, precision := range []disdel.Precision{"", disdel.PrecisionBF16} {
			e := newEngine(t, g, engine.Spec{
				BatchSize: 5, Training: true, Precision: precision,
				Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}},
			})
			if err := engine.SetWeights(e, waveWeights(g)); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				loss, err := enginetest.Train(e, x, y)
				if err != nil {
					t.Errorf("%s, %s: %v", name, precision, err)
				}
				losses[k] = append(losses[k], loss)
			}
		}
		for k, loss := range losses[1] {
			if !(math.Abs(loss-losses[0][k]) < 0.01) {
				t.Errorf("%s: step %d: the loss is %v, and with float32 %v", name, k, loss, losses[0][k])
			}
		}
	}
}
