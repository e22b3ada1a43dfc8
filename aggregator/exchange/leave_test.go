package exchange_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/exchange"
)

// leaving is a gang whose members leave, each after a step of its own.
type leaving struct {
	*gang
	last []int
}

// gone tells whether the log says that a member has left.
func (l *leaving) gone(m int) bool { return l.sent(m) == l.last[m] }

// fold has a member fold the steps up to one, which all that are there have sent.
func (l *leaving) fold(m, until int) {
	r := l.members[m]
	for r.Folded() < until {
		step, deltas := r.Folded()+1, make([]exchange.Delta, l.cfg.Members)
		for other, last := range l.last {
			if l.gone(other) {
				r.SetLastStep(other, last)
			}
			if step <= last {
				deltas[other] = l.log[step-1][other]
			}
		}
		if err := r.Fold(step, deltas); err != nil {
			l.t.Fatal(err)
		}
	}
}

// ready tells whether a member can make another step.
func (l *leaving) ready(m int) bool {
	if l.members[m].Made() == l.last[m] {
		return false
	}
	for other, last := range l.last {
		if other != m && l.sent(other) < min(l.members[m].Needed(), last) {
			return false
		}
	}
	return true
}

// step makes a member's next step, from what it needs or, if it is eager, from all that there is.
func (l *leaving) step(m int) {
	r := l.members[m]
	l.fold(m, r.Needed())
	if l.cfg.Eager {
		v := l.vector(m)
		until := r.Made()
		for other, newest := range v {
			if !l.gone(other) {
				until = min(until, newest)
			}
		}
		l.fold(m, until)
		for other, newest := range v {
			for other != m && r.NewestStep(other) < newest {
				step := r.NewestStep(other) + 1
				if err := r.AddEager(other, step, l.log[step-1][other]); err != nil {
					l.t.Fatal(err)
				}
			}
		}
	}
	r.Weights(l.weights[m])
	l.compute(m)
	send := r.Send
	if r.Made() == l.last[m]-1 {
		send = r.Leave
	}
	d, err := send(l.weights[m])
	if err != nil {
		l.t.Fatal(err)
	}
	for len(l.log) < r.Made() {
		l.log = append(l.log, make([]exchange.Delta, l.cfg.Members))
	}
	l.log[r.Made()-1][m] = d
}

// Members that leave take nothing with them: whoever goes after whatever step, those that stay wait for nobody who has
// gone, all end with the same bits, and what everybody computed is in them.
func TestMembersThatLeaveLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := exchange.Config{
			Members: rapid.IntRange(2, 4).Draw(t, "members"), Threshold: rapid.SampledFrom([]float64{0, 0.7}).Draw(t, "v"),
			Slack: rapid.IntRange(0, 2).Draw(t, "slack"), Eager: rapid.Bool().Draw(t, "eager"),
			Combine: rapid.SampledFrom([]exchange.Combine{exchange.Sum, exchange.Mean}).Draw(t, "combine"),
			Values:  rapid.SampledFrom(values).Draw(t, "values"),
		}
		seed := rapid.Uint64Range(0, 1000).Draw(t, "seed")
		start := someWeights(40, seed)
		l := leaving{gang: newGang(t, cfg, start, seed)}
		for range cfg.Members {
			l.last = append(l.last, rapid.IntRange(1, 8).Draw(t, "last"))
		}
		for {
			var can []int
			for m := range l.members {
				if l.ready(m) {
					can = append(can, m)
				}
			}
			if len(can) == 0 {
				break
			}
			l.step(rapid.SampledFrom(can).Draw(t, "next"))
		}
		want := make([]float64, len(start))
		for i, w := range start {
			want[i] = float64(w)
		}
		for m, r := range l.members {
			if r.Made() != l.last[m] {
				t.Fatalf("member %d has made %d of %d steps", m, r.Made(), l.last[m])
			}
			l.fold(m, slices.Max(l.last))
			if err := r.Settle(); err != nil {
				t.Fatal(err)
			}
			if r.Weights(l.weights[m]); !slices.Equal(l.weights[m], l.members[0].Shared()) {
				t.Fatalf("member %d ends with other weights", m)
			}
			for i, u := range l.updates[m] {
				want[i] += u
			}
		}
		for i, w := range l.weights[0] {
			if cfg.Combine == exchange.Sum && math.Abs(float64(w)-want[i]) > 1e-5*(1+math.Abs(want[i])) {
				t.Fatalf("weight %d is %v, and the updates come to %v", i, w, want[i])
			}
		}
	})
}

// A mean is one of all members of the round, so that a batch moves the weights as far when others have left; and a
// member that has left sends nothing more.
func TestABatchCountsAsMuchWhenOthersHaveLeft(t *testing.T) {
	start := []float32{0}
	one := exchange.Delta{Index: []int32{0}, Value: []float32{6}}
	r, err := exchange.New(exchange.Config{Members: 3}, start)
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range []float32{6, 10} { // (6 + 6 + 6) / 3, and then (6 + 6) / 3
		d, err := r.Send([]float32{r.Shared()[0] + 6})
		if err != nil {
			t.Fatal(err)
		}
		all := []exchange.Delta{d, one, one}
		if step == 1 {
			r.SetLastStep(2, 1)
			if err := r.Fold(2, all); !errors.Is(err, disdel.Conflict) {
				t.Errorf("a delta of a member that has left: %v", err)
			}
			all[2] = exchange.Delta{}
		}
		if err := r.Fold(step+1, all); err != nil || r.Shared()[0] != want {
			t.Errorf("step %d: %v, %v", step+1, r.Shared(), err)
		}
	}
}

// Memory that was given back is what the next deltas lie in.
func TestMemoryOfDeltasIsUsedAgain(t *testing.T) {
	r, err := exchange.New(exchange.Config{Members: 2, Combine: exchange.Sum}, make([]float32, 1000))
	if err != nil {
		t.Fatal(err)
	}
	x, data, step := make([]float32, 1000), []byte(nil), 0
	round := func() {
		step++
		for i := range x {
			x[i] += float32(i)
		}
		own, err := r.Send(x)
		if err != nil {
			t.Fatal(err)
		}
		data = own.Append(data[:0])
		other, err := r.NewDelta().Read(data, len(x))
		if err != nil {
			t.Fatal(err)
		}
		all := [2]exchange.Delta{own, other}
		if err := r.Fold(step, all[:]); err != nil {
			t.Fatal(err)
		}
		r.Recycle(all[:])
		r.Weights(x)
	}
	round()
	round()
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Errorf("%v allocations in a step", n)
	}
}

// A member that leaves sends all that it owes; the one that stays goes on alone.
func ExampleReplica_Leave() {
	start := []float32{4}
	var members []*exchange.Replica
	for m := range 2 {
		r, err := exchange.New(exchange.Config{Members: 2, Member: m, Threshold: 0.5, Combine: exchange.Sum}, start)
		if err != nil {
			fmt.Println(err)
			return
		}
		members = append(members, r)
	}
	owed, _ := members[0].Leave([]float32{4.5}) // which the filter would have kept
	none, _ := members[1].Send(start)
	for _, r := range members {
		r.SetLastStep(0, 1)
		if err := r.Fold(1, []exchange.Delta{owed, none}); err != nil {
			fmt.Println(err)
			return
		}
	}
	next, _ := members[1].Send([]float32{9})
	for m, r := range members {
		if err := r.Fold(2, []exchange.Delta{{}, next}); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("member", m, r.Shared())
	}
	// Output:
	// member 0 [9]
	// member 1 [9]
}
