package scheduler

import (
	"cmp"
	"slices"

	"github.com/disdel/disdel"
)

// lessonJobs is how many of the newest jobs of a kind decide how large a limit must be. Older jobs only say whether a
// limit was too small.
const lessonJobs = 5

// resource is one of the limits of an action, and how records tell what the action needed of it. Numbers are bytes or
// nanoseconds.
type resource struct {
	limit    func(disdel.Limits) int64
	lacked   func(*disdel.Activation) bool
	measured func(*disdel.Activation) int64 // with a margin; 0: unknown
	next     func(*disdel.Record, disdel.Activation) int64
	byRows   bool // what is measured grows with the rows
}

func memoryLimit() resource {
	return resource{
		limit:    func(l disdel.Limits) int64 { return int64(l.Memory) },
		lacked:   (*disdel.Activation).LackedMemory,
		measured: func(a *disdel.Activation) int64 { return wholeMB(scaled(a.Peak, peakMargin)) },
		next: func(r *disdel.Record, a disdel.Activation) int64 {
			next, _ := EnoughMemory(r, a)
			return int64(next)
		},
	}
}

func deviceLimit() resource {
	return resource{
		limit:    func(l disdel.Limits) int64 { return int64(l.Device) },
		lacked:   (*disdel.Activation).LackedDevice,
		measured: func(a *disdel.Activation) int64 { return wholeMB(scaled(a.DevicePeak, peakMargin)) },
		next: func(r *disdel.Record, a disdel.Activation) int64 {
			next, _ := DeviceMemory(a, r.Job.Reliability.Retries.MemoryFactor)
			return int64(next)
		},
	}
}

// timeLimit ignores activations that stalled: they did not need more time.
func timeLimit() resource {
	return resource{
		limit: func(l disdel.Limits) int64 { return int64(l.Timeout) },
		lacked: func(a *disdel.Activation) bool {
			_, stalled := a.Stalled()
			return a.Outcome == disdel.OutcomeTimeout && !stalled
		},
		measured: func(a *disdel.Activation) int64 {
			if a.Leg > 0 || a.Recovered != "" || a.Task == disdel.TaskTrain && a.Rows == 0 { // only a part of the work
				return 0
			}
			return int64(ceilSecond(times(a.Duration, disdel.PacedMargin)))
		},
		next: func(r *disdel.Record, a disdel.Activation) int64 {
			if next, _, measured := EnoughTime(r, a); measured {
				return int64(next)
			}
			next, _ := Timeout(a, r.Job.Reliability.Retries.TimeoutFactor)
			return int64(max(next, LeastTime))
		},
		byRows: true,
	}
}

func wholeMB(b disdel.Bytes) int64 { return int64(b.MB()) * int64(disdel.MB) }

// lack is a limit that was too small for one activation.
type lack struct {
	limit  int64
	needed int64 // what the same work needed when it passed, or what is advised where it never did
}

// lacks returns the limits of a task that were too small in a job. If work was killed and then passed with the same
// limit, the limit was not the cause.
func (q resource) lacks(r *disdel.Record, task disdel.Task) (out []lack) {
	for i := range r.Activations {
		a := &r.Activations[i]
		if a.Task != task || !q.lacked(a) {
			continue
		}
		l := lack{limit: q.limit(a.Limits)}
		if again := passedAfter(r, i); again != nil {
			l.needed = q.need(r, again)
		} else {
			l.needed = q.next(r, *a)
		}
		if l.needed > l.limit {
			out = append(out, l)
		}
	}
	return out
}

// passedAfter returns the later activation that finished the work of activation i of a record, or nil.
func passedAfter(r *disdel.Record, i int) *disdel.Activation {
	slot, round := r.Activations[i].Slot(), r.Activations[i].Round
	for k := i + 1; k < len(r.Activations); k++ {
		if a := &r.Activations[k]; a.Outcome == disdel.OutcomeSuccess && a.Slot() == slot && a.Round == round {
			return a
		}
	}
	return nil
}

// need returns what a passed activation needed: the measured value, or else its limit. It is scaled up for a retry
// that continued from stored state and trained fewer rows than its round has.
func (q resource) need(r *disdel.Record, a *disdel.Activation) int64 {
	need := q.measured(a)
	if need == 0 {
		return q.limit(a.Limits)
	}
	if maximum := mostRows(r, a.Task); q.byRows && a.Rows > 0 && a.Rows < maximum {
		need = int64(float64(need) * float64(maximum) / float64(a.Rows))
	}
	return need
}

func mostRows(r *disdel.Record, task disdel.Task) (maximum int) {
	for i := range r.Activations {
		if a := &r.Activations[i]; a.Task == task && a.Outcome == disdel.OutcomeSuccess {
			maximum = max(maximum, a.Rows)
		}
	}
	return maximum
}

