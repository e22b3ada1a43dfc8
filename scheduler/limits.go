package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

const (
	// MemoryFactor and TimeoutFactor are the least growth of a limit that was too small, if the job file sets none.
	MemoryFactor, TimeoutFactor = 1.25, estimator.TimeoutFactor
	// peakMargin raises a measured peak: the garbage collector and the allocator do not repeat to the byte.
	peakMargin = 1.1
	// growthBound limits the extrapolation of a few heartbeats, in multiples of the limit.
	growthBound = 2.0
)

// Memory returns the limit for another attempt of an activation that ran out of memory, in whole megabytes, and how
// it was computed. It is the largest of: the limit times factor (0: MemoryFactor), the measured peak with a margin,
// the estimate, and the size at the round's end if memory grew from batch to batch in the heartbeats. The peak of a
// killed process is only a lower bound.
func Memory(a disdel.Activation, factor float64) (disdel.Bytes, string) {
	if factor <= 1 {
		factor = MemoryFactor
	}
	limit := a.Limits.Memory
	next, why := max(limit+1, scaled(limit, factor)), fmt.Sprintf("%v x %.4g", limit, factor)
	for _, c := range []struct {
		bytes disdel.Bytes
		why   string
	}{
		{scaled(a.Peak, peakMargin), fmt.Sprintf("measured peak %v x %.4g", a.Peak, peakMargin)},
		{a.Estimate, fmt.Sprintf("the estimate with its margin of %v", a.Estimate)},
		grown(a),
	} {
		if c.bytes > next {
			next, why = c.bytes, c.why
		}
	}
	return disdel.Bytes(next.MB()) * disdel.MB, why
}

// lastFactor is the least growth of a limit that is not raised again.
const lastFactor = 1.5

// EnoughMemory returns a limit with which the job should pass at its next attempt, and how it was computed. The limit
// grows by at least half. If earlier jobs' peaks had lowered the estimate and this activation of r was killed, it
// grows to what the plan alone had expected.
func EnoughMemory(r *disdel.Record, a disdel.Activation) (disdel.Bytes, string) {
	next, why := Memory(a, max(r.Job.Reliability.Retries.MemoryFactor, lastFactor))
	plan := r.PlanOf(&a.Invocation)
	action, _ := plan.Action(a.Task)
	e := action.Estimate
	if e.Ratio <= 0 || e.Ratio >= 1 {
		return next, why
	}
	unlearned := scaled(e.Total, peakMargin/e.Ratio)
	if unlearned <= next {
		return next, why
	}
	return disdel.Bytes(unlearned.MB()) * disdel.MB, fmt.Sprintf("the plan alone expects %v x %.4g, "+
		"which earlier jobs' peaks had made %v of", scaled(e.Total, 1/e.Ratio), peakMargin, e.Total)
}

func scaled(b disdel.Bytes, factor float64) disdel.Bytes {
	return disdel.Bytes(float64(b) * factor)
}

// grown extrapolates the memory of the heartbeats to the end of the round, if it grew with the batches.
func grown(a disdel.Activation) (out struct {
	bytes disdel.Bytes
	why   string
},
) {
	var first, last *disdel.Beat
	for i := range a.Beats {
		b := &a.Beats[i]
		switch {
		case b.Batch == 0:
		case first == nil:
			first, last = b, b
		case b.Resident < last.Resident:
			return out // memory that falls again was freed by the garbage collector
		default:
			last = b
		}
	}
	if first == nil {
		return out
	}
	from, all := a.ProgressAt(*first)
	to, _ := a.ProgressAt(*last)
	if to <= from || last.Resident <= first.Resident {
		return out
	}
	each := float64(last.Resident-first.Resident) / float64(to-from)
	end := float64(last.Resident) + each*float64(max(0, all-to))
	out.bytes = disdel.Bytes(math.Min(end*peakMargin, growthBound*float64(a.Limits.Memory)))
	out.why = fmt.Sprintf("memory grew from %v to %v in batches %d to %d of %d", first.Resident, last.Resident, from, to,
		all)
	return out
}

// LeastTime is the shortest timeout that is worth advising: a container takes seconds to start if images are large or
// the machine is busy.
const LeastTime = disdel.Millis(10 * time.Second)

// Timeout returns the timeout for another attempt of an activation that ran out of time, and how it was computed. It
// is the longer of: the timeout times factor (0: TimeoutFactor), and the whole round's time by its progress with half
// of factor on top.
func Timeout(a disdel.Activation, factor float64) (disdel.Millis, string) {
	next, why := timeout(a, factor)
	return ceilSecond(next), why
}

func timeout(a disdel.Activation, factor float64) (disdel.Millis, string) {
	if factor <= 1 {
		factor = TimeoutFactor
	}
	next, why := max(a.Limits.Timeout+1, times(a.Limits.Timeout, factor)),
		fmt.Sprintf("%v x %.4g", a.Limits.Timeout, factor)
	pace, measured := a.Pace()
	margin := 1 + (factor-1)/2
	if by := times(pace.Ends, margin); measured && by > next {
		next, why = by, fmt.Sprintf("%s: the whole takes about %v, x %.4g", a.DoneText(), pace.Ends.Text(), margin)
	}
	return next, why
}

