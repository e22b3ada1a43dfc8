package kernel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// Blocks come from the table where the family is in it, else from the cache, within bounds.
func TestBlocksGoByTheMachine(t *testing.T) {
	for _, c := range []struct {
		m    Machine
		want Blocks
	}{
		{
			Machine{Vendor: "AuthenticAMD", Family: 25, Model: 1, Second: 512 * disdel.KB},
			Blocks{96 << 10, 0, 256, "Zen 3", "measured"},
		},
		{
			Machine{Vendor: "AuthenticAMD", Family: 25, Model: 17, Second: disdel.MB},
			Blocks{96 << 10, 0, 256, "Zen 4", "measured"},
		},
		{Machine{Vendor: "AuthenticAMD", Family: 26, Model: 2}, Blocks{192 << 10, 12, 256, "Zen 5", "family"}},
		{
			Machine{Vendor: "GenuineIntel", Family: 6, Model: 143, Second: 2 * disdel.MB},
			Blocks{384 << 10, 12, 256, "Sapphire and Emerald Rapids", "family"},
		},
		{
			Machine{Vendor: "GenuineIntel", Family: 6, Model: 85},
			Blocks{192 << 10, 12, 256, "Skylake-SP to Cooper Lake", "family"},
		},
		{
			Machine{Vendor: "GenuineIntel", Family: 6, Model: 140, Second: 1280 * disdel.KB},
			Blocks{240 << 10, 0, 256, "Ice Lake to Rocket Lake", "family"},
		},
		{
			Machine{Vendor: "0x41", Family: 8, Model: 0xd0c, Second: disdel.MB},
			Blocks{192 << 10, 0, 256, "Neoverse N1", "family"},
		},
		{Machine{Vendor: "0x61", Family: 8, Model: 0x22}, Blocks{768 << 10, 0, 256, "Apple", "family"}},
		{
			Machine{Vendor: "GenuineIntel", Family: 6, Model: 999, Second: 2 * disdel.MB},
			Blocks{384 << 10, 0, 256, "", "caches"},
		},
		{Machine{Second: 256 * disdel.KB}, Blocks{64 << 10, 0, 256, "", "caches"}},
		{Machine{Second: disdel.GB}, Blocks{1 << 20, 0, 256, "", "caches"}},
		{Machine{}, Blocks{96 << 10, 0, 256, "", "default"}},
	} {
		if got := BlocksFor(c.m); got != c.want {
			t.Errorf("%+v gets %+v, want %+v", c.m, got, c.want)
		}
	}
}

// No processor is of two families, and whatever a family gets the environment would take.
func TestFamiliesAreApart(t *testing.T) {
	seen := map[Machine]string{}
	for _, f := range families() {
		models := f.models
		if len(models) == 0 {
			models = [][2]int{{0, 0xfff}}
		}
		for _, r := range models {
			if r[0] > r[1] {
				t.Errorf("%s: models from %d to %d", f.name, r[0], r[1])
			}
			for n := r[0]; n <= r[1]; n++ {
				m := Machine{Vendor: f.vendor, Family: f.number, Model: n}
				if other, ok := seen[m]; ok {
					t.Errorf("model %d is of %s and of %s", n, other, f.name)
				}
				seen[m] = f.name
				b, again := BlocksFor(m), Blocks{}
				heights := []int{8, tallRows}
				b.Rows = max(b.Rows, heights[0])
				for part := range strings.SplitSeq(b.String(), ",") {
					if err := again.set(part, heights); err != nil {
						t.Fatalf("%s: %v", f.name, err)
					}
				}
				if again.Weights != b.Weights || again.Rows != b.Rows || again.Depth != b.Depth || b.Family != f.name {
					t.Fatalf("%s: %+v became %+v", f.name, b, again)
				}
			}
		}
	}
}

// The environment says some of the blocks or all of them, and the machine the others.
func TestTheEnvironmentSaysBlocks(t *testing.T) {
	t.Setenv(BlocksVariable, "")
	plain, err := Choose()
	if err != nil {
		t.Fatal(err)
	}
	tallest := plain.Heights()[len(plain.Heights())-1]
	for text, want := range map[string]Blocks{
		"65536":               {Weights: 65536, Rows: plain.Blocks.Rows, Depth: plain.Blocks.Depth},
		"weights=65536":       {Weights: 65536, Rows: plain.Blocks.Rows, Depth: plain.Blocks.Depth},
		" depth=64, 16384":    {Weights: 16384, Rows: plain.Blocks.Rows, Depth: 64},
		plain.Blocks.String(): plain.Blocks,
		fmt.Sprintf("rows=%d", tallest): {
			Weights: plain.Blocks.Weights, Rows: tallest, Depth: plain.Blocks.Depth,
		},
	} {
		t.Setenv(BlocksVariable, text)
		want.Family, want.Basis = plain.Blocks.Family, BlocksVariable
		if s, err := Choose(); err != nil || s.Blocks != want {
			t.Errorf("%s is %+v, %v, want %+v", text, s.Blocks, err, want)
		}
	}
	t.Setenv(BlocksVariable, "12 rows")
	if s, err := Choose(); !errors.Is(err, disdel.Invalid) || s.Name != "" {
		t.Errorf("%q, %v", s.Name, err)
	}
}

