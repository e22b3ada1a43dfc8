package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Pixels of 16 lanes that a tile computes in pairs have the bits of pixels that it computes one by one: those of a
// sequence, of images with padding and with strides, of groups, and of reductions in parts.
func TestPairedPixelsHaveTheBitsOfSingleOnes(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		one := func(in, filters, h, v, k, stride, pad, groups int) Conv {
			return Conv{
				In: Image{C: in, H: h, W: v, Lanes: lanes}, Filters: filters, KH: k, KW: k, SH: stride, SW: stride,
				DH: 1, DW: 1, Top: pad, Left: pad, OH: (h+2*pad-k)/stride + 1, OW: (v+2*pad-k)/stride + 1, Groups: groups,
			}
		}
		sequence := one(7, 21, 5, 1, 1, 1, 0, 1)
		large := one(600, 530, 3, 1, 1, 1, 0, 1)
		for _, c := range []Conv{
			sequence, large, one(5, 19, 4, 5, 3, 1, 1, 1), one(6, 34, 6, 7, 3, 2, 1, 2), one(1, 16, 4, 4, 2, 2, 0, 1),
		} {
			x, dy := random(rng, c.In.Len()), random(rng, c.Out().Len())
			weights, bias := random(rng, c.WeightLen()), random(rng, c.BiasLen())
			y, dx := random(rng, c.Out().Len()), random(rng, c.In.Len())
			pass := func(vectors int, add bool) (y2, dx2 []float32) {
				of := *w
				of.vectors = vectors
				y2, dx2 = slices.Clone(y), slices.Clone(dx)
				of.Forward(&c, x, weights, bias, y2)
				of.BackData(&c, dy, weights, dx2, add)
				return y2, dx2
			}
			for _, add := range []bool{false, true} {
				wantY, wantDX := pass(1, add)
				gotY, gotDX := pass(w.vectors, add)
				if !slices.Equal(gotY, wantY) || !slices.Equal(gotDX, wantDX) {
					t.Errorf("%+v, add %v: pairs have other bits", c, add)
				}
			}
		}
	})
}

// Products of recurrent layers have the bits of the dense layer that they are, forward and back to its input, for any
// number of rows, workers and gates.
func TestRecurrentProductsHaveTheBitsOfADenseLayer(t *testing.T) {
	for _, s := range plainSets() {
		rng := rand.New(rand.NewPCG(3, 4))
		for _, rows := range []int{1, 7, 16, 21} {
			for _, units := range []int{1, 17, 40} {
				for _, workers := range []int{1, 3} {
					testRecurrentProducts(t, s, rng, rows, units, workers)
				}
			}
		}
	}
}

func testRecurrentProducts(t *testing.T, s Set, rng *rand.Rand, rows, units, workers int) {
	t.Helper()
	width := plan.Padded(rows)
	c := plan.Dense(units, 3*units, width)
	weights, bias := make([]float32, c.WeightLen()), random(rng, c.BiasLen())
	ImportWeights(&c, weights, random(rng, 3*units*units))
	r := &Recurrent{
		Sequence: Sequence{Image: Image{C: units, H: 2, W: 1, Lanes: width}, Rows: rows},
		Y:        random(rng, 2*units*width), DY: random(rng, 2*units*width), Gates: random(rng, 2*3*units*width),
		Products: make([]float32, 3*units*width),
	}
	y, dx := make([]float32, len(r.Products)), slices.Clone(r.DY)
	turned := make([]float32, plan.Padded(units)*3*units)
	NewTeam(s, workers, 1).Run(func(w *Worker) {
		w.RecurrentProducts(r, &c, 1, weights, bias)
		w.TurnWeights(&c, weights, turned)
		w.Sync()
		w.RecurrentBack(r, &c, 1, turned)
		w.Forward(&c, r.Y, weights, bias, y)
		w.BackData(&c, r.Gates[len(y):], weights, dx, true)
	})
	for i := range y {
		if i%width < rows && r.Products[i] != y[i] {
			t.Fatalf("%s, %d rows, %d units, %d workers: product %d is %v, not %v", s.Name, rows, units, workers, i,
				r.Products[i], y[i])
		}
	}
	for i := range dx {
		if i%width < rows && r.DY[i] != dx[i] {
			t.Fatalf("%s, %d rows, %d units, %d workers: gradient %d is %v, not %v", s.Name, rows, units, workers, i,
				r.DY[i], dx[i])
		}
	}
}
