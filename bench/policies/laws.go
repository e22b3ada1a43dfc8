package main

import (
	"fmt"

	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// What the laws are played with: 40 epochs from two workers to at most 64.
const (
	lawEpochs = 40
	lawStart  = 2
	lawMost   = 64
)

// laws holds the policies that go by times against the best fixed number of workers, on each law: the median of the
// seeds, and of these medians the worst.
func laws(seeds uint64) {
	policies := []scheduler.Policy{
		scheduler.Elastic{},
		scheduler.KubeML{},
		scheduler.Coach{},
		scheduler.CoachPublished{},
		scheduler.Auto{},
	}
	for _, p := range policies {
		var worstTime, worstCost several
		reversals := 0.0
		for _, l := range sim.Laws() {
			var times, costs several
			for seed := range seeds {
				r, best := l.Play(p, lawStart, lawMost, lawEpochs, seed), l.BestFixed(lawMost, lawEpochs, seed)
				times, costs = append(times, r.Seconds/best.Seconds), append(costs, r.Cost/best.Cost)
				reversals = max(reversals, float64(r.Reversals))
			}
			times.figure(fmt.Sprintf("%s_%s_time", p.Name(), l.Name), "x")
			costs.figure(fmt.Sprintf("%s_%s_cost", p.Name(), l.Name), "x")
			worstTime, worstCost = higher(worstTime, times), higher(worstCost, costs)
		}
		worstTime.figure(p.Name()+"_time", "x")
		worstCost.figure(p.Name()+"_cost", "x")
		figure(p.Name()+"_reversals", reversals, "times")
	}
}