// EnoughTime returns a timeout that is enough for the next attempt of an activation of r that ran out of time, and
// how it was computed. It uses the pace in the activation's heartbeats, and the time of the same work in other
// activations of r. It returns false if neither is known.
func EnoughTime(r *disdel.Record, a disdel.Activation) (disdel.Millis, string, bool) {
	need, factor, why := disdel.Millis(0), 0.0, ""
	if p, measured := a.Pace(); measured {
		need, factor = p.Whole, p.Margin()
		why = fmt.Sprintf("%s: the whole takes about %v", a.DoneText(), need.Text())
	}
	if other := longestOther(r, a); other > need {
		need, factor = other, disdel.PacedMargin
		why = fmt.Sprintf("another %s action took %v", a.Task, other.Text())
	}
	if need == 0 {
		return 0, "", false
	}
	if a.Limits.Timeout > need { // it was slower than that
		need, factor = a.Limits.Timeout, max(factor, disdel.PacedMargin)
		why += fmt.Sprintf(", and it takes more than %v", need)
	}
	next := times(need, factor)
	why += fmt.Sprintf(", x %.4g", factor)
	if next < LeastTime {
		return LeastTime, fmt.Sprintf("%s, and %v at least", why, LeastTime), true
	}
	return next.Readable(), why, true
}

// longestOther is the longest time that another activation of r took for the work of a, all its legs together. It is
// 0 if none finished it.
func longestOther(r *disdel.Record, a disdel.Activation) (longest disdel.Millis) {
	legs := map[string]disdel.Millis{} // by slot and round
	for i := range r.Activations {
		o := &r.Activations[i]
		if o.Task != a.Task || o.Stage != a.Stage || o.Recovered != "" {
			continue
		}
		description := fmt.Sprintf("%v of round %d", o.Slot(), o.Round)
		switch o.Outcome {
		case disdel.OutcomePaused:
			legs[description] += o.Duration
		case disdel.OutcomeSuccess:
			longest = max(longest, legs[description]+o.Duration)
		default: // a failed activation says nothing about the whole
		}
	}
	return longest
}

func times(m disdel.Millis, factor float64) disdel.Millis { return disdel.Millis(float64(m) * factor) }

func ceilSecond(m disdel.Millis) disdel.Millis {
	const s = disdel.Millis(time.Second)
	return (m + s - 1) / s * s
}

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
	if q.byRows && a.Rows > 0 {
		need = int64(float64(need) * float64(mostRows(r, a.Task)) / float64(a.Rows))
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
		was.Precision.Same(is.Precision) && r.Plan.StepMemory == b.plan.StepMemory && r.Plan.OnDisk == b.plan.OnDisk
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

// opaque returns the job's Python program if nothing is known of its memory but its weights; nil otherwise.
func (in PlanInput) opaque() *disdel.PythonNetwork {
	if c := in.Graph.Custom(); c != nil && c.Python != nil && c.Python.Basis == disdel.MemoryGiven {
		return c.Python
	}
	return nil
}

// checkGiven refuses an opaque program without memory of the user's own: an estimate of its weights would be too low.
func (b *planBuilder) checkGiven() error {
	p := b.opaque()
	if p == nil || b.Job.Resources.Memory > 0 {
		return nil
	}
	msg := "resources.memory is missing, and disdel cannot find the memory of " + b.Graph.Custom().Name + " out"
	if len(p.Warnings) > 0 {
		msg += ": " + strings.Join(p.Warnings, "; ")
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "plan job", Job: b.ID, Msg: msg,
		Hint: "add --set resources.memory=1GB, or another size above the " + p.Floor.String() +
			" of its process; later jobs of the program learn from the peak that this one measures",
	}
}

// CheckKnownMemory returns Invalid for a program whose memory only resources.memory says: no batch can be found for it.
func CheckKnownMemory(in PlanInput, limit disdel.Bytes) error {
	if in.opaque() == nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "fit job",
		Msg: fmt.Sprintf("disdel cannot find the memory of %s out, and knows no batch that fits %v",
			in.Graph.Custom().Name, limit),
		Hint: fmt.Sprintf("run a job of it once, with --set resources.memory=%dMB: later estimates learn from the peak "+
			"that it measures", limit.MB()),
	}
}

// given replaces the totals of an opaque program's estimate by resources.memory. An estimate above it stays, since
// weights that do not fit will not fit.
func (b *planBuilder) given(e disdel.Estimate) disdel.Estimate {
	own := b.Job.Resources.Memory
	if b.opaque() == nil || e.Total > own {
		return e
	}
	e.Method, e.Total, e.Margin = disdel.MemoryGiven, own, 0
	e.Low, e.Likely, e.High, e.Risk = 0, 0, 0, 0
	return e
}
