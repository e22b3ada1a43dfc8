package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/disdel/disdel/scheduler/schedule"
)

// What a job is given: the loss that two functions come to in so many epochs, in the mean of the seeds that a path is
// looked for with, and so many times what the cheapest fixed choice costs.
const (
	hybridEpochs = 25
	hybridBudget = 1.25
)

// The seeds that a path is looked for with; those that it is held against others with are none of them.
const (
	trainingSeeds = 8
	firstTraining = 1000
	firstSeed     = 2
)

// hsp is the time of a path of functions, found by search, with hybrid synchronous steps, over that of the best fixed
// number and memory of functions within the same GB-s. A run that does not come to the loss, or passes the budget,
// takes for ever; each choice counts with its median over the seeds, and the best fixed one is the best of all by the
// same seeds. Beside it: against the best fixed one of each seed, known only afterwards (hsp_equal_cost_hindsight), and
// what the best path of each seed would come to against that, of those that were looked at last (hsp_least).
func hsp(seeds int) error {
	h := hybrid{plane: newPlane(), world: hybridWorld(), luck: 0.1}
	training, others := seedsFrom(firstTraining, trainingSeeds), seedsFrom(firstSeed, seeds)
	target := 0.0
	few := schedule.Fixed(schedule.Choice{Workers: 2, Memory: 512})
	for _, c := range h.all(few, goal{epochs: hybridEpochs}, training) {
		target += c.Loss / trainingSeeds
	}
	figure("hsp_target_loss", target, "nats")
	trails, ok := h.search(target, training)
	if !ok {
		return errors.New("no path comes to the target within its budget")
	}
	fixed, budget := h.grid(target, others, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15})
	best := slices.MinFunc(fixed, func(a, b tried) int { return cmp.Compare(a.seconds(budget), b.seconds(budget)) })
	var paths []tried
	for _, t := range trails {
		paths = append(paths, tried{t.String(), h.all(h.along(t, target), goal{loss: target, cost: budget}, others)})
	}
	path := paths[0]
	fmt.Printf("path: %s\nbest fixed: %s\n", path.what, best.what)
	figure("hsp_equal_cost", path.seconds(budget)/best.seconds(budget), "ratio")
	figure("hsp_reached", path.reached(budget), "of 1")
	figure("hsp_fixed_reached", best.reached(budget), "of 1")
	figure("hsp_cost_of_budget", path.cost()/budget, "ratio")
	var hindsight, least []float64
	for i := range others {
		then := soonest(fixed, i, budget)
		hindsight = append(hindsight, path.of(i, budget)/then)
		least = append(least, soonest(paths, i, budget)/then)
	}
	figure("hsp_equal_cost_hindsight", middle(hindsight), "ratio")
	figure("hsp_least", middle(least), "ratio")
	return nil
}

func seedsFrom(first uint64, count int) (out []uint64) {
	for i := range uint64(count) {
		out = append(out, first+i)
	}
	return out
}

// tried is what became of a choice, by seeds.
type tried struct {
	what string
	runs []schedule.Course
}

// of is the time of a run within a budget.
func (t tried) of(run int, budget float64) float64 {
	if c := t.runs[run]; c.Reached && c.Cost <= budget {
		return c.Seconds
	}
	return math.Inf(1)
}

// seconds is the median time.
func (t tried) seconds(budget float64) float64 {
	var all []float64
	for i := range t.runs {
		all = append(all, t.of(i, budget))
	}
	return middle(all)
}

// cost is the median cost, whether or not a budget holds it.
func (t tried) cost() float64 {
	var all []float64
	for _, c := range t.runs {
		if !c.Reached {
			c.Cost = math.Inf(1)
		}
		all = append(all, c.Cost)
	}
	return middle(all)
}

func (t tried) reached(budget float64) (share float64) {
	for i := range t.runs {
		if !math.IsInf(t.of(i, budget), 1) {
			share += 1 / float64(len(t.runs))
		}
	}
	return share
}

// soonest is the least time of a seed's runs.
func soonest(all []tried, run int, budget float64) float64 {
	least := math.Inf(1)
	for _, t := range all {
		least = min(least, t.of(run, budget))
	}
	return least
}

// middle is the larger of two medians.
func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

// all are runs of the same choice with several seeds.
func (h *hybrid) all(by schedule.Chooser, to goal, seeds []uint64) []schedule.Course {
	out := make([]schedule.Course, len(seeds))
	inParallel(len(seeds), func(i int) { out[i] = h.run(by, to, seeds[i]) })
	return out
}

// inParallel does some things on all processors.
func inParallel(count int, do func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range runtime.NumCPU() {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	wait.Wait()
}

// few functions are the cheapest.
const few = 3

// grid is the fixed choices of some numbers of functions, and the budget: hybridBudget times the least median cost of
// any. More than few of them are run up to what would be the budget by those.
func (h *hybrid) grid(target float64, seeds []uint64, numbers []int) (out []tried, budget float64) {
	cheapest := math.Inf(1)
	for _, workers := range numbers {
		for memory := h.world.LeastMemory; memory <= h.world.MostMemory; memory += 2 * h.world.Step {
			c := schedule.Choice{Workers: workers, Memory: memory}
			to := goal{loss: target}
			if workers > few {
				to.cost = hybridBudget * cheapest
			}
			t := tried{fmt.Sprintf("%d functions of %.0f MB", workers, memory), h.all(schedule.Fixed(c), to, seeds)}
			cheapest = min(cheapest, t.cost())
			out = append(out, t)
		}
	}
	return out, hybridBudget * cheapest
}
