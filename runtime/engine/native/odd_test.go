package native

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// drawn is a network of layers that nobody would choose: odd sizes, few channels or many that fill no vector, strides
// up to 3, dilations, groups, forks.
func drawn(t *testing.T, seed uint64) *model.Graph {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 77))
	pick := func(from ...int) int { return from[rng.IntN(len(from))] }
	input := model.Shape{pick(1, 1, 3, 7, 33), 5 + rng.IntN(30), 5 + rng.IntN(30)}
	b := model.NewBuilder(fmt.Sprintf("drawn-%d", seed), input)
	window := func(in model.Shape, most, stride int) model.Window {
		w := model.Window{
			Kernel:   model.Sides{H: 1 + rng.IntN(min(most, in[1])), W: 1 + rng.IntN(min(most, in[2]))},
			Stride:   model.Sides{H: 1 + rng.IntN(stride), W: 1 + rng.IntN(stride)},
			Dilation: model.Sides{H: 1, W: 1},
		}
		if 2*w.Kernel.H <= in[1] && rng.IntN(4) == 0 {
			w.Dilation.H = 2
		}
		if 2*w.Kernel.W <= in[2] && rng.IntN(4) == 0 {
			w.Dilation.W = 2
		}
		pad := func(kernel int) int { return rng.IntN((kernel + 1) / 2) }
		w.Pad = model.Padding{
			Top: pad(w.Kernel.H), Bottom: pad(w.Kernel.H), Left: pad(w.Kernel.W), Right: pad(w.Kernel.W),
		}
		return w
	}
	x := 0
	for i := range 3 + rng.IntN(4) {
		name, in := fmt.Sprintf("layer%d", i), b.Out(x)
		switch rng.IntN(9) {
		case 0:
			x = b.Conv(name, x, in[0], window(in, 3, 3), in[0], rng.IntN(2) == 0)
		case 1:
			x = b.Pool(name, x, model.OpMaxPool, window(in, 3, 3))
		case 2:
			w := window(in, 3, 2)
			w.CountPad = rng.IntN(2) == 0
			x = b.Pool(name, x, model.OpAvgPool, w)
		case 3:
			one := model.Square(1, 1, 0)
			a, c := b.Conv(name+".a", x, pick(1, 7, 16), one, 1, true), b.Conv(name+".b", x, pick(1, 7, 33), one, 1, false)
			x = b.Concat(name, a, b.Same(name+".r", c, model.OpReLU), x)
		case 4:
			x = b.Add(name, b.BatchNorm(name+".n", b.Conv(name+".a", x, in[0], model.Square(1, 1, 0), 1, false)), x)
		default:
			groups := 1
			for _, n := range []int{2, 3, 7, 11} {
				if in[0]%n == 0 && rng.IntN(2) == 0 {
					groups = n
				}
			}
			x = b.Conv(name, x, groups*pick(1, 2, 5, 7, 16, 33), window(in, 5, 3), groups, rng.IntN(2) == 0)
			if rng.IntN(2) == 0 {
				x = b.BatchNorm(name+".n", x)
			}
		}
		switch op := []model.Op{
			model.OpReLU, model.OpReLU6, model.OpTanh, model.OpSigmoid, model.OpHardSwish, model.OpELU, model.OpSoftplus,
			model.OpLeakyReLU, model.OpHardSigmoid,
		}; rng.IntN(3) {
		case 0:
			x = b.Same(name+".s", x, op[rng.IntN(len(op))])
		case 1:
			x = b.Same(name+".s", x, model.OpReLU)
		}
	}
	if rng.IntN(2) == 0 {
		x = b.GlobalPool("pool", x)
	}
	b.Same("softmax", b.Dense("fc", b.Flatten("flatten", x), 1+rng.IntN(40)), model.OpSoftmax)
	g, err := b.Graph()
	if err != nil {
		t.Fatalf("network %d: %v", seed, err)
	}
	return g
}

// A network outside of the zoo says of one row, or a few, what it says of them among lanes, to the bit, on every path
// and number of threads; and what plain Go says of them, but for rounding.
func TestDrawnNetworksSayOfOneRowWhatTheySayOfMany(t *testing.T) {
	networks := 40
	if testing.Short() {
		networks = 8
	}
	plain := make([][]float32, networks)
	sets := testedSets()
	slices.Reverse(sets) // plain Go first
	byRows := 0
	for _, s := range sets {
		t.Setenv(kernel.Variable, s.Name)
		for seed := range networks {
			g := drawn(t, uint64(seed))
			x, _ := batch(g, 16, uint64(seed))
			size, outputs := g.Input().Len(), g.Output().Len()
			of := func(cfg engine.Spec, rows int) []float32 {
				t.Helper()
				e := newEngine(t, g, cfg)
				if err := engine.SetWeights(e, lived(g)); err != nil {
					t.Fatal(err)
				}
				if e.plan.ByRows {
					byRows++
				}
				out, err := enginetest.Predict(e, x[:rows*size], rows)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			want := of(engine.Spec{BatchSize: 16, Training: true, Exact: true, Optimizer: sgd1}, 16)
			if plain[seed] == nil {
				plain[seed] = want
			}
			for i, v := range want {
				if d := math.Abs(float64(v - plain[seed][i])); !(d < 1e-4) {
					t.Fatalf("%s, %s: output %d is %v, and %v in plain Go", g.Name, s.Name, i, v, plain[seed][i])
				}
			}
			for _, rows := range []int{1, 2 + seed%3} {
				for _, threads := range []int{1, 3} {
					got := of(engine.Spec{BatchSize: rows, Threads: threads, Exact: true}, rows)
					if !slices.Equal(got, want[:rows*outputs]) {
						t.Fatalf("%s, %s: %d rows, %d threads: %v, not %v", g.Name, s.Name, rows, threads, got, want[:rows*outputs])
					}
				}
			}
		}
	}
	if byRows < networks {
		t.Errorf("%d engines of %d networks lay rows behind each other", byRows, networks)
	}
}
