package exchange_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/exchange"
)

// gang is members in one process. Each moves by its own seeded updates, which go by its weights, so that who computes
// with other weights comes to others.
type gang struct {
	t       rapid.TB
	cfg     exchange.Config
	members []*exchange.Replica
	weights [][]float32
	log     [][]exchange.Delta // by step and member
	updates [][]float64        // by member: the sum of its own updates
	rng     []*rand.Rand
}

func newGang(t rapid.TB, cfg exchange.Config, start []float32, seed uint64) *gang {
	g := &gang{t: t, cfg: cfg}
	for m := range cfg.Members {
		cfg.Member = m
		r, err := exchange.New(cfg, start)
		if err != nil {
			t.Fatal(err)
		}
		g.members = append(g.members, r)
		g.weights = append(g.weights, slices.Clone(start))
		g.updates = append(g.updates, make([]float64, len(start)))
		g.rng = append(g.rng, rand.New(rand.NewPCG(seed, uint64(m))))
	}
	return g
}

// compute is a local step of a member: some weights move towards a place of its own.
func (g *gang) compute(m int) {
	for i, x := range g.weights[m] {
		if g.rng[m].IntN(3) > 0 {
			continue
		}
		next := x + 0.1*(float32(g.rng[m].NormFloat64())-x)
		g.updates[m][i] += float64(next) - float64(x)
		g.weights[m][i] = next
	}
}

// step makes a step of a member, after folding as many steps as it needs, or as there are.
func (g *gang) step(m int, eager, flush bool) {
	r := g.members[m]
	until := r.Needed()
	if eager {
		until = r.Made()
	}
	for r.Folded() < until && len(g.log) > r.Folded() && !slices.ContainsFunc(g.log[r.Folded()], missing) {
		if err := r.Fold(r.Folded()+1, g.log[r.Folded()]); err != nil {
			g.t.Fatal(err)
		}
	}
	r.Weights(g.weights[m])
	g.compute(m)
	send := r.Send
	if flush {
		send = r.Flush
	}
	d, err := send(g.weights[m])
	if err != nil {
		g.t.Fatal(err)
	}
	if d.Index == nil {
		d.Index = []int32{} // there, and empty
	}
	for len(g.log) < r.Made() {
		g.log = append(g.log, make([]exchange.Delta, g.cfg.Members))
	}
	g.log[r.Made()-1][m] = d
}

// values are the formats that the values of deltas are sent in.
var values = []disdel.Wire{disdel.WireFloat32, disdel.WireBfloat16, disdel.WireInt8}

func missing(d exchange.Delta) bool { return d.Index == nil }

// settle folds all that is left, of every member.
func (g *gang) settle() {
	for m, r := range g.members {
		for r.Folded() < r.Made() {
			if err := r.Fold(r.Folded()+1, g.log[r.Folded()]); err != nil {
				g.t.Fatal(err)
			}
		}
		if err := r.Settle(); err != nil {
			g.t.Fatal(err)
		}
		r.Weights(g.weights[m])
	}
}

// run makes so many steps in lock-step, the last one a flush.
func (g *gang) run(steps int) {
	for s := range steps {
		for m := range g.members {
			g.step(m, true, s == steps-1)
		}
	}
	g.settle()
}

func someWeights(n int, seed uint64) []float32 {
	rng, w := rand.New(rand.NewPCG(seed, 99)), make([]float32, n)
	for i := range w {
		if i%5 > 0 { // a fifth are zero
			w[i] = float32(rng.NormFloat64())
		}
	}
	return w
}

