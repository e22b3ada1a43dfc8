package native

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/plan"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// lived are weights with statistics of batch norms that change what they compute, as a trained network has them.
func lived(g *model.Graph) disdel.Weights {
	w := namedWeights(g)
	for i, p := range g.Params() {
		if !p.Trainable {
			for k, u := range uniform(p.Name, p.Len()) {
				w[i].Data[k] = float32(0.3 + u)
			}
		}
	}
	return w
}

// An engine for one row, for three, for fifteen and for sixteen says of a row what an engine for training says of it,
// to the bit: whatever is laid out otherwise, folded or left out. No convolution here is wide enough for Winograd's
// algorithm, which rows do not have.
func TestFewRowsHaveTheBitsOfMany(t *testing.T) {
	paths(t, func(t *testing.T) {
		zoo := networks()
		zoo["relu6"] = func(b *model.Builder) {
			x := b.Same("r", b.BatchNorm("n", b.Conv("a", 0, 9, model.Square(3, 1, 1), 1, false)), model.OpReLU6)
			y := b.Same("s", b.BatchNorm("m", b.Conv("d", x, 9, model.Square(3, 2, 1), 9, false)), model.OpReLU6)
			z := b.Same("u", b.Conv("e", y, 4, model.Square(1, 1, 0), 1, true), model.OpReLU6)
			b.Dense("fc", b.Flatten("f", z), 3)
		}
		for name, f := range zoo {
			g := build(t, name, f)
			x, _ := batch(g, 16, 3)
			size, classes := g.Input().Len(), g.Output().Len()
			trains := newEngine(t, g, engine.Spec{BatchSize: 16, Training: true, Optimizer: sgd1})
			if err := engine.SetWeights(trains, lived(g)); err != nil {
				t.Fatal(err)
			}
			want, err := enginetest.Predict(trains, x, 16)
			if err != nil {
				t.Fatal(err)
			}
			for _, rows := range []int{1, 3, 15, 16} {
				for _, threads := range threadCounts(1, 3) {
					e := newEngine(t, g, engine.Spec{BatchSize: rows, Threads: threads})
					if err := engine.SetWeights(e, lived(g)); err != nil {
						t.Fatal(err)
					}
					for _, n := range []int{rows, max(1, rows-1)} { // short batches, too
						got, err := enginetest.Predict(e, x[:n*size], n)
						if err != nil {
							t.Fatal(err)
						}
						if !slices.Equal(got, want[:n*classes]) {
							t.Fatalf("%s: %d of %d rows, %d threads: %v, not %v", name, n, rows, threads, got, want[:n*classes])
						}
					}
				}
			}
		}
	})
}

// A batch that is larger than what is computed at a time gets the bits and the loss that its parts get.
func TestLargeBatchesAreComputedInPieces(t *testing.T) {
	g := testNetwork(t, "resnet8-test")
	x, y := batch(g, 75, 3)
	e, trains := newEngine(t, g, engine.Spec{BatchSize: 75, Threads: 2}),
		newEngine(t, g, engine.Spec{BatchSize: 75, Training: true, Optimizer: sgd1})
	if step := e.plan.Spec.BatchSize; step >= 75 || e.plan.Bytes() >= trains.plan.Bytes() {
		t.Fatalf("%d rows at a time, in %v", step, e.plan.Bytes())
	}
	if err := errors.Join(engine.SetWeights(e, lived(g)), engine.SetWeights(trains, lived(g))); err != nil {
		t.Fatal(err)
	}
	for _, rows := range []int{75, 33, 1} {
		size := rows * g.Input().Len()
		got, err1 := enginetest.Predict(e, x[:size], rows)
		want, err2 := enginetest.Predict(trains, x[:size], rows)
		if err1 != nil || err2 != nil || !slices.Equal(got, want) {
			t.Errorf("%d rows: other outputs; %v, %v", rows, err1, err2)
		}
		a, right, err1 := enginetest.Evaluate(e, x[:size], y[:rows])
		b, also, err2 := enginetest.Evaluate(trains, x[:size], y[:rows])
		if a != b || right != also || err1 != nil || err2 != nil {
			t.Errorf("%d rows: loss %v and %v, %d and %d right; %v, %v", rows, a, b, right, also, err1, err2)
		}
	}
}

