package plan

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// small is the size at which a network of the zoo is planned quickly.
func small(t testing.TB, e model.Entry) *model.Graph {
	t.Helper()
	input := e.Input
	if input[1] > 96 {
		input = model.Shape{3, 96, 96}
	}
	g, err := model.Build(disdel.Network{Name: e.Name, Input: input, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// zoo is a network of each family.
func zoo() []model.Entry {
	return slices.DeleteFunc(model.Zoo(), func(e model.Entry) bool { return e.VariantOf != "" })
}

// withoutSequences are the networks of the zoo that are laid out by rows and as halves, too.
func withoutSequences(t testing.TB) []model.Entry {
	return slices.DeleteFunc(zoo(), func(e model.Entry) bool { return HasSequences(small(t, e)) })
}

func mustPlan(t testing.TB, g *model.Graph, s Spec) *Plan {
	t.Helper()
	p, err := New(g, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What is alive at the same time never shares a byte, and all of it is inside the slab.
func TestBuffersNeverOverlap(t *testing.T) {
	for _, e := range zoo() {
		g := small(t, e)
		for _, s := range []Spec{
			{BatchSize: 3, Training: true, Moments: 2},
			{BatchSize: 20, Training: true, KeepGrads: true},
			{BatchSize: 1},
		} {
			p := mustPlan(t, g, s)
			for i, a := range p.buffers {
				if a.offset%vector != 0 || a.offset+a.size > p.Len {
					t.Fatalf("%s: a buffer of %d at %d of %d", e.Name, a.size, a.offset, p.Len)
				}
				for _, b := range p.buffers[:i] {
					together := a.from <= b.to && b.from <= a.to
					if together && a.offset < b.offset+b.size && b.offset < a.offset+a.size {
						t.Fatalf("%s: %v of node %d and %v of node %d overlap", e.Name, a.category, a.node, b.category, b.node)
					}
				}
			}
		}
	}
}

// The slab is never smaller than what is alive at its busiest time, and not much larger.
func TestTheSlabIsNearItsBound(t *testing.T) {
	for _, e := range zoo() {
		p := mustPlan(t, small(t, e), Spec{BatchSize: 32, Training: true, Moments: 1})
		peak, gaps := p.ByCategory()
		var sum disdel.Bytes
		for _, b := range peak {
			sum += b
		}
		if sum+gaps != p.Bytes() || gaps < 0 || float64(gaps) > 0.16*float64(p.Bytes()) {
			t.Errorf("%s: %v alive and %v of gaps in %v", e.Name, sum, gaps, p.Bytes())
		}
	}
}

// Inference needs less than training, moments and kept gradients cost what they are, and rows that fill the
// lanes of a batch nothing.
func TestBytesFollowTheSpec(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list := zoo()
		g := small(t, list[rapid.IntRange(0, len(list)-1).Draw(r, "network")])
		batch := rapid.IntRange(1, 80).Draw(r, "batch")
		base := mustPlan(t, g, Spec{BatchSize: batch, Training: true})
		if in := mustPlan(t, g, Spec{BatchSize: batch}); in.Len > base.Len {
			r.Fatalf("%s: inference %v, training %v", g.Name, in.Bytes(), base.Bytes())
		}
		full := base.Lanes / max(1, base.Fold)
		if same := mustPlan(t, g, Spec{BatchSize: full, Training: true}); same.Len != base.Len {
			r.Fatalf("%s: a batch of %d takes %v, of %d %v", g.Name, batch, base.Bytes(), full, same.Bytes())
		}
		values := 0
		for _, p := range base.Params {
			if p.Trainable {
				values += p.Value.Len
			}
		}
		if adam := mustPlan(t, g, Spec{BatchSize: batch, Training: true, Moments: 2}); adam.Len != base.Len+2*values {
			r.Fatalf("%s: two moments of %d values cost %d", g.Name, values, adam.Len-base.Len)
		}
		if kept := mustPlan(t, g, Spec{BatchSize: batch, Training: true, KeepGrads: true}); kept.Len > base.Len+values+
			base.Len/6 {
			r.Fatalf("%s: keeping %d gradients costs %d", g.Name, values, kept.Len-base.Len)
		}
	})
}

func TestAPlanNeedsARow(t *testing.T) {
	g := small(t, zoo()[0])
	if _, err := New(g, Spec{}); !errors.Is(err, disdel.Invalid) {
		t.Errorf("%v, want Invalid", err)
	}
}

// A plan leaves the graph as it was: others read it at the same time.
func TestTheGraphStaysAsItWas(t *testing.T) {
	for _, e := range zoo() {
		g, again := small(t, e), small(t, e)
		mustPlan(t, g, Spec{BatchSize: 2, Training: true})
		for i := range g.Nodes {
			for k, in := range g.Nodes[i].Inputs {
				if in != again.Nodes[i].Inputs[k] {
					t.Fatalf("%s: inputs of %s changed", e.Name, g.Nodes[i].Name)
				}
			}
		}
	}
}

// A larger batch never takes less, so that a search for the largest that fits may halve.
func TestTheSlabGrowsWithTheBatch(t *testing.T) {
	for _, e := range zoo() {
		g, last := small(t, e), 0
		for batch := vector; batch <= 20*vector; batch += vector {
			p := mustPlan(t, g, Spec{BatchSize: batch, Training: true, Moments: 1})
			if p.Len < last {
				t.Errorf("%s: a batch of %d takes %d values, a smaller one %d", e.Name, batch, p.Len, last)
			}
			last = p.Len
		}
	}
}

// Which algorithm computes a convolution goes by its shape alone: workers with other batches compute the same way.
func TestTheAlgorithmGoesByTheShape(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "vgg16-cifar", Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	tiles := func(s Spec) (out []winograd.Tile) {
		for _, v := range mustPlan(t, g, s).Nodes {
			if v.Conv.KH == 3 {
				out = append(out, v.Conv.Tile, v.Conv.BackTile)
			}
		}
		return out
	}
	want := tiles(Spec{BatchSize: 16, Training: true})
	// 64 channels of 32 x 32 pixels; 512 of 2 x 2, each of which meets each output
	four, whole := winograd.Square(winograd.Short(4, 3)), winograd.Square(winograd.Whole(2))
	if want[2] != four || want[3] != four || want[len(want)-2] != whole || want[len(want)-1] != whole {
		t.Errorf("%v", want)
	}
	for _, tile := range tiles(Spec{BatchSize: 16, Exact: true}) {
		if tile.Is() {
			t.Errorf("exact, and yet %v", tile)
		}
	}
	for _, s := range []Spec{{BatchSize: 200, Training: true, Moments: 1}, {BatchSize: 17}} {
		if got := tiles(s); !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", s, got, want)
		}
	}
}

// A batch that few rows fill is laid out by rows, and never takes more than a whole vector of lanes would.
func TestFewRowsTakeNoMoreThanLanes(t *testing.T) {
	for _, e := range withoutSequences(t) {
		g := small(t, e)
		lanes := mustPlan(t, g, Spec{BatchSize: vector})
		for rows := 1; rows < vector; rows++ {
			p := mustPlan(t, g, Spec{BatchSize: rows})
			if p.Len > lanes.Len+2*Slack || rows == 1 && !p.ByRows {
				t.Errorf("%s: %d rows by rows: %v, %d values, and %d in lanes", e.Name, rows, p.ByRows, p.Len, lanes.Len)
			}
		}
	}
}

// An algorithm for whole sides is one for those alone that it has all pixels, taps and outputs of.
func TestWholeSidesFitThemselvesAlone(t *testing.T) {
	line := winograd.Lines(winograd.Whole(4))
	fitting := Conv{
		In: Image{C: 16, H: 9, W: 4, Lanes: 16}, Filters: 16, KH: 1, KW: 7, SH: 1, SW: 1, DH: 1, DW: 1, Left: 3, OH: 9, OW: 4,
		Groups: 1,
	}
	if !fitting.Fits(line) {
		t.Error("it does not fit its own side")
	}
	for name, change := range map[string]func(*Conv){
		"pixels": func(c *Conv) { c.In.W = 5 }, "outputs": func(c *Conv) { c.OW = 5 },
		"padding": func(c *Conv) { c.Left = 2 },
		"taps":    func(c *Conv) { c.KW = 5 }, "rows": func(c *Conv) { c.KH = 3 }, "stride": func(c *Conv) { c.SW = 2 },
		"dilation": func(c *Conv) { c.DW = 2 }, "groups": func(c *Conv) { c.Groups = 2 },
		"channels": func(c *Conv) { c.In.C = 8 },
		"filters":  func(c *Conv) { c.Filters = 24 },
	} {
		c := fitting
		if change(&c); c.Fits(line) {
			t.Errorf("it fits with other %s", name)
		}
	}
}

// A larger batch of texts never takes less memory, and few rows take a share of what 16 take.
func TestFewRowsOfTextsTakeLess(t *testing.T) {
	for _, positions := range []int{256, 36, 6, 7} {
		g, err := model.Build(disdel.Network{Name: "gpt-tiny", Input: []int{1, 1, positions}, Classes: 300, NextToken: true})
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		for batch := 1; batch < 20; batch++ {
			p := mustPlan(t, g, Spec{BatchSize: batch, Training: true})
			if p.Len < last {
				t.Errorf("%d positions: a batch of %d takes %d values, and a smaller one %d", positions, batch, p.Len, last)
			}
			last = p.Len
		}
	}
	g, err := model.Build(disdel.Network{Name: "gpt-tiny", Input: []int{1, 1, 64}, Classes: 300, NextToken: true})
	if err != nil {
		t.Fatal(err)
	}
	few := mustPlan(t, g, Spec{BatchSize: 2}).Nodes
	for i, n := range mustPlan(t, g, Spec{BatchSize: 16}).Nodes {
		if few[i].Image.Len()*8 != n.Image.Len() {
			t.Errorf("%s has %d values of 2 rows, and %d of 16", g.Nodes[i].Name, few[i].Image.Len(), n.Image.Len())
		}
	}
}