// Whatever the threshold, slack and order in which members go on, all end with the same bits, and nothing that anybody
// computed is lost.
func TestMembersEndEqualAndNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := exchange.Config{
			Members: rapid.IntRange(2, 5).Draw(t, "members"), Threshold: rapid.SampledFrom([]float64{0, 0.05, 0.7, 5, 1e30}).Draw(t, "v"),
			Slack: rapid.IntRange(0, 3).Draw(t, "slack"), Combine: rapid.SampledFrom([]exchange.Combine{exchange.Sum, exchange.Mean}).Draw(t, "combine"),
			Values: rapid.SampledFrom(values).Draw(t, "values"),
		}
		seed := rapid.Uint64Range(0, 1000).Draw(t, "seed")
		start := someWeights(40, seed)
		g := newGang(t, cfg, start, seed)
		steps := rapid.IntRange(1, 12).Draw(t, "steps")
		for { // members go on in any order that the slack allows, folding no more than they must
			var can []int
			for m, r := range g.members {
				ready := len(g.log) >= r.Needed()
				for s := r.Folded(); s < r.Needed() && ready; s++ {
					ready = !slices.ContainsFunc(g.log[s], missing)
				}
				if r.Made() < steps && ready {
					can = append(can, m)
				}
			}
			if len(can) == 0 {
				break
			}
			m := rapid.SampledFrom(can).Draw(t, "next")
			g.step(m, false, g.members[m].Made() == steps-1)
		}
		g.settle()
		want := make([]float64, len(start))
		for i, w := range start {
			want[i] = float64(w)
		}
		for m, r := range g.members {
			if r.Made() != steps || !slices.Equal(g.weights[m], g.weights[0]) || !slices.Equal(r.Shared(), g.weights[m]) {
				t.Fatalf("member %d ends with other weights after %d steps", m, r.Made())
			}
			for i, u := range g.updates[m] {
				if cfg.Combine == exchange.Mean {
					u /= float64(cfg.Members)
				}
				want[i] += u
			}
		}
		for i, w := range g.weights[0] {
			if math.Abs(float64(w)-want[i]) > 1e-5*(1+math.Abs(want[i])) {
				t.Fatalf("weight %d is %v, and the updates come to %v", i, w, want[i])
			}
		}
	})
}

// A member that goes on earlier or later than others comes to the same bits: the order is fixed by the numbers of steps
// and members, and by nothing that depends on time.
func TestAFixedOrderIsTheSameHoweverMembersRun(t *testing.T) {
	for slack := range 4 {
		cfg := exchange.Config{Members: 3, Threshold: 0.7, Slack: slack, Combine: exchange.Sum}
		run := func(order func(s int) []int) []float32 {
			g := newGang(t, cfg, someWeights(60, 1), 1)
			for s := range 9 {
				for _, m := range order(s) {
					g.step(m, false, s == 8)
				}
			}
			g.settle()
			return g.weights[0]
		}
		first := run(func(int) []int { return []int{0, 1, 2} })
		if !slices.Equal(first, run(func(s int) []int { return [][]int{{2, 1, 0}, {1, 2, 0}}[s%2] })) {
			t.Errorf("slack %d: another order in time, other weights", slack)
		}
	}
}

// With a threshold of 0, exchanging after every step is bulk synchronous: S is everything, and nothing is owed.
func TestAThresholdOfZeroIsBulkSynchronous(t *testing.T) {
	start := someWeights(50, 2)
	g := newGang(t, exchange.Config{Members: 4, Combine: exchange.Sum}, start, 2)
	// the same by hand: every member steps from the same weights, and the sum of the steps is added in members' order
	x := slices.Clone(start)
	for s := range 8 {
		var deltas [][]float32
		for m := range 4 {
			g.rng[m] = rand.New(rand.NewPCG(uint64(m), uint64(s)))
			other := rand.New(rand.NewPCG(uint64(m), uint64(s)))
			y := slices.Clone(x)
			for i := range y {
				if other.IntN(3) == 0 {
					y[i] += 0.1 * (float32(other.NormFloat64()) - y[i])
				}
			}
			d := make([]float32, len(y))
			for i := range y {
				d[i] = y[i] - x[i]
			}
			deltas = append(deltas, d)
		}
		for m := range 4 {
			g.step(m, true, false)
		}
		for _, d := range deltas {
			for i, v := range d {
				x[i] += v
			}
		}
		for _, r := range g.members {
			if err := r.Fold(r.Folded()+1, g.log[s]); err != nil {
				t.Fatal(err)
			}
			if r.Owed() != 0 {
				t.Fatalf("step %d: %v is owed", s, r.Owed())
			}
			if !slices.Equal(r.Shared(), x) {
				t.Fatalf("step %d: the weights are others than by hand", s)
			}
		}
	}
}

