package scheduler

import (
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// ProcessorShare is how many times a platform's processors are granted to jobs that run side by side. A job leaves them
// idle while it aggregates, evaluates and starts containers, so one job for every processor is too few; with many more
// they take turns, and caches and memory are shared by all: on two processors, six trainings at once compute 1.3 times
// as long as one after another, and three 1.1 times.
const ProcessorShare = 1.5

// SharesAfter is how far off the end of every job that runs must be for one that may share processors to do so.
const SharesAfter = disdel.Millis(3 * time.Second)

// Sharing has an allocator grant jobs that may share processors (Demand.Shares) what lacks nothing but these, one at a
// decision, where no job that runs is expected to end soon: who submits a short job beside long ones does not wait for
// their end, and many short ones take their turn.
type Sharing struct{ By Allocator }

// Allocate is the decision of an Allocator.
func (s Sharing) Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant {
	grants := s.By.Allocate(now, free, jobs)
	if slices.ContainsFunc(grants, given) || !longUntilNext(now, jobs) {
		return grants
	}
	for _, d := range waiting(jobs) {
		room := d.Gang.Room()
		if !d.Shares || d.Held != nil || room.Millicores <= free.Millicores {
			continue
		}
		if room.Millicores = 0; !free.Holds(room) { // nobody waits behind one that waits for memory
			continue
		}
		if shared := s.By.Allocate(now, free, sharing(jobs, d.Job)); slices.ContainsFunc(shared, given) {
			return shared
		}
	}
	return grants
}

func given(g Grant) bool { return !g.Reserved }

// longUntilNext tells whether no job that holds something is expected to end soon. Of one that has no time, or whose
// time is over, that is not expected.
func longUntilNext(now disdel.Millis, jobs []Demand) bool {
	return !slices.ContainsFunc(jobs, func(d Demand) bool {
		return d.Held != nil && d.Held.Until > now && d.Held.Until-now <= SharesAfter
	})
}

// sharing is the same jobs, one of which asks for no processors of its own.
func sharing(jobs []Demand, job disdel.JobID) []Demand {
	out := slices.Clone(jobs)
	at := slices.IndexFunc(out, func(d Demand) bool { return d.Job == job })
	d := &out[at]
	d.Gang = slices.Clone(d.Gang)
	for i := range d.Gang {
		d.Gang[i].Each.Millicores = 0
	}
	d.room = d.Gang.Room()
	return out
}
