package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// byRows is an image's shape where rows lie one behind the other.
func byRows(im Image, rows int, tight bool) Image {
	im.Lanes, im.Depth = rows, plan.Padded(im.C)
	if tight {
		im.Depth = im.C
	}
	return im
}

// A few rows, one behind the other, get the bits that they get among lanes: of every convolution, on any number of
// threads, with what is folded into it.
func TestRowsHaveTheBitsOfLanes(t *testing.T) {
	for _, s := range plainSets() {
		t.Run(s.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(11, 12))
			for i := range 60 {
				c, _, _, _ := geometry(rng)
				rows := 1 + rng.IntN(15)
				c.In.Lanes, c.ReLU = 16, rng.IntN(2) == 0
				checkRows(t, rng, s, c, rows, 1+i%3)
			}
			for i := range some(60) { // a single channel and few filters, whose vectors are pixels
				c := Conv{
					KH: 1 + rng.IntN(5), KW: 1 + rng.IntN(5), SH: 1 + rng.IntN(2), SW: 1 + rng.IntN(6)/5, DH: 1 + rng.IntN(2),
					DW: 1 + rng.IntN(2), Top: rng.IntN(3), Left: rng.IntN(3), Groups: 1, Filters: 1 + rng.IntN(24),
					ReLU: rng.IntN(2) == 0, In: Image{C: 1, H: 9 + rng.IntN(4), W: 24 + rng.IntN(50), Lanes: 16},
				}
				c.OH, c.OW = (c.In.H+c.Top-(c.KH-1)*c.DH-1)/c.SH+1, (c.In.W+c.Left-(c.KW-1)*c.DW-1)/c.SW+1
				checkRows(t, rng, s, c, 1+rng.IntN(3), 1+i%3)
			}
			for _, rows := range []int{1, 7} {
				for _, units := range []int{37, 90, 150} { // below a line, one and some, two and some
					checkRows(t, rng, s, plan.Dense(40, units, 16), rows, 1+rows%2)
				}
			}
		})
	}
}

func checkRows(t *testing.T, rng *rand.Rand, s Set, c Conv, rows, threads int) {
	t.Helper()
	xs := random(rng, rows*c.In.C*c.In.H*c.In.W)
	wt, bias := make([]float32, c.WeightLen()), make([]float32, c.BiasLen())
	ImportWeights(&c, wt, random(rng, c.Filters*c.Inner()*c.Taps()))
	for k := range c.Filters {
		bias[c.BiasAt(k)] = rng.Float32() - 0.5
	}
	k := plan.Padded(c.Filters)
	after := &After{Scale: random(rng, k), Offset: random(rng, k), ReLU: rng.IntN(2) == 0, Top: 0.4 * float32(rng.IntN(2))}
	if rng.IntN(2) == 0 {
		bias, after = nil, nil
	}
	x, y := padded(c.In.Len()), padded(c.Out().Len())
	want, got := make([]float32, rows*c.Filters*c.OH*c.OW), make([]float32, rows*c.Filters*c.OH*c.OW)
	NewTeam(s, 1, 64).Run(func(w *Worker) {
		w.Import(x, c.In, Border{}, xs, rows)
		w.Then(after)
		w.Forward(&c, x, wt, bias, y)
		w.Then(nil)
		w.Export(want, y, c.Out(), rows)
	})
	r := c
	r.In = byRows(c.In, rows, rng.IntN(2) == 0)
	out := byRows(c.Out(), rows, false)
	x, y = padded(r.In.Len()), padded(out.Len())
	for i := range y {
		y[i] = 1e9
	}
	NewTeam(s, threads, 64).Run(func(w *Worker) {
		w.RowsImport(x, r.In, Border{}, xs, rows)
		w.Sync()
		w.Then(after)
		w.RowsForward(&r, out, rows, x, wt, bias, y)
		w.Then(nil)
		if w.ID == 0 {
			w.RowsExport(got, y, out, rows)
		}
	})
	if !slices.Equal(want, got) {
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("%s: %+v, %d rows, after %v: value %d is %v, and %v in lanes", s.Name, c, rows, after, i, got[i], want[i])
			}
		}
	}
}

