package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/plan"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// winogradCase is a convolution that Winograd's algorithm has, with all that it works on in one piece of memory, as a
// slab is.
type winogradCase struct {
	c                        Conv
	rows                     int
	x, y, dy, dx             []float32 // in the kernels' layouts
	wt, dw, bias             []float32
	scratch                  []float32
	xs, weights, biases, dys []float32 // in PyTorch's
}

func newWinogradCase(rng *rand.Rand, c Conv, rows int) *winogradCase {
	k := &winogradCase{c: c, rows: rows}
	need := max(c.ForwardLen(), c.BackDataLen(), c.BackWeightsLen())
	all := make([]float32, 2*c.In.Len()+2*c.Out().Len()+2*c.WeightLen()+c.BiasLen()+need+8192)
	take := func(n int) (part []float32) {
		n = plan.Padded(n)
		part, all = all[:n], all[n:]
		return part
	}
	k.x, k.dx, k.y, k.dy = take(c.In.Len()), take(c.In.Len()), take(c.Out().Len()), take(c.Out().Len())
	k.wt, k.dw, k.bias, k.scratch = take(c.WeightLen()), take(c.WeightLen()), take(c.BiasLen()), take(need)
	k.xs, k.dys = random(rng, rows*c.In.C*c.In.H*c.In.W), random(rng, rows*c.Filters*c.OH*c.OW)
	k.weights, k.biases = random(rng, c.Filters*c.In.C*c.Taps()), random(rng, c.Filters)
	ImportWeights(&k.c, k.wt, k.weights)
	copy(k.bias, k.biases)
	k.spoil()
	return k
}

// spoil has nothing of what was computed before stay.
func (k *winogradCase) spoil() {
	for _, v := range [][]float32{k.y, k.dx, k.dw, k.scratch} {
		for i := range v {
			v[i] = float32(math.NaN()) // whatever was there before
		}
	}
}

// run computes forward and both gradients; add: that of the input is added to 1.
func (k *winogradCase) run(team *Team, add bool) (y, dx, dw []float32) {
	if add {
		for i := range k.dx {
			k.dx[i] = 1
		}
	}
	team.Run(func(w *Worker) {
		w.Import(k.x, k.c.In, Border{}, k.xs, k.rows)
		w.Import(k.dy, k.c.Out(), Border{}, k.dys, k.rows)
		w.Sync()
		w.WinogradForward(&k.c, k.x, k.wt, k.bias, k.y, k.scratch)
		w.WinogradBackData(&k.c, k.dy, k.wt, k.dx, k.scratch, add)
		w.WinogradBackWeights(&k.c, k.x, k.dy, k.dw, k.scratch)
	})
	y, dx, dw = make([]float32, len(k.dys)), make([]float32, len(k.xs)), make([]float32, len(k.weights))
	ExportWeights(&k.c, dw, k.dw)
	team.workers[0].Export(y, k.y, k.c.Out(), k.rows)
	team.workers[0].Export(dx, k.dx, k.c.In, k.rows)
	return y, dx, dw
}

// winogradGeometry draws a convolution that an algorithm is for.
func winogradGeometry(rng *rand.Rand, t winograd.Tile) (c Conv, rows int) {
	rows = 1 + rng.IntN(35)
	c = Conv{
		In:      Image{C: 16 * (1 + rng.IntN(2)), H: 2 + rng.IntN(7), W: 2 + rng.IntN(7), Lanes: plan.Padded(rows)},
		Filters: 16 * (1 + rng.IntN(3)), KH: t.H.Taps, KW: t.W.Taps, SH: 1, SW: 1, DH: 1, DW: 1, Groups: 1,
		ReLU: rng.IntN(2) == 0, Tile: t, BackTile: t,
	}
	for _, side := range []struct {
		of                winograd.Side
		size, pad, output *int
	}{{t.H, &c.In.H, &c.Top, &c.OH}, {t.W, &c.In.W, &c.Left, &c.OW}} {
		n := side.of.Taps
		*side.pad = rng.IntN(n)
		*side.output = max(1, *side.size+*side.pad+rng.IntN(n)-n+1)
		if side.of.IsWhole() {
			*side.size, *side.pad, *side.output = side.of.In, side.of.In-1, side.of.In
		}
	}
	if rng.IntN(2) == 0 {
		c.ActiveRows = plan.Padded(rows)
		c.In.Lanes += 16 * rng.IntN(2)
	}
	return c, rows
}

