package gorgonia

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// randomNet draws networks whose layers meet as nobody would have thought of.
type randomNet struct {
	*model.Builder
	rng   *rand.Rand
	names int
}

func (r *randomNet) name(kind string) string {
	r.names++
	return fmt.Sprintf("%s%d", kind, r.names)
}

func (r *randomNet) pick(of ...int) int { return of[r.rng.IntN(len(of))] }

var activations = []model.Op{model.OpReLU, model.OpReLU6, model.OpSigmoid, model.OpTanh, model.OpHardSwish}

func (r *randomNet) activation() {
	op := activations[r.rng.IntN(len(activations))]
	r.Same(r.name(op.String()), r.Last(), op)
}

// window fits an image, its kernel square or not, with padding that is the same on all sides or not.
func (r *randomNet) window(s model.Shape) model.Window {
	w := model.Window{
		Kernel: model.Sides{H: min(r.pick(1, 2, 3), s[1]), W: min(r.pick(1, 2, 3), s[2])},
		Stride: model.Sides{H: r.pick(1, 1, 2), W: r.pick(1, 1, 2)}, Dilation: model.Sides{H: 1, W: 1},
	}
	switch r.rng.IntN(3) {
	case 0:
		w.Pad = model.Padding{Top: w.Kernel.H / 2, Bottom: w.Kernel.H / 2, Left: w.Kernel.W / 2, Right: w.Kernel.W / 2}
	case 1:
		w.Pad = model.Padding{Bottom: w.Kernel.H / 2, Left: w.Kernel.W / 2}
	}
	return w
}

func (r *randomNet) imageLayer() {
	in := r.Last()
	s := r.Out(in)
	switch r.rng.IntN(9) {
	case 0, 1:
		groups := 1
		if r.rng.IntN(4) == 0 {
			groups = s[0]
		}
		r.Conv(r.name("conv"), in, groups*r.pick(1, 2, 3), r.window(s), groups, r.rng.IntN(2) == 0)
		if r.rng.IntN(2) == 0 {
			r.activation()
		}
	case 2:
		r.Norm(r.name("norm"), in, model.Norm{NoScale: r.rng.IntN(3) == 0, NoCenter: r.rng.IntN(3) == 0})
	case 3:
		r.activation()
	case 4:
		r.Pool(r.name("max"), in, model.OpMaxPool, r.window(s))
	case 5:
		r.Pool(r.name("avg"), in, model.OpAvgPool, r.window(s))
	case 6:
		same := model.Window{
			Kernel: model.Sides{H: 3, W: 3}, Stride: model.Sides{H: 1, W: 1},
			Dilation: model.Sides{H: 1, W: 1}, Pad: model.Padding{Top: 1, Bottom: 1, Left: 1, Right: 1},
		}
		r.Add(r.name("sum"), in, r.Conv(r.name("conv"), in, s[0], same, 1, true))
	case 7:
		r.Concat(r.name("cat"), in,
			r.Conv(r.name("conv"), in, 2,
				model.Window{Kernel: model.Sides{H: 1, W: 1}, Stride: model.Sides{H: 1, W: 1}, Dilation: model.Sides{H: 1, W: 1}},
				1, true))
	case 8:
		if s[1]*s[2] > 1 {
			r.GlobalPool(r.name("global"), in)
		}
	}
}

func (r *randomNet) vectorLayer() {
	switch in := r.Last(); r.rng.IntN(4) {
	case 0, 1:
		r.Dense(r.name("dense"), in, r.pick(1, 3, 17))
	case 2:
		r.activation()
	case 3:
		r.BatchNorm(r.name("norm"), in)
	}
}