// Weights that are set after a prediction are those of the next: what was worked out of batch norms goes by them.
func TestFoldedNormsFollowTheirWeights(t *testing.T) {
	g := build(t, "norm relu", networks()["norm relu"])
	x, _ := batch(g, 1, 3)
	e := newEngine(t, g, engine.Spec{BatchSize: 1})
	said := func(set func() error) []float32 {
		t.Helper()
		if err := set(); err != nil {
			t.Fatal(err)
		}
		p, err := enginetest.Predict(e, x, 1)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	named := said(func() error { return engine.SetWeights(e, namedWeights(g)) })
	if slices.Equal(named, said(func() error { return engine.SetWeights(e, lived(g)) })) {
		t.Error("other statistics change nothing")
	}
	if !slices.Equal(named, said(func() error { return engine.SetWeights(e, namedWeights(g)) })) {
		t.Error("the first weights do not come back")
	}
	if said(func() error { return e.Reset(engine.Statistic) }); slices.Equal(named, said(func() error {
		return e.Init(disdel.Init{Seed: 9})
	})) {
		t.Error("first weights change nothing")
	}
}

// A small batch is laid out by rows where that is less work, and inference holds what one layer reads and writes, not
// all activations.
func TestInferenceTakesNoMoreThanItNeeds(t *testing.T) {
	g := testNetwork(t, "lenet5")
	for rows, want := range map[int]bool{1: true, 4: true, 15: false, 16: false} {
		p, err := PlanOf(enginetest.On(g, engine.Spec{BatchSize: rows}))
		if err != nil {
			t.Fatal(err)
		}
		if p.ByRows != want {
			t.Errorf("%d rows: laid out by rows: %v", rows, p.ByRows)
		}
		most := 0
		for i := range p.Nodes {
			size := p.Nodes[i].Border.Around(p.Nodes[i].Image).Len()
			for _, in := range p.Nodes[i].Inputs {
				if !p.Nodes[i].InPlace {
					size += p.Nodes[in].Border.Around(p.Nodes[in].Image).Len()
				}
			}
			most = max(most, size)
		}
		// the border around the input stays, since it is zero
		bound := disdel.Bytes(4 * (most + plan.Padded(p.Nodes[0].Border.Around(p.Nodes[0].Image).Len())))
		if peak, _ := p.ByCategory(); peak[plan.Activations] > bound {
			t.Errorf("%d rows: %v of activations, more than two layers' %v", rows, peak[plan.Activations], bound)
		}
	}
}

// wideNetwork has convolutions for which Winograd's algorithm pays.
func wideNetwork(t *testing.T) *model.Graph {
	t.Helper()
	b := model.NewBuilder("wide", model.Shape{2, 8, 9})
	x := b.Same("r0", b.Conv("a", 0, 32, model.Square(3, 1, 1), 1, true), model.OpReLU)
	y := b.Same("r1", b.BatchNorm("n", b.Conv("b", x, 48, model.Square(3, 1, 1), 1, false)), model.OpReLU)
	z := b.Conv("c", y, 32, model.Square(3, 1, 1), 1, true)
	b.Dense("fc", b.Flatten("f", b.GlobalPool("p", b.Add("sum", z, x))), 3)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// narrowingNetwork has a convolution for each of the algorithms that are not for kernels of 3 x 3 on large images.
func narrowingNetwork(t *testing.T) *model.Graph {
	t.Helper()
	b := model.NewBuilder("narrowing", model.Shape{2, 9, 9})
	x := b.Same("r0", b.Conv("a", 0, 32, model.Square(3, 1, 1), 1, true), model.OpReLU)
	x = b.Same("r1", b.Conv("five", x, 32, model.Square(5, 1, 2), 1, true), model.OpReLU)
	x = b.Conv("three", x, 32, model.Square(3, 1, 1), 1, true)
	x = b.Pool("to4", x, model.OpMaxPool, model.Square(2, 2, 0))
	line, column := model.Square(7, 1, 3), model.Square(7, 1, 3)
	line.Kernel.H, line.Pad.Top, line.Pad.Bottom = 1, 0, 0
	column.Kernel.W, column.Pad.Left, column.Pad.Right = 1, 0, 0
	x = b.Same("r2", b.Conv("line", x, 32, line, 1, true), model.OpReLU)
	x = b.Conv("column", x, 48, column, 1, true)
	x = b.Pool("to2", x, model.OpMaxPool, model.Square(2, 2, 0))
	x = b.Conv("whole", x, 48, model.Square(3, 1, 1), 1, true)
	b.Dense("fc", b.Flatten("f", x), 3)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Winograd's algorithm is in the plan and nowhere else: training.exact has convolutions by their definition, in less
// memory, to the same loss and weights but for rounding. A gradient is the difference quotient with it, too, and
// threads change no bit.
func TestWinogradTrainsAsTheDefinitionDoes(t *testing.T) {
	found := map[winograd.Tile]bool{}
	for _, g := range []*model.Graph{wideNetwork(t), narrowingNetwork(t)} {
		t.Run(g.Name, func(t *testing.T) {
			for _, tile := range trainsAsTheDefinitionDoes(t, g) {
				found[tile] = true
			}
		})
	}
	for _, tile := range winograd.Tiles() {
		if !found[tile] && tile != winograd.Square(winograd.Short(2, 3)) {
			t.Errorf("no convolution goes by %v", tile)
		}
	}
}

// trainsAsTheDefinitionDoes returns the algorithms of a network's plan.
func trainsAsTheDefinitionDoes(t *testing.T, g *model.Graph) (tiles []winograd.Tile) {
	t.Helper()
	cfg := engine.Spec{BatchSize: 20, Training: true, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.05}}}
	exact := cfg
	exact.Exact = true
	a, err1 := PlanOf(enginetest.On(g, cfg))
	b, err2 := PlanOf(enginetest.On(g, exact))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for i := range a.Nodes {
		if c := a.Nodes[i].Conv; c.Tile.Is() && c.BackTile.Is() {
			tiles = append(tiles, c.Tile, c.BackTile)
		}
		if c := b.Nodes[i].Conv; c.Tile.Is() || c.BackTile.Is() {
			t.Errorf("%s goes by Winograd's algorithm, and exact was asked for", g.Nodes[i].Name)
		}
	}
	if len(tiles) == 0 || a.Bytes() <= b.Bytes() {
		t.Fatalf("%v, %v and %v", tiles, a.Bytes(), b.Bytes())
	}
	paths(t, func(t *testing.T) {
		fast := run(t, g, cfg, 20, 7, 20)
		for i, want := range run(t, g, exact, 20, 7, 20) {
			for k, v := range want.Data {
				if d := math.Abs(float64(v - fast[i].Data[k])); !(d < 2e-4) {
					t.Fatalf("%s[%d] is %v, and %v by the definition", want.Name, k, fast[i].Data[k], v)
				}
			}
		}
		threads := cfg
		threads.Threads = 3
		sameBits(t, fmt.Sprintf("%d threads", 3), fast, run(t, g, threads, 20, 7, 20))
		checkGradient(t, g, CrossEntropy, 5)
	})
	return tiles
}