// worst is the largest difference over the largest value.
func worst(got []float32, want []float64) (away float64) {
	var largest float64
	for i, v := range want {
		away, largest = max(away, math.Abs(float64(got[i])-v)), max(largest, math.Abs(v))
		if got[i] != got[i] {
			return math.NaN()
		}
	}
	return away / largest
}

// winogradError is the largest error that is promised.
func winogradError(t winograd.Tile) float64 {
	side, one := t.Side()
	switch n := side.Points(); {
	case n < 5:
		return 2e-6
	case one || n == 5:
		return 5e-6
	default:
		return 2e-5
	}
}

// Winograd's algorithm is the convolution, forward and for its input and its weights, with any padding, at any size,
// for some of the lanes; to the error that its matrices are known for, over the largest value: 2 parts in a million
// with three and four points a side, 5 with five or along one side alone, 2 in 100,000 with six and seven. Threads do
// not change a bit.
func TestWinogradIsTheConvolution(t *testing.T) {
	for i, tile := range winograd.Tiles() {
		rng, cases, adds := rand.New(rand.NewPCG(3, uint64(i))), make([]*winogradCase, some(8)), make([]bool, some(8))
		wanted := make([]naive, len(cases))
		for i := range cases {
			c, rows := winogradGeometry(rng, tile)
			cases[i], adds[i] = newWinogradCase(rng, c, rows), rng.IntN(2) == 0
			wanted[i] = cases[i].definition(adds[i])
		}
		for _, s := range plainSets() {
			t.Run(fmt.Sprintf("%v/%s", tile, s.Name), func(t *testing.T) {
				for i, k := range cases {
					if s.Name == portable().Name && i == some(2) {
						break // it takes its time
					}
					k.spoil()
					k.isTheConvolution(t, s, &wanted[i], winogradError(tile), adds[i])
				}
			})
		}
	}
}

// definition is the convolution and its gradients in double precision.
func (k *winogradCase) definition(add bool) naive {
	c := &k.c
	n := naive{
		c: c, rows: k.rows,
		y: make([]float64, len(k.dys)), dx: make([]float64, len(k.xs)), dw: make([]float64, len(k.weights)),
	}
	for i := range n.y {
		n.y[i] = float64(k.biases[i/(c.OH*c.OW)%c.Filters])
	}
	for i := range n.dx {
		if add {
			n.dx[i] = 1
		}
	}
	n.each(func(y, x, w int) {
		n.y[y] += float64(k.xs[x]) * float64(k.weights[w])
		n.dx[x] += float64(k.dys[y]) * float64(k.weights[w])
		n.dw[w] += float64(k.dys[y]) * float64(k.xs[x])
	})
	for i, v := range n.y {
		if c.ReLU {
			n.y[i] = max(v, 0)
		}
	}
	return n
}

// isTheConvolution fails if a path comes to other values than the definition, or to other bits on three threads.
func (k *winogradCase) isTheConvolution(t *testing.T, s Set, n *naive, bound float64, add bool) {
	t.Helper()
	y, dx, dw := k.run(NewTeam(s, 1, 1), add)
	if a, b, d := worst(y, n.y), worst(dx, n.dx), worst(dw, n.dw); !(a < bound && b < bound && d < bound) {
		t.Fatalf("%+v, %d rows, add %v: off by %.1e forward, %.1e and %.1e back", k.c, k.rows, add, a, b, d)
	}
	y3, dx3, dw3 := k.run(NewTeam(s, 3, 1), add)
	if !slices.Equal(y, y3) || !slices.Equal(dx, dx3) || !slices.Equal(dw, dw3) {
		t.Fatalf("%+v: three threads come to other bits", k.c)
	}
}

