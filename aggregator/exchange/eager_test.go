package exchange_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/exchange"
)

// begin has a member begin its next step with what a vector says, which its log has.
func (g *gang) begin(m int, v exchange.Vector) {
	r := g.members[m]
	for r.Folded() < slices.Min(v) {
		if err := r.Fold(r.Folded()+1, g.log[r.Folded()]); err != nil {
			g.t.Fatal(err)
		}
	}
	for other, newest := range v {
		for other != m && r.NewestStep(other) < newest {
			step := r.NewestStep(other) + 1
			if err := r.AddEager(other, step, g.log[step-1][other]); err != nil {
				g.t.Fatal(err)
			}
		}
	}
	r.Weights(g.weights[m])
}

// sent is up to which step the log has a member's deltas.
func (g *gang) sent(m int) (n int) {
	for n < len(g.log) && !missing(g.log[n][m]) {
		n++
	}
	return n
}

// vector is what a member's next step can begin with: all that there is.
func (g *gang) vector(m int) (v exchange.Vector) {
	for other := range g.members {
		v = append(v, g.sent(other))
	}
	v[m] = g.members[m].Made()
	return v
}

// eagerStep makes a member's step from a vector, and returns what it sends.
func (g *gang) eagerStep(m int, v exchange.Vector, flush bool) exchange.Delta {
	g.begin(m, v)
	g.compute(m)
	send := g.members[m].Send
	if flush {
		send = g.members[m].Flush
	}
	d, err := send(g.weights[m])
	if err != nil {
		g.t.Fatal(err)
	}
	if d.Index == nil {
		d.Index = []int32{}
	}
	return d
}

// Eager members end with the same bits and lose nothing, in whatever order they go on; one that begins its steps with
// what it noted makes them again, to the bit.
func TestEagerMembersEndEqualAndCanBeReplayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := exchange.Config{
			Members: rapid.IntRange(2, 4).Draw(t, "members"), Threshold: rapid.SampledFrom([]float64{0, 0.7}).Draw(t, "v"),
			Slack:   rapid.IntRange(0, 3).Draw(t, "slack"),
			Combine: rapid.SampledFrom([]exchange.Combine{exchange.Sum, exchange.Mean}).Draw(t, "combine"),
			Values:  rapid.SampledFrom(values).Draw(t, "values"), Eager: true,
		}
		const steps = 8
		seed := rapid.Uint64Range(0, 1000).Draw(t, "seed")
		start := someWeights(40, seed)
		g := newGang(t, cfg, start, seed)
		noted := make([][]exchange.Vector, cfg.Members)
		for {
			var can []int
			for m, r := range g.members {
				ready := r.Made() < steps
				for other := range g.members {
					ready = ready && (other == m || g.sent(other) >= r.Needed())
				}
				if ready {
					can = append(can, m)
				}
			}
			if len(can) == 0 {
				break
			}
			m := rapid.SampledFrom(can).Draw(t, "next")
			v := g.vector(m)
			noted[m] = append(noted[m], v)
			d := g.eagerStep(m, v, g.members[m].Made() == steps-1)
			made := g.members[m].Made()
			for len(g.log) < made {
				g.log = append(g.log, make([]exchange.Delta, cfg.Members))
			}
			g.log[made-1][m] = d
		}
		g.settle()
		for m, r := range g.members {
			if r.Made() != steps || !slices.Equal(g.weights[m], g.weights[0]) {
				t.Fatalf("member %d ends with other weights after %d steps", m, r.Made())
			}
		}
		again := newGang(t, cfg, start, seed)
		again.log = g.log
		m := rapid.IntRange(0, cfg.Members-1).Draw(t, "replayed")
		for s, v := range noted[m] {
			d := again.eagerStep(m, v, s == steps-1)
			if want := g.log[s][m]; !slices.Equal(d.Index, want.Index) || !slices.Equal(d.Value, want.Value) {
				t.Fatalf("step %d of member %d comes out otherwise", s+1, m)
			}
		}
	})
}

// What is ahead comes in order, and of others; members in a fixed order have nothing ahead.
func TestWhatIsAheadComesInOrder(t *testing.T) {
	start := []float32{1, 2}
	delta := exchange.Delta{Index: []int32{0}, Value: []float32{1}}
	r, err := exchange.New(exchange.Config{Members: 2, Slack: 2, Eager: true}, start)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ member, step int }{{0, 1}, {1, 2}, {2, 1}, {-1, 1}} {
		if err := r.AddEager(c.member, c.step, delta); !errors.Is(err, disdel.Conflict) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := r.AddEager(1, 1, delta); err != nil || r.NewestStep(1) != 1 {
		t.Errorf("member 1 is at %d: %v", r.NewestStep(1), err)
	}
	x := make([]float32, 2)
	if r.Weights(x); x[0] != 1.5 || r.Shared()[0] != 1 {
		t.Errorf("%v, and %v for all", x, r.Shared())
	}
	if d, ok := r.Next(1); !ok || d.Len() != 1 {
		t.Errorf("the delta to be folded next is not here: %v", d)
	}
	fixed, _ := exchange.New(exchange.Config{Members: 2, Slack: 2}, start)
	if err := fixed.AddEager(1, 1, delta); !errors.Is(err, disdel.Conflict) {
		t.Errorf("in a fixed order: %v", err)
	}
}

func TestVectorsAreReadAsTheyWereWritten(t *testing.T) {
	data := append(exchange.Vector{3, 0, 300}.Append(nil), 7)
	v, rest, err := exchange.ReadVector(data, 3, 300)
	if err != nil || !slices.Equal(v, exchange.Vector{3, 0, 300}) || !slices.Equal(rest, []byte{7}) {
		t.Errorf("%v, %v, %v", v, rest, err)
	}
	for _, bad := range [][]byte{nil, data[:1], data[:3]} {
		if _, _, err := exchange.ReadVector(bad, 3, 300); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, _, err := exchange.ReadVector(data, 3, 299); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("a step that is not there: %v", err)
	}
}