// Depthwise convolutions of rows, too.
func TestRowsDepthwiseHasTheBitsOfLanes(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		for range 30 {
			g := Pool{
				KH: 1 + rng.IntN(3), KW: 1 + rng.IntN(3), SH: 1 + rng.IntN(2), SW: 1 + rng.IntN(2), DH: 1 + rng.IntN(2), DW: 1,
				Top: rng.IntN(3), Left: rng.IntN(3),
			}
			rows := 1 + rng.IntN(4)
			in := Image{C: 1 + rng.IntN(40), H: 5 + rng.IntN(5), W: 4 + rng.IntN(5), Lanes: 16}
			g.OH, g.OW = (in.H+2*g.Top-(g.KH-1)*g.DH-1)/g.SH+1, (in.W+2*g.Left-g.KW)/g.SW+1
			out := Image{C: in.C, H: g.OH, W: g.OW, Lanes: 16}
			xs, wt := random(rng, rows*in.C*in.H*in.W), random(rng, plan.Padded(g.KH*g.KW*in.C)+64)
			want, got := make([]float32, rows*out.C*out.H*out.W), make([]float32, rows*out.C*out.H*out.W)
			x, y := padded(in.Len()), padded(out.Len())
			g.In = in
			w.Import(x, in, Border{}, xs, rows)
			w.DepthwiseForward(&g, x, wt, y)
			w.Export(want, y, out, rows)
			in, out = byRows(in, rows, false), byRows(out, rows, false)
			x, y = padded(in.Len()), padded(out.Len())
			g.In = in.Blocks()
			w.RowsImport(x, in, Border{}, xs, rows)
			w.RowsDepthwise(&g, in.C, rows, x, wt, y)
			w.RowsExport(got, y, out, rows)
			if !slices.Equal(want, got) {
				t.Fatalf("%+v of %+v, %d rows: other bits", g, in, rows)
			}
		}
	})
}

// Pools of a row have the bits of those among lanes, whatever the windows' edges, on any number of threads.
func TestPoolsOfRowsHaveTheBitsOfLanes(t *testing.T) {
	for _, s := range plainSets() {
		t.Run(s.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(21, 22))
			for i := range some(60) {
				g := Pool{
					KH: 1 + rng.IntN(3), KW: 1 + rng.IntN(3), SH: 1 + rng.IntN(3), SW: 1 + rng.IntN(3), DH: 1, DW: 1 + rng.IntN(2),
					CountPad: rng.IntN(2) == 0,
				}
				g.Top, g.Left = rng.IntN(g.KH), rng.IntN(g.KW)
				in := Image{C: 1 + rng.IntN(80), H: 5 + rng.IntN(9), W: 5 + rng.IntN(20), Lanes: 16}
				g.OH, g.OW = (in.H+2*g.Top-g.KH)/g.SH+1, (in.W+2*g.Left-(g.KW-1)*g.DW-1)/g.SW+1
				out := Image{C: in.C, H: g.OH, W: g.OW, Lanes: 16}
				xs := random(rng, in.C*in.H*in.W)
				for _, pool := range []func(*Worker, *Pool, []float32, []float32){(*Worker).MaxPool, (*Worker).AvgPool} {
					want, got := make([]float32, out.C*out.H*out.W), make([]float32, out.C*out.H*out.W)
					lanes, row := g, g
					lanes.In, row.In = in, byRows(in, 1, false).Blocks()
					x, y := padded(in.Len()), padded(out.Len())
					NewTeam(s, 1, 64).Run(func(w *Worker) {
						w.Import(x, in, Border{}, xs, 1)
						pool(w, &lanes, x, y)
						w.Export(want, y, out, 1)
					})
					from, to := byRows(in, 1, false), byRows(out, 1, false)
					x, y = padded(from.Len()), padded(to.Len())
					NewTeam(s, 1+i%3, 64).Run(func(w *Worker) {
						w.RowsImport(x, from, Border{}, xs, 1)
						w.Sync()
						pool(w, &row, x, y)
						if w.ID == 0 {
							w.RowsExport(got, y, to, 1)
						}
					})
					if !slices.Equal(want, got) {
						t.Fatalf("%+v of %+v: other bits", g, in)
					}
				}
			}
		})
	}
}

// Lines are cut into tiles that are there, none of which leaves its line, and every output is in one of them.
func TestLinesAreCutIntoTiles(t *testing.T) {
	for _, s := range plainSets() {
		w := NewTeam(s, 1, 1).workers[0]
		for n := 1; n < 70; n++ {
			w.cutLine(axis{n: n, x: 3, y: 5})
			end, cost := 0, 0
			for _, p := range w.pieces {
				at := p.x / 3
				if p.y != 5*at || at > end || at+int(p.rows) > n || p.rs != 12 && n > 1 {
					t.Fatalf("%s: %d outputs: %+v", s.Name, n, w.pieces)
				}
				end, cost = max(end, at+int(p.rows)), cost+max(int(p.rows), leastRows)
			}
			if end != n || cost > max(n+6, leastRows) {
				t.Errorf("%s: %d of %d outputs, for %d: %+v", s.Name, end, n, cost, w.pieces)
			}
		}
	}
}
