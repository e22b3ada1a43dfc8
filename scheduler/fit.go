package scheduler

import (
	"slices"
	"sort"

	"github.com/disdel/disdel"
)

// Fit is how a job goes into actions of at most Limit. A point that is nil does not exist.
type Fit struct {
	Limit   disdel.Bytes `json:"limitBytes"`
	Given   *FitPoint    `json:"given,omitempty"`       // the job's batch with the fewest workers
	Same    *FitPoint    `json:"sameWorkers,omitempty"` // the largest batch with the job's number of workers
	Largest *FitPoint    `json:"largest,omitempty"`     // the largest batch, with the fewest workers that it takes
	// The least limit that every action of the job fits, whatever the number of workers.
	LeastGiven disdel.Bytes `json:"leastGivenBytes"` // with the job's batch
	Least      disdel.Bytes `json:"leastBytes"`      // with one row a batch
	LeastTask  disdel.Task  `json:"leastTask"`       // what takes Least
}

// FitPoint is one batch and number of workers, and the plan that it makes.
type FitPoint struct {
	BatchSize int         `json:"batchSize"`
	Workers   int         `json:"workers"`
	Plan      disdel.Plan `json:"plan"`
}

// Fits tells whether the job goes into the limit at all.
func (f Fit) Fits() bool { return f.Largest != nil }

// FitMemory finds what of the job goes into actions of at most limit, by bisection over NewPlan: what an action needs
// never falls when the batch grows, and never grows with the number of workers. That number is at most the platform's
// concurrency, and leaves every shard a whole batch. workers is the job's own; 0: it has none.
func FitMemory(in PlanInput, limit disdel.Bytes, workers int) Fit {
	s := newSearch(in, limit)
	f := Fit{Limit: limit}
	f.LeastGiven, _ = s.least(in.Job.Training.JobBatch())
	f.Least, f.LeastTask = s.least(1)
	f.Given = s.fewest(in.Job.Training.JobBatch())
	if workers > 0 {
		f.Same = s.point(s.largest(func(int) int { return workers }), workers)
	}
	f.Largest = s.fewest(s.largest(s.most))
	return f
}

// search plans a job under a limit again and again.
type search struct {
	in    PlanInput
	limit disdel.Bytes
	asked disdel.Job // whose fields a change is a change of

	// What an action of a task turned out to need, in multiples of its estimate; 0: as estimated.
	task  disdel.Task
	times float64
}

func newSearch(in PlanInput, limit disdel.Bytes) search {
	return search{in: in, limit: limit, asked: in.Job}
}

// corrected returns the search with a corrected estimate: the actions of a task need so many bytes in the unchanged
// job.
func (s search) corrected(task disdel.Task, need disdel.Bytes, workers int) search {
	in := LiftAll(s.in)
	in.Job.Distribution.Workers = workers
	p, err := NewPlan(in)
	if a, ok := p.Action(task); err == nil && ok && a.Estimate.Total > 0 {
		s.task, s.times = task, max(1, float64(need)/float64(a.Estimate.Total))
	}
	return s
}

// needs is the memory that an action needs: its estimate, corrected if the search knows that it is too low.
func (s search) needs(a disdel.ActionPlan) disdel.Bytes {
	if a.Task == s.task && s.times > 1 {
		return scaled(a.Estimate.Total, s.times)
	}
	return a.Estimate.Total
}

// most is the largest number of workers for a batch.
func (s search) most(batch int) int {
	n := s.in.Job.Training.Resized(batch).MostWorkers(s.in.Data.Train)
	if c := s.in.Platform.Concurrent; c > 0 {
		n = min(n, c)
	}
	return n
}

// point plans a batch with a number of workers; nil if some action does not fit.
func (s search) point(batch, workers int) *FitPoint {
	in := s.in
	in.Job.Training, in.Job.Distribution.Workers = in.Job.Training.Resized(batch), workers
	if batch < 1 || workers < 1 || in.Job.Training.WorkerBatch(workers) > s.in.Data.Train/workers {
		return nil
	}
	in.Job.Resources.Memory, in.Job.Resources.MaxMemory, in.Suggest = 0, s.limit, false
	p, err := NewPlan(in)
	if err != nil {
		return nil
	}
	if most, _ := largestLimit(p); most > s.limit { // the platform may give no less than its minimum
		return nil
	}
	if slices.ContainsFunc(p.Actions, func(a disdel.ActionPlan) bool { return s.needs(a) > s.limit }) {
		return nil
	}
	return &FitPoint{BatchSize: batch, Workers: workers, Plan: p}
}

// largestLimit is the most that any action of a plan is given, and the task of that action.
func largestLimit(p disdel.Plan) (most disdel.Bytes, task disdel.Task) {
	for _, a := range p.Actions {
		if a.Limits.Memory > most {
			most, task = a.Limits.Memory, a.Task
		}
	}
	return most, task
}

// largest is the largest batch that fits with the number of workers that it is given; 0 if none does.
func (s search) largest(workers func(batch int) int) int {
	return sort.Search(s.in.Data.Train, func(i int) bool { return s.point(i+1, workers(i+1)) == nil })
}

// fewest is the plan of a batch with the fewest workers that it fits with; nil if it never fits.
func (s search) fewest(batch int) *FitPoint {
	most := s.most(batch)
	n := 1 + sort.Search(most, func(i int) bool { return s.point(batch, i+1) != nil })
	if n > most {
		return nil
	}
	return s.point(batch, n)
}

// least is the largest limit of the actions that a batch takes with as many workers as it may have.
func (s search) least(batch int) (disdel.Bytes, disdel.Task) {
	in := LiftAll(s.in)
	in.Job.Training, in.Job.Distribution.Workers = in.Job.Training.Resized(batch), s.most(batch)
	p, err := NewPlan(in)
	if err != nil {
		return 0, ""
	}
	return largestLimit(p)
}