func randomGraph(t *testing.T, seed uint64) (*model.Graph, string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 77))
	sides := []int{1, 2, 3, 5, 8}
	input := model.Shape{1 + rng.IntN(4), sides[rng.IntN(5)], sides[rng.IntN(5)]}
	r := &randomNet{Builder: model.NewBuilder("random", input), rng: rng}
	r.Conv("first", 0, 3, model.Square(1, 1, 0), 1, true)
	for range 1 + rng.IntN(4) {
		r.imageLayer()
	}
	if len(r.Out(r.Last())) == 3 {
		r.Flatten("flat", r.Last())
	}
	for range rng.IntN(3) {
		r.vectorLayer()
	}
	r.Dense("last", r.Last(), r.pick(1, 2, 5))
	loss := "crossEntropy"
	switch rng.IntN(5) {
	case 0:
		r.Same("end", r.Last(), model.OpSoftmax)
	case 1:
		r.Same("end", r.Last(), model.OpSigmoid)
		loss = []string{"mse", "binaryCrossEntropy"}[rng.IntN(2)]
	case 2:
		r.Same("end", r.Last(), model.OpSoftmax)
		loss = []string{"mse", "binaryCrossEntropy"}[rng.IntN(2)]
	case 3:
		loss = "mse"
	}
	g, err := r.Graph()
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return g, loss
}

// What a step does to each array of weights, in both backends, for networks that a seed draws. What moves a thousandth
// of all is rounding, such as a bias before a batch norm; what differs by a tenth is another gradient.
func TestRandomNetworksTrainAlike(t *testing.T) {
	networks := 300
	if testing.Short() {
		networks = 60
	}
	refused := 0
	for seed := range uint64(networks) {
		g, loss := randomGraph(t, seed)
		cfg := engine.Spec{BatchSize: 6, Optimizer: sgd1, Loss: loss, Training: true}
		oracle, err := New(enginetest.On(g, cfg))
		if errors.Is(err, disdel.Invalid) {
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		mine, err := native.New(enginetest.On(g, cfg))
		if err != nil {
			t.Fatal(err)
		}
		stepAlike(t, seed, g, oracle, mine)
		oracle.Close()
		mine.Close()
	}
	if refused > networks/10 {
		t.Errorf("gorgonia refuses %d of %d", refused, networks)
	}
}

func stepAlike(t *testing.T, seed uint64, g *model.Graph, oracle *Engine, mine *native.Engine) {
	t.Helper()
	start := spread(engine.InitWeights(g, disdel.Init{Seed: int64(seed)}))
	x, y := batch(g, 6, g.Output().Len(), seed)
	var losses [2]float64
	var moved [2]disdel.Weights
	for i, e := range []engine.Engine{oracle, mine} {
		if err := engine.SetWeights(e, start); err != nil {
			t.Fatal(err)
		}
		loss, err := enginetest.Train(e, x, y)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		losses[i], moved[i] = loss, engine.Weights(e)
	}
	if math.Abs(losses[0]-losses[1]) > 1e-3*(1+losses[1]) {
		t.Errorf("seed %d: gorgonia's loss is %v, the engine's %v\n%s", seed, losses[0], losses[1], described(g))
		return
	}
	whole := 0.0
	for i, w := range start {
		for k, v := range w.Data {
			whole = math.Hypot(whole, float64(moved[1][i].Data[k]-v))
		}
	}
	for i, w := range start {
		var far, size float64
		for k, v := range w.Data {
			a, b := float64(moved[0][i].Data[k]-v), float64(moved[1][i].Data[k]-v)
			far, size = far+(a-b)*(a-b), size+b*b
		}
		if far, size = math.Sqrt(far), math.Sqrt(size); far > 0.1*size+1e-3*whole {
			t.Errorf("seed %d: %s moved by %.4g, and otherwise by %.4g\n%s", seed, w.Name, size, far, described(g))
			return
		}
	}
}

func described(g *model.Graph) (text string) {
	for _, n := range g.Nodes {
		text += fmt.Sprintf("  %s %v %v\n", n.Name, n.Inputs, n.Out)
	}
	return text
}

// A network that has nothing to learn has a loss here as well.
func TestANetworkWithoutWeightsHasALoss(t *testing.T) {
	b := model.NewBuilder("none", model.Shape{1, 2, 2})
	b.Same("softmax", b.Flatten("flat", b.Last()), model.OpSoftmax)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	e := make1(t, g, engine.Spec{BatchSize: 3, Optimizer: sgd1, Training: true})
	x, y := batch(g, 3, 4, 1)
	loss, err := enginetest.Train(e, x, y)
	sum, _, err2 := enginetest.Evaluate(e, x, y)
	if err != nil || err2 != nil || math.Abs(loss-sum/3) > 1e-5 {
		t.Errorf("a step's loss is %v, the evaluation's %v; %v, %v", loss, sum/3, err, err2)
	}
}
