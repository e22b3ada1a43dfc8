package controller

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// In whatever order workers deliver or are given up, every cluster of which somebody delivered is started once, when
// nobody of it is waited for, and of those who delivered; the top one is the last.
func TestABarrierStartsEveryClusterOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 12).Draw(t, "workers")
		tree := scheduler.Tree(workers, rapid.IntRange(2, 4).Draw(t, "fanIn"))
		plan := disdel.Plan{Workers: workers, Levels: scheduler.Sharded(tree, rapid.IntRange(1, 4).Draw(t, "shards"))}
		b := newBarrier(plan)
		open, started, below := b.start(), map[disdel.Slot]bool{}, map[disdel.Slot]bool{}
		if len(open) != workers {
			t.Fatalf("%d of %d workers start", len(open), workers)
		}
		for len(open) > 0 {
			i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			s := open[i]
			open = slices.Delete(open, i, i+1)
			var next []disdel.Slot
			if s.Task == disdel.TaskTrain && b.canSpare() && rapid.Bool().Draw(t, "given up") {
				next = b.without(0, s.Member)
			} else {
				below[s] = true
				next = b.delivered(s)
			}
			for _, n := range next {
				if started[n] {
					t.Fatalf("%v starts twice", n)
				}
				started[n] = true
				for _, m := range b.present(n) {
					under := disdel.Slot{Task: disdel.TaskTrain, Member: m}
					if n.Level > 1 {
						under = disdel.Slot{Task: disdel.TaskAggregate, Level: n.Level - 1, Member: m}
					}
					if !below[under] {
						t.Fatalf("%v is made of %v, which did not deliver", n, under)
					}
				}
				if l := plan.Levels[n.Level-1]; l.JoinShards && len(b.present(n)) < len(l.Clusters[0]) {
					t.Fatalf("%v joins %v only", n, b.present(n))
				}
				if len(b.present(n)) == 0 || n == b.top() && len(b.outstanding()) > 0 {
					t.Fatalf("%v starts with %v, and %v are waited for", n, b.present(n), b.outstanding())
				}
			}
			open = append(open, next...)
		}
		if !below[b.top()] {
			t.Fatal("the round was not made")
		}
	})
}
