package scheduler

import (
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler/schedule"
)

// Path goes along a schedule of five numbers (from how many workers to how many, with how much memory, how fast) that a
// search finds in a simulated cloud, so that the job ends soonest within its budget: what SIREN learns, found in
// milliseconds. The cloud is made of what was measured: the times of 1,000 rows, by the law where a number was not
// measured, what a worker costs, and what is left of epochs and budget. It searches anew after every epoch, so that a
// noisy one is made up for.
//
// Memory stays as it is planned: nothing here has seen how it changes times. Package schedule varies it, where a world
// says how.
type Path struct{}

// Name is the word of job files.
func (Path) Name() string { return "path" }

// Meaning is what explain says.
func (Path) Meaning() string {
	return "goes along the schedule that a search in a simulated cloud finds, the fastest within the budget"
}

// Decide searches for the rest of the job.
func (p Path) Decide(in Input) disdel.Decision {
	s := speedsOf(in)
	return s.scheduled(in, func(all []timed) timed { return p.next(s, in, all) })
}

// next is the first choice of the best path.
func (Path) next(s *speeds, in Input, all []timed) timed {
	w := s.world(in, all)
	if in.Goal.Cost <= 0 || s.price <= 0 { // nothing is traded for anything: the fastest number is the best schedule
		c, _, _ := w.Best(0)
		return at(all, c.Workers)
	}
	path, _, ok := w.Search(in.Goal.Cost)
	if !ok {
		c, _, _ := w.Cheapest()
		return at(all, c.Workers)
	}
	return at(all, path.At(0).Workers)
}

// scheduled decides as a schedule's policy does: where jobs of the kind have told two numbers of workers already, from
// the start on, and after every epoch.
func (s *speeds) scheduled(in Input, best func([]timed) timed) disdel.Decision {
	out := unchanged(in)
	switch {
	case in.Boundary == disdel.BoundaryStart && len(s.mean) > 1:
		return s.goes(best(s.measured(s.candidates())), " in earlier jobs").decision(out)
	case in.Boundary == disdel.BoundaryEpoch:
		return s.choose(in, best).decision(out)
	default:
		return out
	}
}

// at is the candidate of a number of workers, or the nearest one to it.
func at(all []timed, workers int) timed {
	return slices.MinFunc(all, by(func(t timed) float64 { return math.Abs(float64(t.workers - workers)) }))
}

// slowest is a time that no schedule waits for, s: of numbers of workers that nothing is known of.
const slowest = 1e12

// world is the rest of a job as schedules are looked for in: the times of the candidates, and memory that stays. What a
// worker costs stands for it.
func (s *speeds) world(in Input, all []timed) *schedule.World {
	memory := 1024.0
	if s.price > 0 {
		memory *= s.price * 1e9 // GB-s of a worker in a second
	}
	w := &schedule.World{
		Times: map[int]float64{}, First: 1, Fall: 1, Epochs: max(1, int(math.Ceil(in.Goal.Epochs))),
		LeastMemory: memory, MostMemory: memory, Step: memory,
	}
	for _, t := range all {
		w.MostWorkers = max(w.MostWorkers, t.workers)
		w.Times[t.workers] = s.rows / 1000 * t.time / 1e9
	}
	for n := 1; n <= w.MostWorkers; n++ {
		if _, known := w.Times[n]; !known {
			w.Times[n] = slowest
		}
	}
	return w
}