// blocksOf are all that the table gives, to any machine, and the ends of what the environment takes.
func blocksOf(s Set) (all []Blocks) {
	for _, f := range families() {
		models := [2]int{}
		if len(f.models) > 0 {
			models = f.models[0]
		}
		all = append(all, BlocksFor(Machine{Vendor: f.vendor, Family: f.number, Model: models[0]}))
	}
	for _, rows := range s.Heights() {
		all = append(all, Blocks{Weights: leastBlock, Rows: rows, Depth: leastDepth},
			Blocks{Weights: mostBlock, Rows: rows, Depth: mostDepth})
	}
	for i := range all {
		all[i].Family, all[i].Basis = "", ""
	}
	slices.SortFunc(all, func(a, b Blocks) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// Blocks are a matter of speed: with whatever the table has and the environment may say, convolutions of any shape,
// both gradients, those by Winograd's algorithm and products come to the same bits.
func TestBlocksDoNotChangeBits(t *testing.T) {
	for _, s := range plainSets() {
		t.Run(s.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(6, 6))
			cases := some(12)
			if s.Name == portable().Name {
				cases = some(2) // small ones
			}
			for i := range cases {
				c, _, _, _ := geometry(rng)
				if i%3 == 2 { // many channels, so that weights are cut and the highest tiles are whole
					c.Groups, c.In.C, c.Filters = 1, 12+rng.IntN(90), 12+rng.IntN(90)
				}
				x, dy, wt := random(rng, c.In.Len()+2048), random(rng, c.Out().Len()+2048), random(rng, c.WeightLen())
				w, rows := winogradGeometry(rng, winograd.Square(winograd.Short(2+2*rng.IntN(2), 3)))
				wino := newWinogradCase(rng, w, rows)
				m, n, k := 1+rng.IntN(60), 1+rng.IntN(60), rng.IntN(700)
				a, b, from := random(rng, m*k+1), random(rng, k*n+1), random(rng, m*n)
				add := rng.IntN(2) == 0
				var first [][]float32
				for _, blocks := range blocksOf(s) {
					with := s
					with.Blocks = blocks
					team := NewTeam(with, 1+rng.IntN(2), 64)
					y, dx, dw := padded(c.Out().Len()), padded(c.In.Len()), padded(c.WeightLen())
					scratch := make([]float32, c.ScratchLen())
					team.Run(func(w *Worker) {
						w.Forward(&c, x, wt, nil, y)
						w.BackData(&c, dy, wt, dx, false)
						w.BackWeights(&c, x, dy, dw, scratch)
					})
					wy, wdx, wdw := wino.run(team, false)
					product := slices.Clone(from)
					team.workers[0].Gemm(m, n, k, Matrix{a, max(k, 1), false}, Matrix{b, n, false}, product, n, add,
						make([]float32, GemmLen()))
					got := [][]float32{y, dx, dw, wy, wdx, wdw, product}
					if first == nil {
						first = got
					}
					for i, what := range []string{
						"outputs", "the input's gradient", "the weights' gradient", "Winograd's outputs",
						"Winograd's input's gradient", "Winograd's weights' gradient", "a product",
					} {
						alike(t, fmt.Sprintf("%s of %+v with %v", what, c, blocks), got[i], first[i])
					}
				}
			}
		})
	}
}

// Tiles cover what there is, with the highest where blocks say so, and none is higher than it may be.
func TestTilesCoverAllRows(t *testing.T) {
	for _, s := range plainSets() {
		for _, height := range s.Heights() {
			s.Blocks.Rows = height
			w := NewTeam(s, 1, 1).workers[0]
			for n := 1; n < 100; n++ {
				tall, tiles := 0, 0
				for left := n; left > 0; tiles++ {
					rows := w.rows(left)
					if s.f.product[rows][1] == nil || rows == tallRows && (height != tallRows || rows > left) {
						t.Fatalf("%s with %d rows: a tile of %d for %d", s.Name, height, rows, left)
					}
					if rows == tallRows {
						tall++
					}
					left -= rows
				}
				if height == tallRows && n >= 17 && tall == 0 || tiles > n/s.tiles[0]+2 {
					t.Errorf("%s with %d rows: %d are %d tiles, %d of them high", s.Name, height, n, tiles, tall)
				}
			}
		}
	}
}
