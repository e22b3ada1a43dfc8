package plan

import (
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// With halves, what is alive at the same time never shares a byte either, at whatever size it is then.
func TestHalvesNeverOverlap(t *testing.T) {
	for _, e := range withoutSequences(t) {
		g := small(t, e)
		for _, batch := range []int{3, 64} {
			p := mustPlan(t, g, Spec{BatchSize: batch, Training: true, Moments: 1, Halves: true})
			short := 0
			for i, a := range p.buffers {
				if a.short > 0 {
					short++
				}
				for _, b := range p.buffers[:i] {
					for _, x := range a.phases() {
						for _, y := range b.phases() {
							if x.from <= y.to && y.from <= x.to && a.offset < b.offset+y.size && b.offset < a.offset+x.size {
								t.Fatalf("%s: %v of node %d and %v of node %d overlap", e.Name, a.category, a.node, b.category, b.node)
							}
						}
					}
				}
				if a.offset+a.size > p.Len {
					t.Fatalf("%s: a buffer of %d at %d of %d", e.Name, a.size, a.offset, p.Len)
				}
			}
			if deep := len(g.Nodes) > 4; deep && short == 0 {
				t.Errorf("%s keeps nothing as halves", e.Name)
			}
		}
	}
}

// kept is what a plan holds of activations between the ways forward and back.
func kept(p *Plan) (sum disdel.Bytes) {
	for _, b := range p.buffers {
		if n := int32(len(p.Nodes)); b.category == Activations && b.from <= n && n < b.to {
			sum += 4 * disdel.Bytes(b.kept())
		}
	}
	return sum
}

// Halves take half of what is kept, but for inputs with borders and statistics of batch norms, and never more in all.
// A product's inputs stay as they are, so networks with gates keep more than half.
func TestHalvesTakeHalf(t *testing.T) {
	for _, e := range withoutSequences(t) {
		s := Spec{BatchSize: 64, Training: true, Moments: 1}
		whole := mustPlan(t, small(t, e), s)
		s.Halves = true
		half := mustPlan(t, small(t, e), s)
		if half.Len > whole.Len {
			t.Errorf("%s takes %v with halves, %v without", e.Name, half.Bytes(), whole.Bytes())
		}
		if slices.ContainsFunc(whole.Graph.Nodes, func(n model.Node) bool { return n.Op == model.OpMultiply }) {
			continue
		}
		input := 4 * disdel.Bytes(Padded(whole.Nodes[0].Border.Around(whole.Nodes[0].Image).Len()))
		if a, b := kept(half), kept(whole); len(whole.Nodes) > 4 && (a > b/2+input || a < b/2) {
			t.Errorf("%s keeps %v with halves, %v without", e.Name, a, b)
		}
	}
}

// Inference has nothing to keep: halves change nothing.
func TestHalvesAreForTraining(t *testing.T) {
	g := small(t, zoo()[0])
	a, b := mustPlan(t, g, Spec{BatchSize: 20}), mustPlan(t, g, Spec{BatchSize: 20, Halves: true})
	if a.Len != b.Len || b.Spec.Halves {
		t.Errorf("%v, and %v with halves", a.Bytes(), b.Bytes())
	}
}

// A larger batch never takes less, nor does one of halves.
func TestTheSlabOfHalvesGrowsWithTheBatch(t *testing.T) {
	for _, e := range withoutSequences(t) {
		g, last := small(t, e), 0
		for batch := vector; batch <= 12*vector; batch += vector {
			p := mustPlan(t, g, Spec{BatchSize: batch, Training: true, Moments: 1, Halves: true})
			if p.Len < last {
				t.Errorf("%s: a batch of %d takes %d values, a smaller one %d", e.Name, batch, p.Len, last)
			}
			last = p.Len
		}
	}
}