// What the planner chooses is an algorithm for the convolution, whatever its kernel, padding and image, among them such
// as whole sides just do not fit; and each algorithm is chosen for some.
func TestChosenAlgorithmsAreTheConvolution(t *testing.T) {
	chosen := map[winograd.Tile]bool{}
	rng, kernels := rand.New(rand.NewPCG(9, 1)), []int{1, 3, 5, 7}
	for range some(6000) {
		c := Conv{
			In:      Image{C: 16 << rng.IntN(3), H: 2 + rng.IntN(5), W: 2 + rng.IntN(5), Lanes: 16},
			Filters: 16 << rng.IntN(3), KH: kernels[rng.IntN(4)], KW: kernels[rng.IntN(4)], SH: 1, SW: 1, DH: 1, DW: 1,
			Groups: 1,
		}
		if rng.IntN(2) == 0 {
			c.KW = c.KH
		}
		if c.Top, c.Left = rng.IntN(c.KH+2), rng.IntN(c.KW+2); rng.IntN(2) == 0 {
			c.Top, c.Left = c.KH/2, c.KW/2
		}
		c.OH, c.OW = max(1, c.In.H+rng.IntN(4)-2), max(1, c.In.W+rng.IntN(4)-2)
		c.Choose()
		if !c.Tile.Is() || !c.BackTile.Is() || chosen[c.Tile] && rng.IntN(2) > 0 {
			continue
		}
		chosen[c.Tile] = true
		bound := max(winogradError(c.Tile), winogradError(c.BackTile))
		k := newWinogradCase(rng, c, 5)
		n := k.definition(false)
		k.isTheConvolution(t, Sets()[0], &n, bound, false)
	}
	for _, tile := range winograd.Tiles() {
		if !chosen[tile] && !testing.Short() {
			t.Errorf("%v is never chosen", tile)
		}
	}
}

// The last dimension of what a pass holds is bounded, so layers are cut into passes; all of them have to come together.
func TestWinogradInPasses(t *testing.T) {
	if testing.Short() {
		t.Skip("it is a gigaflop")
	}
	f2, f4 := winograd.Square(winograd.Short(2, 3)), winograd.Square(winograd.Short(4, 3))
	c := Conv{
		In: Image{C: 96, H: 13, W: 11, Lanes: 32}, Filters: 80, KH: 3, KW: 3, SH: 1, SW: 1, DH: 1, DW: 1, Top: 1, Left: 1,
		OH: 13, OW: 11, Groups: 1, Tile: f4, BackTile: f2,
	}
	if plan.WinogradColumns(f4, 96, 80, 13, 11, 32) >= 12*32 || plan.WinogradColumns(f2, 80, 96, 13, 11, 32) >= 42*32 {
		t.Fatal("one pass takes all")
	}
	rng := rand.New(rand.NewPCG(4, 4))
	for _, s := range plainSets()[:1] {
		k := newWinogradCase(rng, c, 32)
		y, dx, dw := k.run(NewTeam(s, 2, 1), false)
		team, scratch := NewTeam(s, 2, 1), make([]float32, c.ScratchLen())
		team.Run(func(w *Worker) {
			w.Forward(&c, k.x, k.wt, k.bias, k.y)
			w.BackData(&c, k.dy, k.wt, k.dx, false)
			w.BackWeights(&c, k.x, k.dy, k.dw, scratch)
		})
		wantY, wantDX, wantDW := make([]float32, len(y)), make([]float32, len(dx)), make([]float32, len(dw))
		ExportWeights(&c, wantDW, k.dw)
		team.workers[0].Export(wantY, k.y, c.Out(), 32)
		team.workers[0].Export(wantDX, k.dx, c.In, 32)
		if a, b, d := worst(y, wide(wantY)), worst(dx, wide(wantDX)), worst(dw, wide(wantDW)); !(a < 2e-5 && b < 2e-6 &&
			d < 2e-5) {
			t.Errorf("%s: off by %.1e forward, %.1e and %.1e back", s.Name, a, b, d)
		}
	}
}
