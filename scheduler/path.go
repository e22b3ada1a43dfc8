package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler/schedule"
)

// Path follows a schedule that ends the job soonest within its budget. A schedule has five numbers: the first and last
// number of workers, the first and last memory, and how fast to go from one to the other. A search in a simulated cloud
// finds it in milliseconds, where SIREN learns. The cloud is made of measured times of 1,000 rows, or of their law for
// other numbers of workers. It also has the cost of a worker, and the epochs and the budget that are left. Path
// searches again after every epoch, which corrects a noisy one.
//
// Path also chooses one of the measured memories, if epochs have shown how memory changes their times.
type Path struct{}

// Name returns the policy's name in job files.
func (Path) Name() string { return "path" }

// Meaning returns what explain says.
func (Path) Meaning() string {
	return "goes along the schedule that a search in a simulated cloud finds, the fastest within the budget"
}

// Decide searches for the rest of the job.
func (p Path) Decide(in Input) disdel.Decision {
	s := speedsOf(in)
	return s.scheduled(in, func(all []timed) schedule.Choice { return p.next(s, in, all) })
}

// next returns the first choice of the best path.
func (Path) next(s *speeds, in Input, all []timed) schedule.Choice {
	w := s.world(in, all)
	if in.Goal.Cost <= 0 || s.price <= 0 { // time is not traded for cost: the fastest number is the best schedule
		c, _, _ := w.Best(0)
		return c
	}
	path, _, ok := w.Search(in.Goal.Cost)
	if !ok {
		c, _, _ := w.Cheapest()
		return c
	}
	return w.Clip(path.At(0))
}

// scheduled decides for a policy that follows a schedule: after every epoch, and from the start if jobs of the kind
// have measured two numbers of workers. The memory may change after an epoch.
func (s *speeds) scheduled(in Input, best func([]timed) schedule.Choice) disdel.Decision {
	out := unchanged(in)
	memory := map[int]disdel.Bytes{} // by workers, of the best choice with so many
	pick := func(all []timed) timed {
		c := best(all)
		t := at(all, c.Workers)
		memory[t.workers] = in.Now.Memory
		if m, ok := s.memories.nearest(s.unit(), c); ok {
			memory[t.workers] = s.memories.setting(m)
		}
		return t
	}
	switch {
	case in.Boundary == disdel.BoundaryStart && len(s.mean) > 1:
		return s.goes(pick(s.measured(s.candidates())), " in earlier jobs").decision(out)
	case in.Boundary != disdel.BoundaryEpoch:
		return out
	}
	c := s.choose(in, pick)
	m, picked := memory[c.workers]
	if s.repeat != "" || !picked {
		m = in.Now.Memory
	}
	was, will := cmp.Or(in.Now.Memory, s.memories.own), cmp.Or(m, s.memories.own)
	c.expect *= s.memories.ratio(will)
	out = c.decision(out)
	if out.Next.Memory = m; m != in.Now.Memory {
		out.Why += fmt.Sprintf("; %v each, with which an epoch takes %.2f times as long as with %v", will,
			s.memories.ratio(will)/s.memories.ratio(was), was)
	}
	return out
}

// at returns the candidate with so many workers, or the nearest one.
func at(all []timed, workers int) timed {
	return slices.MinFunc(all, by(func(t timed) float64 { return math.Abs(float64(t.workers - workers)) }))
}

// slowest is a time, in s, for numbers of workers about which nothing is known: no schedule chooses them.
const slowest = 1e12

// unit is the memory of the job's first epoch in a world, derived from the cost of a worker.
func (s *speeds) unit() float64 {
	memory := 1024.0
	if s.price > 0 {
		memory *= s.price * 1e9 // GB-s of a worker in a second
	}
	return memory
}

// world is the rest of a job as a world for schedules: the times of the candidates, and the known memories.
func (s *speeds) world(in Input, all []timed) *schedule.World {
	memory := s.unit()
	w := &schedule.World{
		Times: map[int]float64{}, First: 1, Fall: 1, Epochs: max(1, int(math.Ceil(in.Goal.Epochs))),
		LeastMemory: memory, MostMemory: memory, Step: memory,
	}
	for _, t := range s.worthwhile(all) {
		w.MostWorkers = max(w.MostWorkers, t.workers)
		w.Times[t.workers] = s.rows / 1000 * t.time / 1e9
	}
	for n := 1; n <= w.MostWorkers; n++ {
		if _, known := w.Times[n]; !known {
			w.Times[n] = slowest
		}
	}
	s.memories.addTo(w, memory)
	return w
}