// needOf returns what a task needed in a job: the maximum over its passed activations, or the advice after a limit
// that was too small. If nothing was measured, it is the smallest limit that passed. 0: the job says nothing.
func (q resource) needOf(r *disdel.Record, task disdel.Task) (need int64, lacked bool) {
	for _, l := range q.lacks(r, task) {
		need, lacked = max(need, l.needed), true
	}
	var had int64
	for i := range r.Activations {
		a := &r.Activations[i]
		if a.Task != task || a.Outcome != disdel.OutcomeSuccess {
			continue
		}
		if q.measured(a) > 0 {
			need = max(need, q.need(r, a))
		} else if l := q.limit(a.Limits); had == 0 || l < had {
			had = l
		}
	}
	return cmp.Or(need, had), lacked
}

// lesson collects what jobs needed of one limit, newest first.
type lesson struct {
	needs []float64    // of the newest jobs
	by    disdel.JobID // the newest job whose limit was too small
}

func (l *lesson) add(job disdel.JobID, need float64, lacked bool) {
	if lacked && l.by == "" {
		l.by = job
	}
	if need > 0 && len(l.needs) < lessonJobs {
		l.needs = append(l.needs, need)
	}
}

// minimum returns the need that the next job starts with: that of the newest job, or the median of the newest jobs if
// that is larger. It returns 0 if no limit was too small. A need that disappears is forgotten after a few jobs; one
// that returns counts at once.
func (l *lesson) minimum() (need float64, by disdel.JobID) {
	if l.by == "" || len(l.needs) == 0 {
		return 0, ""
	}
	sorted := slices.Sorted(slices.Values(l.needs))
	return max(l.needs[0], sorted[(len(sorted)-1)/2]), l.by
}

// learned returns the least limit by what earlier jobs of this kind needed, and the newest job whose limit was too
// small. It returns 0 if no limit was too small. Another batch, number of workers, optimiser or engine makes another
// kind.
func (b *planBuilder) learned(task disdel.Task, q resource) (minimum int64, by disdel.JobID) {
	var l lesson
	for i := range b.History {
		for _, stage := range slices.Backward(b.History[i].SplitByStage()) {
			if b.sameKind(stage) {
				need, lacked := q.needOf(stage, task)
				l.add(stage.ID, float64(need), lacked)
			}
		}
	}
	need, by := l.minimum()
	return int64(need), by
}

func (b *planBuilder) sameKind(r *disdel.Record) bool {
	was, is := r.Job.Training, b.Job.Training
	return r.Data.Same(b.Data) && r.Plan.Workers == b.plan.Workers && len(r.Plan.Stages) == len(b.plan.Stages) &&
		r.Plan.WorkerBatch(&r.Job) == b.plan.WorkerBatch(&b.Job) &&
		was.Backend == is.Backend && was.Optimizer.Name() == is.Optimizer.Name() &&
		was.Precision.Same(is.Precision) && r.Plan.StepMemory == b.plan.StepMemory
}

// underrated returns a factor on the estimate of a task's actions, and the newest job that taught it. The factor
// comes from earlier jobs of the same network whose actions were killed although they had their estimate. It is 1 if
// there is no such job.
func (b *planBuilder) underrated(task disdel.Task, method string) (times float64, by disdel.JobID) {
	past := b.Past
	if past == nil {
		past = b.History
	}
	q, l := memoryLimit(), lesson{}
	q.lacked = func(a *disdel.Activation) bool {
		return a.LackedMemory() && a.Estimate > 0 && a.Limits.Memory >= a.Estimate
	}
	for i := range past {
		for _, stage := range slices.Backward(past[i].SplitByStage()) {
			a, _ := stage.Plan.Action(task)
			if b.sameNetwork(stage) && a.Estimate.Method == method && a.Estimate.Total > 0 {
				need, lacked := q.needOf(stage, task)
				l.add(stage.ID, float64(need)/float64(a.Estimate.Total), lacked)
			}
		}
	}
	times, by = l.minimum()
	return max(1, times), by
}

// sameNetwork tells whether the job has the same network on the same engine, with an optimiser that stores as much.
func (b *planBuilder) sameNetwork(r *disdel.Record) bool {
	was, is := r.Job, b.Job
	return was.Training.Backend == is.Training.Backend &&
		was.Training.Optimizer.Moments() == is.Training.Optimizer.Moments() && was.Model.SameNetwork(&is.Model)
}

// LimitsReached returns the limits that a job had reached for a task: the smallest that passed above those that were
// too small. If none passed, it returns what the job is advised to ask for. A limit is 0 if none was too small.
func LimitsReached(r *disdel.Record, task disdel.Task) disdel.Limits {
	return disdel.Limits{
		Memory:  disdel.Bytes(memoryLimit().limitReached(r, task)),
		Timeout: disdel.Millis(timeLimit().limitReached(r, task)),
		Device:  disdel.Bytes(deviceLimit().limitReached(r, task)),
	}
}

func (q resource) limitReached(r *disdel.Record, task disdel.Task) int64 {
	var short, next, enough int64
	for _, l := range q.lacks(r, task) {
		if l.limit > short {
			short = l.limit
		}
		next = max(next, l.needed)
	}
	if short == 0 {
		return 0
	}
	for i := range r.Activations {
		a := &r.Activations[i]
		if had := q.limit(a.Limits); a.Task == task && a.Outcome == disdel.OutcomeSuccess && had > short &&
			(enough == 0 || had < enough) {
			enough = had
		}
	}
	return cmp.Or(enough, next)
}
