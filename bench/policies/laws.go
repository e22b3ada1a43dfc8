package main

import (
	"fmt"
	"slices"

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
		var worstTime, worstCost, reversals float64
		for _, l := range sim.Laws() {
			var times, costs []float64
			for seed := range seeds {
				r, best := l.Play(p, lawStart, lawMost, lawEpochs, seed), l.BestFixed(lawMost, lawEpochs, seed)
				times, costs = append(times, r.Seconds/best.Seconds), append(costs, r.Cost/best.Cost)
				reversals = max(reversals, float64(r.Reversals))
			}
			figure(fmt.Sprintf("%s_%s_time", p.Name(), l.Name), median(times), "x")
			figure(fmt.Sprintf("%s_%s_cost", p.Name(), l.Name), median(costs), "x")
			worstTime, worstCost = max(worstTime, median(times)), max(worstCost, median(costs))
		}
		figure(p.Name()+"_time", worstTime, "x")
		figure(p.Name()+"_cost", worstCost, "x")
		figure(p.Name()+"_reversals", reversals, "times")
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
