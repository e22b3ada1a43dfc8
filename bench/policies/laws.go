package main

import (
	"fmt"

	"github.com/disdel/disdel/bench/rig"
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
		var worstTime, worstCost []float64
		reversals := 0.0
		for _, l := range sim.Laws() {
			var times, costs []float64
			for seed := range seeds {
				r, best := l.Play(p, lawStart, lawMost, lawEpochs, seed), l.BestFixed(lawMost, lawEpochs, seed)
				times, costs = append(times, r.Seconds/best.Seconds), append(costs, r.Cost/best.Cost)
				reversals = max(reversals, float64(r.Reversals))
			}
			rig.MedianFigure(fmt.Sprintf("%s_%s_time", p.Name(), l.Name), times, "x")
			rig.MedianFigure(fmt.Sprintf("%s_%s_cost", p.Name(), l.Name), costs, "x")
			worstTime, worstCost = higher(worstTime, times), higher(worstCost, costs)
		}
		rig.MedianFigure(p.Name()+"_time", worstTime, "x")
		rig.MedianFigure(p.Name()+"_cost", worstCost, "x")
		rig.Figure(p.Name()+"_reversals", reversals, "times")
	}
}

// higher is the one with the higher median.
func higher(a, b []float64) []float64 {
	if len(a) > 0 && rig.Median(a) >= rig.Median(b) {
		return a
	}
	return b
}