// One member alone is plain training, to the bit.
func TestOneMemberIsPlainTraining(t *testing.T) {
	start := someWeights(50, 3)
	g := newGang(t, exchange.Config{Members: 1, Threshold: 0.7, Slack: 2}, start, 3)
	g.run(10)
	x, rng := slices.Clone(start), rand.New(rand.NewPCG(3, 0))
	for range 10 {
		for i, v := range x {
			if rng.IntN(3) == 0 {
				x[i] = v + 0.1*(float32(rng.NormFloat64())-v)
			}
		}
	}
	if !slices.Equal(x, g.weights[0]) {
		t.Error("the weights are others")
	}
	for s, deltas := range g.log {
		if deltas[0].Len() > 0 {
			t.Errorf("step %d sends %d entries to nobody", s, deltas[0].Len())
		}
	}
}

// The filter sends what is more than v / sqrt(t) of its weight, and keeps the rest until it is.
func TestTheFilterKeepsWhatIsNotSignificant(t *testing.T) {
	tiny := math.Float32frombits(1) // the least number
	start := []float32{0, 0, 2, -2, 2, tiny, 0}
	r, err := exchange.New(exchange.Config{Members: 2, Threshold: 0.5, Combine: exchange.Sum}, start)
	if err != nil {
		t.Fatal(err)
	}
	// At step 1 the threshold is half of the new weight: 1 of 2+1=3 is not, 4 of 6 is; of -2 the step to -5 is; where the
	// weight was 0 anything goes, and nothing does not.
	d, err := r.Send([]float32{0, 1e-30, 3, -5, 6, 2 * tiny, -1e30})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{1, 3, 4, 6}; !slices.Equal(d.Index, want) || !slices.Equal(d.Value, []float32{1e-30, -3, 4, -1e30}) {
		t.Errorf("%v %v are sent, want %v", d.Index, d.Value, want)
	}
	if err := r.Fold(1, []exchange.Delta{d, {}}); err != nil {
		t.Fatal(err)
	}
	x := make([]float32, len(start))
	r.Weights(x)
	if x[2] != 3 || r.Shared()[2] != 2 {
		t.Errorf("what was not sent is %v here and %v for all", x[2], r.Shared()[2])
	}
	// At step 2 it is .35 of the weight: 1.1 of 3.1 is above it.
	x[2] += 0.1
	if d, err = r.Send(x); err != nil || !slices.Contains(d.Index, 2) || slices.Contains(d.Index, 0) {
		t.Errorf("%v are sent: %v", d.Index, err)
	}
	r, _ = exchange.New(exchange.Config{Members: 2, Threshold: 1e30, Combine: exchange.Sum}, start)
	x = []float32{0, 0, 3, -5, 6, tiny, 0}
	d, _ = r.Send(x)
	flushed, err := func() (exchange.Delta, error) {
		if err := r.Fold(1, []exchange.Delta{d, {}}); err != nil {
			return d, err
		}
		return r.Flush(x)
	}()
	if d.Len() != 0 || err != nil || flushed.Len() != 3 {
		t.Errorf("a huge threshold sends %d, the flush %d: %v", d.Len(), flushed.Len(), err)
	}
}

