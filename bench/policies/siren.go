package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/scheduler/schedule"
)

// sirenWorld is a simulated cloud with SIREN's own ranges: up to 3,000 functions of 128 to 3,008 MB, where 1,792 MB
// have a whole processor, and a store that saturates. Losses are those of its simulation, from ln 10 to 0.3.
func sirenWorld() *schedule.World {
	return &schedule.World{
		Batches: 2000, Load: 0.5, Fetch: 0.05, Compute: 8, Push: 0.2, Saturates: 150, Full: 1792,
		Program: 300, Part: 20000, First: 2.3, Target: 0.3, Floor: 0.1, PerWorker: 2e-4, Fall: 0.75,
		MostWorkers: 3000, LeastMemory: 128, MostMemory: 3008, Step: 64, TimeNoise: 0.05, LossNoise: 0.005,
	}
}

// sirenBudgets are the rows of SIREN's Table III. Its money is not ours: the lowest budget of its grid search, 100 $,
// is a quarter above the cost of the cheapest fixed choice here. The other budgets are in proportion.
var sirenBudgets = []struct {
	name  string
	times float64 // what the cheapest fixed choice costs
}{{"300", 3.75}, {"200", 2.5}, {"100", 1.25}}

// sirenSpare is what of a budget the fixed choice is made by: the rest is for noise.
const sirenSpare = 0.97

// hopeless is the budget with which SIREN's own agent failed, 50 $.
const hopeless = 0.625

// sirens holds schedules against the best fixed workers and memory within the same budget, with the same noise: the
// median of the seeds. The fixed choice is not guarded: it may pass its budget. siren_least is a bound that no schedule
// comes below, with the whole budget and without noise.
func sirens(seeds uint64) error {
	w := sirenWorld()
	_, cheapest, ok := w.Cheapest()
	if !ok {
		return errors.New("nothing comes to the target")
	}
	for _, b := range sirenBudgets {
		if err := sirenRow(w, b.name, b.times*cheapest.Cost, seeds); err != nil {
			return err
		}
	}
	spent := 0.0
	for seed := range seeds {
		lot := rand.New(rand.NewPCG(seed, 50))
		c := w.Run(w.Guard(schedule.Fixed(schedule.Choice{Workers: 500, Memory: 1792})), hopeless*cheapest.Cost, lot)
		spent = max(spent, c.Cost)
	}
	rig.Figure("siren_hopeless", spent, "GB-s")
	return nil
}

func sirenRow(w *schedule.World, name string, budget float64, seeds uint64) error {
	fixed, base, ok := w.Best(sirenSpare * budget)
	if !ok {
		return fmt.Errorf("nothing comes to the target with budget %s", name)
	}
	arms := []struct {
		name   string
		by     func(seed uint64) schedule.Chooser
		ratios []float64
		ended  int
		falls  int
	}{
		{name: "siren", by: func(seed uint64) schedule.Chooser {
			n, _, _ := w.Learn(schedule.Training{Budget: budget, Seed: seed})
			return n.Greedy()
		}},
		{name: "replanned", by: func(uint64) schedule.Chooser { return w.Replanned() }},
		{name: "path", by: func(uint64) schedule.Chooser { return w.Adaptive() }},
	}
	for i := range arms {
		a := &arms[i]
		for seed := range seeds {
			best := w.Run(schedule.Fixed(fixed), 0, rand.New(rand.NewPCG(seed, 3)))
			c := w.Run(w.Guard(a.by(seed)), budget, rand.New(rand.NewPCG(seed, 3)))
			ratio := math.Inf(1)
			if c.Reached {
				a.ended++
				ratio = c.Seconds / best.Seconds
			}
			if falling(c) {
				a.falls++
			}
			a.ratios = append(a.ratios, ratio)
		}
		rig.MedianFigure(a.name+"_"+name, a.ratios, "x")
		rig.Figure(a.name+"_"+name+"_ended", float64(a.ended)/float64(seeds), "of 1")
		rig.Figure(a.name+"_"+name+"_falls", float64(a.falls)/float64(seeds), "of 1")
	}
	var as []float64
	for seed := range seeds {
		_, lesson, _ := w.Learn(schedule.Training{Budget: budget, Seed: seed, Scratch: true})
		if lesson.AsFixed == 0 { // never
			as = append(as, math.Inf(1))
			continue
		}
		as = append(as, float64(lesson.AsFixed))
	}
	rig.MedianFigure("siren_scratch_"+name+"_iterations", as, "to the fixed choice")
	rig.Figure("siren_fixed_"+name, base.Seconds, "s")
	_, least, _ := w.Optimum(budget)
	rig.Figure("siren_least_"+name, least/base.Seconds, "x")
	return nil
}

// falling tells whether a course has fewer functions in the end than at first, and never many more than before.
func falling(c schedule.Course) bool {
	if len(c.Epochs) < 2 {
		return false
	}
	const slack = 1.05 // a state with noise makes a number that is no exact step
	for i := 1; i < len(c.Epochs); i++ {
		if float64(c.Epochs[i].Workers) > slack*float64(c.Epochs[i-1].Workers) {
			return false
		}
	}
	return c.Epochs[len(c.Epochs)-1].Workers < c.Epochs[0].Workers
}
