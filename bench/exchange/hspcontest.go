package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

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
// what the best path of each seed would come to against that, of those that were looked at last (hsp_least). What it is
// at is printed on the way.
func hsp(seeds int) error {
	h := hybrid{plane: newPlane(), world: hybridWorld(), luck: 0.1, log: begunNow()}
	training, others := seedsFrom(firstTraining, trainingSeeds), seedsFrom(firstSeed, seeds)
	target := 0.0
	two := schedule.Fixed(schedule.Choice{Workers: 2, Memory: 512})
	for _, c := range h.all(two, goal{epochs: hybridEpochs}, training) {
		target += c.Loss / trainingSeeds
	}
	figure("hsp_target_loss", target, "nats")
	trails, ok := h.search(target, training)
	if !ok {
		return errors.New("no path comes to the target within its budget")
	}
	fixed, budget := h.grid(target, others, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15})
	best := slices.MinFunc(fixed, func(a, b tried) int { return cmp.Compare(a.seconds(budget), b.seconds(budget)) })
	figure("hsp_fixed_s", best.seconds(budget), "s")
	var paths []tried
	for i, t := range trails {
		paths = append(paths, tried{t.String(), h.all(h.along(t, target), goal{loss: target, cost: budget}, others)})
		if i == 0 {
			h.contest(paths[0], best, budget)
		}
	}
	var hindsight, least []float64
	for i := range others {
		then := soonest(fixed, i, budget)
		hindsight = append(hindsight, paths[0].of(i, budget)/then)
		least = append(least, soonest(paths, i, budget)/then)
	}
	figure("hsp_equal_cost_hindsight", middle(hindsight), "ratio")
	figure("hsp_least", middle(least), "ratio")
	h.log.tell("done")
	return nil
}

// contest holds the path that was found against the best fixed choice.
func (h *hybrid) contest(path, best tried, budget float64) {
	fmt.Printf("path: %s\nbest fixed: %s\n", path.what, best.what)
	figure("hsp_equal_cost", path.seconds(budget)/best.seconds(budget), "ratio")
	figure("hsp_reached", path.reached(budget), "of 1")
	figure("hsp_fixed_reached", best.reached(budget), "of 1")
	figure("hsp_cost_of_budget", path.cost()/budget, "ratio")
}

// diary tells what a long measurement is at.
type diary struct{ begun time.Time }

func begunNow() diary { return diary{time.Now()} }

func (d diary) tell(format string, args ...any) {
	fmt.Printf("# hsp, after %v: %s\n", time.Since(d.begun).Round(time.Second), fmt.Sprintf(format, args...))
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

// few functions are the cheapest. A fixed choice is tried with the first screenSeeds seeds; with all seeds, those that
// came to the target soonest by them.
const (
	few         = 3
	screenSeeds = 4
	finalists   = 12
)

// grid is the fixed choices of some numbers of functions, and the budget: hybridBudget times the least median cost of
// any. More than few of them are run up to what would be the budget by those. Those of few, which say what the budget
// is, are all tried with all seeds, and of the others the finalists.
func (h *hybrid) grid(target float64, seeds []uint64, numbers []int) (out []tried, budget float64) {
	cheapest := math.Inf(1)
	screen := seeds[:min(screenSeeds, len(seeds))]
	type second struct {
		by    schedule.Chooser
		tried tried
	}
	var screened []second
	for _, workers := range numbers {
		for memory := h.world.LeastMemory; memory <= h.world.MostMemory; memory += 2 * h.world.Step {
			by := schedule.Fixed(schedule.Choice{Workers: workers, Memory: memory})
			t := tried{what: fmt.Sprintf("%d functions of %.0f MB", workers, memory)}
			if workers <= few {
				t.runs = h.all(by, goal{loss: target, cost: 2 * hybridBudget * cheapest}, seeds)
				cheapest = min(cheapest, t.cost())
				out = append(out, t)
				continue
			}
			t.runs = h.all(by, goal{loss: target, cost: hybridBudget * cheapest}, screen)
			cheapest = min(cheapest, t.cost())
			screened = append(screened, second{by, t})
		}
		h.log.tell("%d functions fixed, the cheapest so far %.0f GB-s", workers, cheapest)
	}
	budget = hybridBudget * cheapest
	slices.SortStableFunc(screened, func(a, b second) int {
		return cmp.Compare(a.tried.seconds(budget), b.tried.seconds(budget))
	})
	for _, s := range screened[:min(finalists, len(screened))] {
		rest := h.all(s.by, goal{loss: target, cost: budget}, seeds[len(screen):])
		s.tried.runs = append(s.tried.runs, rest...)
		out = append(out, s.tried)
	}
	return out, budget
}