// A member that goes on from its state elsewhere comes to the same bits, with a slack too.
func TestAMemberGoesOnFromItsState(t *testing.T) {
	for slack := range 3 {
		cfg := exchange.Config{Members: 3, Threshold: 0.7, Slack: slack, Combine: exchange.Sum}
		run := func(move bool) []float32 {
			g := newGang(t, cfg, someWeights(60, 1), 1)
			for s := range 9 {
				for m := range 3 {
					g.step(m, false, s == 8)
					if !move {
						continue
					}
					own, state := []exchange.Delta(nil), g.members[m].State()
					for _, deltas := range g.log[state.Folded:state.Made] {
						own = append(own, deltas[m])
					}
					at := cfg
					at.Member = m
					r, err := exchange.Resume(at, state, own)
					if err != nil {
						t.Fatal(err)
					}
					g.members[m] = r
				}
			}
			g.settle()
			return g.weights[0]
		}
		if !slices.Equal(run(false), run(true)) {
			t.Errorf("slack %d: other weights", slack)
		}
	}
	if _, err := exchange.Resume(exchange.Config{Members: 2}, exchange.State{Shared: make([]float32, 3)}, nil); !errors.Is(err, disdel.Invalid) {
		t.Errorf("half a state: %v", err)
	}
}

// What is out of order is refused, and changes nothing.
func TestWhatIsOutOfOrderIsRefused(t *testing.T) {
	start := someWeights(10, 4)
	r, err := exchange.New(exchange.Config{Members: 2, Slack: 1}, start)
	if err != nil {
		t.Fatal(err)
	}
	x := slices.Clone(start)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, disdel.Conflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a step that was not made", r.Fold(1, make([]exchange.Delta, 2)))
	x[1]++
	first, err := r.Send(x)
	if err != nil {
		t.Fatal(err)
	}
	x[2]++
	if _, err := r.Send(x); err != nil {
		t.Fatal(err)
	}
	_, err = r.Send(x)
	refused("a third step, with a slack of 1", err)
	_, err = r.Flush(x[1:])
	refused("other weights", err)
	refused("the second step first", r.Fold(2, []exchange.Delta{first, {}}))
	refused("a delta too few", r.Fold(1, []exchange.Delta{first}))
	refused("another own delta", r.Fold(1, []exchange.Delta{{}, {}}))
	refused("settling", r.Settle())
	if r.Folded() != 0 || r.Made() != 2 || !slices.Equal(r.Shared(), start) {
		t.Error("a refusal has changed something")
	}
	if err := r.Fold(1, []exchange.Delta{first, {}}); err != nil {
		t.Error(err)
	}
	for _, cfg := range []exchange.Config{
		{},
		{Members: 2, Member: 2},
		{Members: 1, Threshold: -1},
		{Members: 1, Threshold: math.NaN()},
		{Members: 1, Slack: -1},
		{Members: 1, Combine: "product"},
	} {
		if _, err := exchange.New(cfg, nil); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// A change that nobody could read is its sender's fault, whatever the format of what is sent: it says so before it is
// sent. Beside an infinite weight no change is significant, so that the flush sends it.
func TestWhatIsNoNumberIsNotSent(t *testing.T) {
	for _, w := range values {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			r, err := exchange.New(exchange.Config{Members: 2, Threshold: 0.5, Values: w}, []float32{1, 2, 3})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Flush([]float32{1, bad, 9}); !errors.Is(err, disdel.Diverged) {
				t.Errorf("%v as %s: %v", bad, w, err)
			}
		}
	}
}

// Two members exchange what is significant after a step; what is not stays with its member.
func ExampleReplica() {
	var members []*exchange.Replica
	for m := range 2 {
		r, err := exchange.New(exchange.Config{Members: 2, Member: m, Threshold: 0.5, Combine: exchange.Sum}, []float32{1, 4})
		if err != nil {
			fmt.Println(err)
			return
		}
		members = append(members, r)
	}
	first, _ := members[0].Send([]float32{3, 4.5}) // 2 of 3 is significant, 0.5 of 4.5 is not
	second, _ := members[1].Send([]float32{1, 4})
	x := make([]float32, 2)
	for m, r := range members {
		if err := r.Fold(1, []exchange.Delta{first, second}); err != nil {
			fmt.Println(err)
			return
		}
		r.Weights(x)
		fmt.Println("member", m, x, "of which all have", r.Shared())
	}
	// Output:
	// member 0 [3 4.5] of which all have [3 4]
	// member 1 [3 4] of which all have [3 4]
}
