package scheduler

import (
	"fmt"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// How often a failure of the platform is retried, for one worker in one round. A lost activation does not mean that the
// next one will be lost, so there are many retries. An image that cannot be pulled rarely can the next time, and a
// missing device is rarely on the next machine.
const (
	platformRetries = 6
	lostRetries     = 24
	imageRetries    = 1
	// startRetries is for a process that never accepted a request. A slow machine may start it the next time. A broken
	// image will not start, but OpenWhisk reports the difference only at the action's timeout.
	startRetries = 2
	// diedRetries is for a process that ended at once before it accepted a request, and not for lack of memory. Such
	// attempts cost seconds, and whatever killed it may kill it several times.
	diedRetries = 4
)

// standardRetries applies if a job sets no retries. In a job file a limit of 0 allows none.
var standardRetries = disdel.Retries{
	Limit: 6, PerWorker: 3, MemoryFactor: MemoryFactor, TimeoutFactor: TimeoutFactor,
	Backoff: disdel.Backoff{Initial: disdel.Duration(time.Second), Max: disdel.Duration(30 * time.Second)},
}

// Attempts counts the earlier attempts at the failed work.
type Attempts struct {
	Job      int // retries that count against reliability.retries.limit
	Worker   int // retries of this worker in this round
	Platform int // this worker's failures in this round that the platform caused
	Crashes  int // this worker's failures in this round by its own defect
}

// RemedyInput is what a remedy is chosen from.
type RemedyInput struct {
	Activation disdel.Activation // the failed one, with its peak, its heartbeats and its request
	Job        disdel.Job
	Plan       disdel.Plan // with its Platform
	Attempts   Attempts
	Planned    *PlanInput // what the job was planned from; nil: unknown, and a smaller batch is a guess
	Patient    bool       // the job waits for this work: retries are not limited
	// The longest successful activation of the same task in this stage of the job; 0: none yet.
	Passed disdel.Millis
}

// Remedy is the reaction to a failed activation.
type Remedy struct {
	Retry              bool
	Limits             disdel.Limits      // of the next attempt
	BatchSize, Workers int                // above 0: plan again with these
	StepMemory         disdel.StepMemory  // not zero: plan again with it
	Stages             int                // above 0: plan again with so many
	After              time.Duration      // pause before the next attempt
	Adjustment         *disdel.Adjustment // nil: the same limits
	Why                string             // of the retry or the refusal
}

// FindRemedy is the Failure Manager's second half (DiSDeL III-B.2c): it chooses the reaction to a failed activation.
// An activation that lacked memory or time gets more of it. If a limit is at its ceiling, the batch becomes smaller
// or the workers more. Work that failed only because of the platform is tried again unchanged, and work that would
// fail in the same way is not.
//
// A sequence of remedies always ends: every retry counts against the bound of the job, of the worker or of the
// platform.
func FindRemedy(in RemedyInput) Remedy {
	d := remedyFinder{RemedyInput: in, a: in.Activation, retries: retriesOf(in.Job)}
	if !d.a.Outcome.Failed() {
		return d.refuse("%v is no failure", d.a.Outcome)
	}
	r := d.choose()
	if !r.Retry {
		return r
	}
	return d.bounded(r)
}

func retriesOf(job disdel.Job) disdel.Retries {
	r := job.Reliability.Retries
	if r == (disdel.Retries{}) {
		return standardRetries // a job without a file, or an older one
	}
	if r.Backoff.Initial == 0 {
		r.Backoff.Initial = standardRetries.Backoff.Initial
	}
	if r.Backoff.Max == 0 {
		r.Backoff.Max = max(r.Backoff.Initial, standardRetries.Backoff.Max)
	}
	if r.MemoryFactor <= 1 {
		r.MemoryFactor = standardRetries.MemoryFactor
	}
	if r.TimeoutFactor <= 1 {
		r.TimeoutFactor = standardRetries.TimeoutFactor
	}
	return r
}

type remedyFinder struct {
	RemedyInput
	a       disdel.Activation
	retries disdel.Retries
}

// LostUpdate tells whether an aggregation failed because of an update that it read, or a worker because of what
// another one had sent in a step.
func LostUpdate(a disdel.Activation) bool {
	return (a.Task == disdel.TaskAggregate || a.Task == disdel.TaskTrain) && a.FailureCode() == disdel.CodeLostUpdate
}

// LostReference tells whether the weights at a round's start or end are missing from the store.
func LostReference(a disdel.Activation) bool {
	return a.FailureCode() == disdel.CodeLostReference
}

// PlatformFault tells whether only the platform caused the failure, so that the same work may pass unchanged.
func PlatformFault(a disdel.Activation) bool {
	switch k := a.FailureKind(); a.Outcome {
	case disdel.OutcomeLost, disdel.OutcomeThrottled:
		return true
	case disdel.OutcomeStartFailure, disdel.OutcomeInternalError:
		return !permanent(k)
	case disdel.OutcomeApplicationError:
		// the store lost the claim: if another attempt had taken over, this failure would not be considered
		return k.Retryable() || k == disdel.Conflict
	default:
		return false
	}
}

// permanent failures happen again on every attempt.
func permanent(k disdel.Kind) bool {
	switch k {
	case disdel.Invalid, disdel.Denied, disdel.OverLimit, disdel.NotFound, disdel.Conflict, disdel.Canceled,
		disdel.Diverged, disdel.NoSpace:
		return true
	default:
		return false
	}
}

// CrashedItself tells whether an action failed by a defect of its own.
func CrashedItself(a disdel.Activation) bool {
	return a.Outcome == disdel.OutcomeDeveloperError ||
		a.Outcome == disdel.OutcomeApplicationError && !permanent(a.FailureKind()) && !a.FailureKind().Retryable()
}

func (d *remedyFinder) choose() Remedy {
	switch {
	case d.a.LackedDevice():
		return d.deviceMemory()
	case d.a.Outcome == disdel.OutcomeOutOfMemory:
		return d.memory()
	case d.a.Outcome == disdel.OutcomeTimeout:
		return d.time()
	case d.a.FailureCode() == disdel.CodeNeverServed:
		return d.refuse("it would wait again")
	case PlatformFault(d.a):
		return d.retryUnchanged(d.pause(), "%v: the platform's doing, and the same limits may pass", d.a.Outcome)
	case LostUpdate(d.a) || LostReference(d.a):
		return d.retryUnchanged(d.pause(), "what another action had written was damaged on its way")
	case d.a.Outcome == disdel.OutcomeDiverged:
		return d.refuse("it would diverge again")
	case d.a.Outcome == disdel.OutcomeCorrupt:
		return d.refuse("its input is damaged, and would be again")
	case d.a.FailureCode() == disdel.CodeInitDied && d.Attempts.Crashes >= startRetries:
		return d.refuse("its process ended %d times before it took a request, also with more memory: its image is broken",
			d.Attempts.Crashes+1)
	case d.a.FailureKind() == disdel.Crashed &&
		(d.a.Suspected && d.Attempts.Crashes <= 1 || d.Attempts.Crashes == 1 && d.a.Peak == 0):
		return d.diedWithoutTrace()
	case CrashedItself(d.a) && (d.Attempts.Crashes == 0 || d.a.FailureKind() == disdel.Crashed):
		return d.retryUnchanged(d.pause(), "its process died, which may have been the machine")
	case CrashedItself(d.a):
		return d.refuse("its process died %d times: no limit would help, its log says more", d.Attempts.Crashes+1)
	default:
		return d.refuse("%v would happen again", d.a.Outcome)
	}
}

// diedWithoutTrace raises the memory after a process died without a message, possibly out of memory: on Kubernetes
// nothing else tells. Nothing else of the job changes.
func (d *remedyFinder) diedWithoutTrace() Remedy {
	r, ok := d.raised()
	if !ok {
		return d.retryUnchanged(d.pause(), "its process died, which may have been the machine")
	}
	r.Why = "its process died without a word, possibly out of memory: " + r.Why
	r.Adjustment.Why = "possibly out of memory: " + r.Adjustment.Why
	r.After = d.pause()
	return r
}

// retryUnchanged retries with the same limits.
func (d *remedyFinder) retryUnchanged(after time.Duration, why string, args ...any) Remedy {
	return Remedy{Retry: true, Limits: d.a.Limits, After: after, Why: fmt.Sprintf(why, args...)}
}

func (d *remedyFinder) refuse(why string, args ...any) Remedy {
	return Remedy{Limits: d.a.Limits, Why: fmt.Sprintf(why, args...)}
}

// pause grows with every attempt. OpenWhisk counts a minute's invocations by the wall clock: only the next minute
// helps.
func (d *remedyFinder) pause() time.Duration {
	after, maximum := time.Duration(d.retries.Backoff.Initial), time.Duration(d.retries.Backoff.Max)
	for range d.Attempts.Platform + d.Attempts.Worker {
		after = min(2*after, maximum)
	}
	if d.a.FailureCode() == disdel.CodeQuotaMinute {
		after = max(after, time.Minute)
	}
	return after
}

// bounded keeps a retry within the job's bounds.
func (d *remedyFinder) bounded(r Remedy) Remedy {
	n := d.Attempts
	switch {
	case d.Patient:
	case PlatformFault(d.a) && n.Platform >= d.platformBound():
		return d.refuse("the platform has failed it %d times in this round; ask its admin", n.Platform+1)
	case PlatformFault(d.a):
	case d.retries.Limit == 0 || d.retries.PerWorker == 0:
		return d.refuse("the job allows no retries (reliability.retries)")
	case n.Job >= d.retries.Limit:
		return d.refuse("the job's %d retries are used up (reliability.retries.limit)", d.retries.Limit)
	case n.Worker >= d.retries.PerWorker:
		return d.refuse("its %d retries of this round are used up (reliability.retries.perWorker)", d.retries.PerWorker)
	}
	return r // the Manager checks the budget
}

func (d *remedyFinder) platformBound() int {
	switch {
	case d.a.FailureCode() == disdel.CodeImageMissing, d.a.FailureCode() == disdel.CodeNoDevice:
		return imageRetries
	case d.a.FailureCode() == disdel.CodeInitTimeout:
		return startRetries
	case d.a.FailureCode() == disdel.CodeInitDied:
		return diedRetries
	case d.a.Outcome == disdel.OutcomeLost:
		return lostRetries
	default:
		return platformRetries
	}
}

// Refused returns the outcome of an invocation that the platform rejected.
func Refused(err *disdel.Error) disdel.Outcome {
	switch {
	case err == nil:
		return disdel.OutcomeUnknown
	case err.Kind == disdel.Canceled:
		return disdel.OutcomeCanceled
	case err.Kind == disdel.OverLimit:
		return disdel.OutcomeTooLarge
	case err.Code == disdel.CodeQuotaMinute || err.Code == disdel.CodeQuotaConcurrent:
		return disdel.OutcomeThrottled
	default:
		return disdel.OutcomeInternalError
	}
}

// adjusted is a retry with one thing changed.
func (d *remedyFinder) adjusted(r Remedy, field disdel.Field, from, to disdel.Quantity, why string) Remedy {
	r.Retry, r.Why = true, fmt.Sprintf("%s %v -> %v: %s", field, from, to, why)
	r.Adjustment = &disdel.Adjustment{
		Invocation: d.a.Invocation.ID, Task: d.a.Task, Cause: d.a.Outcome, Field: field, From: from, To: to, Why: why,
	}
	return r
}

// memory looks for steps that fit the same limit. Else it gives more memory, and divides the work at the ceiling.
// Steps that change the results a little come only at the ceiling.
func (d *remedyFinder) memory() Remedy {
	next, _ := Memory(d.a, d.retries.MemoryFactor)
	ceiling, who := d.ceiling()
	if r, ok := d.savingSteps(next, d.a.Limits.Memory >= ceiling); ok {
		return r
	}
	if r, ok := d.raised(); ok {
		return r
	}
	at := fmt.Sprintf("memory is at %s of %v", who, ceiling)
	if d.Planned != nil {
		return d.planned(next, ceiling, at)
	}
	if d.shardIsLarge() {
		if r, ok := d.moreWorkers(d.workersFor(next, ceiling), at+", and the shard is much of it"); ok {
			return r
		}
	}
	if r, ok := d.halfBatch(at); ok {
		return r
	}
	if r, ok := d.moreWorkers(d.Plan.Workers+1, at); ok {
		return r
	}
	return d.refuse("%s, and the work cannot be divided further", at)
}

// raised gives more memory, up to the ceiling. ok is false if the limit is there already.
func (d *remedyFinder) raised() (r Remedy, ok bool) {
	ceiling, who := d.ceiling()
	limit := d.a.Limits.Memory
	if limit >= ceiling {
		return Remedy{}, false
	}
	next, why := Memory(d.a, d.retries.MemoryFactor)
	if next > ceiling {
		next, why = ceiling, fmt.Sprintf("%s, and %s is %v", why, who, ceiling)
	}
	r.Limits = d.a.Limits
	r.Limits.Memory = next
	return d.adjusted(r, disdel.FieldMemory, disdel.Quantity{Memory: limit}, disdel.Quantity{Memory: next}, why), true
}

// ceiling returns the most memory that the failed action may get, in whole MB, and what sets it.
func (d *remedyFinder) ceiling() (maximum disdel.Bytes, who string) {
	job := d.Job
	if d.a.Task != disdel.TaskTrain {
		job.Resources.Memory = 0 // it is a train action's
	}
	b := planBuilder{PlanInput: PlanInput{Job: job, Platform: d.Plan.Platform}}
	maximum, who = b.ceiling()
	return maximum / disdel.MB * disdel.MB, who
}

// search looks for changes of the job as it runs now that keep actions like the failed one within a limit.
func (d *remedyFinder) search(need, limit disdel.Bytes) (search, KilledAction) {
	in := *d.Planned
	in.Job = d.Job
	in.Job.Distribution.Stages = max(1, len(d.Plan.Stages))
	d.Plan.SaveMemoryIn(&in.Job, d.Plan.StepMemory)
	k := KilledAction{
		Task: d.a.Task, Need: need, Batch: d.Plan.WorkerBatch(&d.Job), Workers: max(1, d.Plan.Replicas()),
	}
	return k.search(in, limit), k
}

// savingSteps retries with the failed action's limit and the best way to save memory in steps that fits it. The job
// file's own ways stay; what the plan or an earlier remedy chose may change. all allows ways that change the results:
// they round moments, or batch norms see fewer rows.
func (d *remedyFinder) savingSteps(need disdel.Bytes, all bool) (Remedy, bool) {
	if d.Planned == nil || d.a.Task != disdel.TaskTrain {
		return Remedy{}, false
	}
	limit := d.a.Limits.Memory
	s, k := d.search(need, limit)
	s.in.Job.Training.StepMemory = d.Planned.Job.Training.StepMemory
	if d.Planned.Job.Distribution.Stages == 0 && len(d.Plan.Stages) == 0 {
		s.in.Job.Distribution.Stages = 0 // it may get some
	}
	batch := s.in.Job.Training.JobBatch()
	for w := range s.ways(batch, limit) {
		if w.memory == d.Plan.StepMemory && w.stages == 0 || w.disk || !all && (w.norms || w.rounds || w.stages > 0) {
			continue
		}
		try := s
		w.apply(&try.in.Job)
		p := try.point(batch, k.Workers)
		if p == nil {
			continue
		}
		train, _ := p.Plan.Action(disdel.TaskTrain)
		needs := s.needs(train)
		why := fmt.Sprintf("%s fit %v; a step computes %.2g %% more", w, limit.Beside(needs), 100*train.Estimate.Extra)
		r := Remedy{Limits: d.a.Limits, StepMemory: w.memory, Stages: w.stages}
		return d.adjusted(r, disdel.FieldStepMemory, disdel.Quantity{Memory: need}, disdel.Quantity{Memory: needs}, why), true
	}
	return Remedy{}, false
}

// planned retries with the largest batch whose plan fits the ceiling, or with the fewest workers if the planner may
// choose them.
func (d *remedyFinder) planned(need, ceiling disdel.Bytes, at string) Remedy {
	s, k := d.search(need, ceiling)
	workers := k.Workers
	more := sync.OnceValues(func() (Remedy, bool) { // it makes dozens of plans
		p := s.fewest(s.in.Job.Training.JobBatch())
		if p == nil {
			return Remedy{}, false
		}
		return d.moreWorkers(p.Workers, at)
	})
	if d.shardIsLarge() {
		if r, ok := more(); ok {
			return r
		}
	}
	p := s.smallerBatch(func(int) int { return workers }, workers)
	if p != nil && d.a.Task != disdel.TaskAggregate {
		if n := s.in.Job.Training.Resized(p.BatchSize).WorkerBatch(workers); n < k.Batch {
			return d.smallerBatch(n, at)
		}
	}
	if r, ok := more(); ok {
		return r
	}
	return d.refuse("%s, and no smaller batch and no more workers fit", at)
}

// shardIsLarge tells whether a smaller shard saves more than a smaller batch.
func (d *remedyFinder) shardIsLarge() bool {
	train, _ := d.Plan.Action(disdel.TaskTrain)
	e := train.Estimate
	return d.a.Task == disdel.TaskTrain && e.Shard > e.Activations && e.Shard*5 >= e.Total
}

// workersFor is DiSDeL's container rule: while m_e is above M, ceil((m_e - M) / M) more.
func (d *remedyFinder) workersFor(needs, ceiling disdel.Bytes) int {
	return d.Plan.Workers + max(1, int((needs-ceiling+ceiling-1)/max(1, ceiling)))
}

// moreWorkers plans again with smaller shards, unless the job file sets the number of workers or a shard would be
// less than a batch.
func (d *remedyFinder) moreWorkers(n int, why string) (Remedy, bool) {
	rows := 0
	for _, s := range d.Plan.Shards {
		rows += s.Len()
	}
	n = min(n, d.Job.Training.MostWorkers(rows))
	if maximum := d.Job.Distribution.MaxWorkers; maximum > 0 {
		n = min(n, maximum)
	}
	if d.a.Task != disdel.TaskTrain || d.Job.Distribution.Workers > 0 || len(d.Plan.Stages) > 0 ||
		n <= d.Plan.Workers {
		return Remedy{}, false
	}
	r := Remedy{Limits: d.a.Limits, Workers: n}
	return d.adjusted(r, disdel.FieldWorkers, disdel.Quantity{Count: d.Plan.Workers}, disdel.Quantity{Count: n}, why), true
}

// halfBatch plans again with half the batch. An aggregation has none.
func (d *remedyFinder) halfBatch(why string) (Remedy, bool) {
	batch := d.Plan.WorkerBatch(&d.Job)
	if d.a.Task == disdel.TaskAggregate || batch < 2 {
		return Remedy{}, false
	}
	return d.smallerBatch(batch/2, why), true
}

// smallerBatch plans again with so many rows of a worker.
func (d *remedyFinder) smallerBatch(rows int, why string) Remedy {
	r := Remedy{Limits: d.a.Limits, BatchSize: rows}
	from := disdel.Quantity{Count: d.Plan.WorkerBatch(&d.Job)}
	return d.adjusted(r, disdel.FieldBatchSize, from, disdel.Quantity{Count: rows}, why)
}

// time retries with a longer timeout. At the ceiling, work that made progress continues from its stored state. A
// stalled action keeps its timeout.
func (d *remedyFinder) time() Remedy {
	if stall, stalled := d.a.Stalled(); stalled {
		return d.retryUnchanged(0, "it stopped answering: %s, and its timeout of %v is long enough", stall.Text(),
			d.a.Limits.Timeout)
	}
	next, why := Timeout(d.a, d.retries.TimeoutFactor)
	maximum, who := d.Plan.Platform.MaxTimeout, "the platform's maximum"
	if own := disdel.Millis(d.Job.Resources.Timeout); own > 0 && own <= maximum {
		maximum, who = own, "resources.timeout"
	}
	limit := d.a.Limits.Timeout
	if limit < maximum {
		if next > maximum {
			next, why = maximum, fmt.Sprintf("%s, and %s is %v", why, who, maximum)
		}
		r := Remedy{Limits: d.a.Limits}
		r.Limits.Timeout = next
		return d.adjusted(r, disdel.FieldTimeout, disdel.Quantity{Time: limit}, disdel.Quantity{Time: next}, why)
	}
	at := fmt.Sprintf("the timeout is at %s of %v", who, maximum)
	if done, _ := d.a.Done(); done > 0 && d.a.Task == disdel.TaskTrain {
		return d.retryUnchanged(0, "%s: the round goes on from its stored state, %s", at, d.a.DoneText())
	}
	if passed := d.Passed; passed > 0 && passed < limit {
		return d.retryUnchanged(d.pause(), "%s, and others of this job needed at most %v: what it waited for was slow", at,
			passed)
	}
	// only the user can raise it: starting takes as long with any number of workers
	if platform := d.Plan.Platform.MaxTimeout; maximum < platform {
		return d.refuse("%s, and nothing came of it", at)
	}
	if r, ok := d.moreWorkers(2*d.Plan.Workers, at); ok {
		return r
	}
	return d.refuse("%s, and nothing came of it", at)
}
