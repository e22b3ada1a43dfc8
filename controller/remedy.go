package controller

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/limits"
)

// platformRetries is how often what the platform is to blame for is tried again, for one worker in one round.
const platformRetries = 6

// standardRetries is what a zero in Retries means.
var standardRetries = disdel.Retries{
	Limit: 6, PerWorker: 3, MemoryFactor: limits.MemoryFactor, TimeoutFactor: limits.TimeoutFactor,
	Backoff: disdel.Backoff{Initial: disdel.Duration(time.Second), Max: disdel.Duration(30 * time.Second)},
}

// Attempts is how often work has been tried again before the failure at hand.
type Attempts struct {
	Job      int // retries that count against reliability.retries.limit
	Worker   int // those of this worker in this round
	Platform int // this worker's failures in this round that the platform is to blame for
	Crashes  int // this worker's in this round, for a defect of its own
}

// AttemptsBefore counts the failures among earlier activations: of the whole job, and of the work that failed is the newest
// try of. earlier must not have failed itself.
func AttemptsBefore(earlier []disdel.Activation, failed disdel.Activation) Attempts {
	var n Attempts
	for _, a := range earlier {
		if !Failed(a.Outcome) {
			continue
		}
		mine := a.Task == failed.Task && a.Round == failed.Round && a.Level == failed.Level && a.Member == failed.Member
		if platformFault(a) {
			n.Platform += countIf(mine)
			continue
		}
		n.Job++
		n.Worker += countIf(mine)
		n.Crashes += countIf(mine && crashed(a))
	}
	return n
}

func countIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// RemedyInput is what a remedy is found by.
type RemedyInput struct {
	Activation disdel.Activation // that failed, with its peak, its heartbeats and its request
	Job        disdel.Job
	Plan       disdel.Plan // Platform in it
	Attempts   Attempts
	Spent      float64 // GB-s of the whole job so far, Spent's
}

// Remedy is what is done about a failed activation.
type Remedy struct {
	Retry          bool
	Limits         disdel.Limits // of the next try
	Batch, Workers int           // above 0: plan again with these
	After          time.Duration // before the next try
	Producers      []disdel.UpdateID
	Adjustment     *disdel.Adjustment // nil: the same limits
	Why            string             // of the retry, or of the refusal with the limits that would pass
}

// Decide is the Failure Manager's second half (DiSDeL III-B.2c): what is done about a failed activation. More memory or time
// where that is what was missing, a smaller batch or more workers where a limit is at its ceiling, the same again where
// nobody but the platform is to blame, nothing where it would fail again. Producers are the updates to be made anew before
// the next try, where one was damaged. Whatever outcomes come, a sequence of remedies ends: every retry counts against the
// job's, the worker's or the platform's bound. It is pure.
func Decide(in RemedyInput) Remedy {
	d := decider{RemedyInput: in, a: in.Activation, retries: retriesOf(in.Job)}
	if !Failed(d.a.Outcome) {
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
	if r.Limit == 0 {
		r.Limit = standardRetries.Limit
	}
	if r.PerWorker == 0 {
		r.PerWorker = standardRetries.PerWorker
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

type decider struct {
	RemedyInput
	a       disdel.Activation
	retries disdel.Retries
}

func kindOf(a disdel.Activation) disdel.Kind {
	if a.Failure == nil {
		return disdel.UnknownKind
	}
	return a.Failure.Kind
}

// platformFault says whether nobody but the platform is to blame, so that the same may pass unchanged.
func platformFault(a disdel.Activation) bool {
	switch k := kindOf(a); a.Outcome {
	case disdel.OutcomeLost, disdel.OutcomeThrottled:
		return true
	case disdel.OutcomeStartFailure, disdel.OutcomeInternalError:
		return !hopeless(k)
	case disdel.OutcomeApplicationError:
		return k.Retryable()
	default:
		return false
	}
}

// hopeless kinds fail again however often they are tried.
func hopeless(k disdel.Kind) bool {
	switch k {
	case disdel.Invalid, disdel.Denied, disdel.OverLimit, disdel.NotFound, disdel.Conflict, disdel.Canceled, disdel.Diverged:
		return true
	default:
		return false
	}
}

// crashed says whether an action failed by a defect of its own.
func crashed(a disdel.Activation) bool {
	return a.Outcome == disdel.OutcomeDeveloperError ||
		a.Outcome == disdel.OutcomeApplicationError && !hopeless(kindOf(a)) && !kindOf(a).Retryable()
}

func (d *decider) choose() Remedy {
	switch {
	case d.a.Outcome == disdel.OutcomeOutOfMemory:
		return d.memory()
	case d.a.Outcome == disdel.OutcomeTimeout:
		return d.time()
	case platformFault(d.a):
		return d.again(d.pause(), "%v: the platform's doing, and the same limits may pass", d.a.Outcome)
	case d.updateDamaged():
		return d.producers()
	case d.a.Outcome == disdel.OutcomeDiverged:
		return d.refuse("it would diverge again: lower the optimiser's learningRate, or set training.clipNorm")
	case d.a.Outcome == disdel.OutcomeCorrupt:
		return d.refuse("its input is damaged, and would be again: add the data set anew")
	case crashed(d.a) && d.Attempts.Crashes == 0:
		return d.again(d.pause(), "its process died once, which may have been the machine")
	case d.Attempts.Crashes == 1 && kindOf(d.a) == disdel.Crashed && d.a.Peak == 0:
		r := d.memory() // Kubernetes does not say, and nothing was measured: memory is the likeliest cause
		r.Why = "its process died twice without a trace: " + r.Why
		return r
	case crashed(d.a):
		return d.refuse("its process died %d times: no limit would help, its log says more", d.Attempts.Crashes+1)
	default:
		return d.refuse("%v is not tried again: it would fail in the same way", d.a.Outcome)
	}
}

// again tries the same at the same limits.
func (d *decider) again(after time.Duration, why string, args ...any) Remedy {
	return Remedy{Retry: true, Limits: d.a.Limits, After: after, Why: fmt.Sprintf(why, args...)}
}

func (d *decider) refuse(why string, args ...any) Remedy {
	return Remedy{Limits: d.a.Limits, Why: fmt.Sprintf(why, args...)}
}

// pause grows from try to try. OpenWhisk counts a minute's invocations by the wall clock: only the next minute helps.
func (d *decider) pause() time.Duration {
	after, most := time.Duration(d.retries.Backoff.Initial), time.Duration(d.retries.Backoff.Max)
	for range d.Attempts.Platform + d.Attempts.Worker {
		after = min(2*after, most)
	}
	if d.a.Failure != nil && strings.Contains(d.a.Failure.Error(), "in the last minute") {
		after = max(after, time.Minute)
	}
	return after
}

// bounded keeps a retry within the job's bounds.
func (d *decider) bounded(r Remedy) Remedy {
	n := d.Attempts
	switch {
	case platformFault(d.a) && n.Platform >= platformRetries:
		return d.refuse("the platform has failed it %d times in this round; ask its admin", n.Platform+1)
	case platformFault(d.a):
	case n.Job >= d.retries.Limit:
		return d.refuse("the job's %d retries are used up (reliability.retries.limit); next would have been %s", d.retries.Limit, d.next(r))
	case n.Worker >= d.retries.PerWorker:
		return d.refuse("its %d retries of this round are used up (reliability.retries.perWorker); next would have been %s", d.retries.PerWorker, d.next(r))
	}
	return d.affordable(r)
}

// next says what a remedy would have changed.
func (d *decider) next(r Remedy) string {
	if r.Adjustment == nil {
		return "the same limits"
	}
	section := map[string]string{"batchSize": "training.", "workers": "distribution."}[r.Adjustment.Field]
	if section == "" {
		section = "resources."
	}
	return fmt.Sprintf("--set %s%s=%s", section, r.Adjustment.Field, r.Adjustment.To)
}

// affordable refuses what the budget does not hold. Another try is expected to take what this one took; out of time, its
// whole new timeout.
func (d *decider) affordable(r Remedy) Remedy {
	most := d.Job.Resources.MaxCost
	if most <= 0 {
		return r
	}
	took := d.a.Duration
	if d.a.Outcome == disdel.OutcomeTimeout {
		took = r.Limits.Timeout
	}
	if cost := heldFor(r.Limits.Memory, took); d.Spent+cost > most {
		return d.refuse("the job has spent %.4g GB-s, another try takes about %.4g, and resources.maxCost is %.4g: --set resources.maxCost=%.0fGB-s, with %s",
			d.Spent, cost, most, math.Ceil(d.Spent+cost), d.next(r))
	}
	return r
}

// adjusted is a retry with one thing changed.
func (d *decider) adjusted(r Remedy, field, from, to, why string) Remedy {
	r.Retry, r.Why = true, fmt.Sprintf("%s %s -> %s: %s", field, from, to, why)
	r.Adjustment = &disdel.Adjustment{Invocation: d.a.Invocation.ID, Cause: d.a.Outcome, Field: field, From: from, To: to, Why: why}
	return r
}

func megabytes(b disdel.Bytes) string { return fmt.Sprintf("%dMB", b.MB()) }

// memory gives more of it, and at the ceiling divides the work.
func (d *decider) memory() Remedy {
	next, why := limits.Memory(d.a, d.retries.MemoryFactor)
	b := planBuilder{PlanInput: PlanInput{Job: d.Job, Platform: d.Plan.Platform}}
	ceiling, who := b.ceiling()
	ceiling = ceiling / disdel.MB * disdel.MB
	if limit := d.a.Limits.Memory; limit < ceiling {
		if next > ceiling {
			next, why = ceiling, fmt.Sprintf("%s, and %s is %v", why, who, ceiling)
		}
		r := Remedy{Limits: disdel.Limits{Memory: next, Timeout: d.a.Limits.Timeout}}
		return d.adjusted(r, "memory", megabytes(limit), megabytes(next), why)
	}
	at := fmt.Sprintf("memory is at %s of %v", who, ceiling)
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
	return d.refuse("%s, and the work cannot be divided further: --set resources.memory=%s would pass (%s)", at, megabytes(next), why)
}

// shardIsLarge says whether a smaller shard would do more than a smaller batch.
func (d *decider) shardIsLarge() bool {
	train, _ := d.Plan.Action(disdel.TaskTrain)
	e := train.Estimate
	return d.a.Task == disdel.TaskTrain && e.Dta > e.Activations && e.Dta*5 >= e.Total
}

// workersFor is DiSDeL's container rule: while m_e is above M, ceil((m_e - M) / M) more.
func (d *decider) workersFor(needs, ceiling disdel.Bytes) int {
	return d.Plan.Workers + max(1, int((needs-ceiling+ceiling-1)/max(1, ceiling)))
}

// moreWorkers plans again with smaller shards; not where the job file names the number, nor where a shard would not fill a
// batch.
func (d *decider) moreWorkers(n int, why string) (Remedy, bool) {
	rows := 0
	for _, s := range d.Plan.Shards {
		rows += s.Len()
	}
	n = min(n, rows/max(1, d.Job.Training.BatchSize))
	if d.a.Task != disdel.TaskTrain || d.Job.Distribution.Workers > 0 || n <= d.Plan.Workers {
		return Remedy{}, false
	}
	r := Remedy{Limits: d.a.Limits, Workers: n}
	return d.adjusted(r, "workers", fmt.Sprint(d.Plan.Workers), fmt.Sprint(n), why), true
}

// halfBatch plans again with half the batch. An aggregation has none.
func (d *decider) halfBatch(why string) (Remedy, bool) {
	batch := d.Job.Training.BatchSize
	if d.a.Task == disdel.TaskAggregate || batch < 2 {
		return Remedy{}, false
	}
	r := Remedy{Limits: d.a.Limits, Batch: batch / 2}
	return d.adjusted(r, "batchSize", fmt.Sprint(batch), fmt.Sprint(batch/2), why), true
}

// time gives more of it; at the ceiling the work goes on from the state that it stored, if it came to anything.
func (d *decider) time() Remedy {
	next, why := limits.Timeout(d.a, d.retries.TimeoutFactor)
	most, who := d.Plan.Platform.MaxTimeout, "the platform's maximum"
	if own := disdel.Millis(d.Job.Resources.Timeout); own > 0 && own <= most {
		most, who = own, "resources.timeout"
	}
	limit := d.a.Limits.Timeout
	if limit < most {
		if next > most {
			next, why = most, fmt.Sprintf("%s, and %s is %v", why, who, most)
		}
		r := Remedy{Limits: disdel.Limits{Memory: d.a.Limits.Memory, Timeout: next}}
		return d.adjusted(r, "timeout", limit.String(), next.String(), why)
	}
	at := fmt.Sprintf("the timeout is at %s of %v", who, most)
	if done, all := limits.Trained(d.a); done > 0 && d.a.Task == disdel.TaskTrain {
		return d.again(0, "%s: the round goes on from its stored state, %d of %d batches were trained", at, done, all)
	}
	if r, ok := d.moreWorkers(2*d.Plan.Workers, at); ok {
		return r
	}
	return d.refuse("%s, and nothing came of it: --set resources.timeout=%s would pass (%s), or more distribution.workers", at, next, why)
}

// updateDamaged says whether what another action had written is to blame: an update of a worker or of a cluster, or the
// reference that a round starts from.
func (d *decider) updateDamaged() bool {
	if d.a.Failure == nil {
		return false
	}
	text := d.a.Failure.Error()
	switch kindOf(d.a) {
	case disdel.Corrupt:
		return strings.Contains(text, "read update")
	case disdel.NotFound:
		return strings.Contains(text, "fetch update") || strings.Contains(text, "fetch reference")
	default:
		return false
	}
}

// producers are to write their updates again. Those that the failure names, else all of the cluster; for a reference the
// top of the tree in the round before.
func (d *decider) producers() Remedy {
	r := d.again(d.pause(), "an update was damaged on its way: it is made again")
	text := d.a.Failure.Error() + " "
	var all []disdel.UpdateID
	switch l := d.a.Level; {
	case d.a.Task != disdel.TaskAggregate && d.a.Round > 0:
		all = []disdel.UpdateID{{Round: d.a.Round - 1, Level: len(d.Plan.Levels)}}
	case l >= 1 && l <= len(d.Plan.Levels) && d.a.Member < len(d.Plan.Levels[l-1].Clusters):
		for _, m := range d.Plan.Levels[l-1].Clusters[d.a.Member] {
			all = append(all, disdel.UpdateID{Round: d.a.Round, Level: l - 1, Member: m})
		}
	}
	for _, id := range all {
		place := fmt.Sprintf("round %d/level %d/%d", id.Round, id.Level, id.Member)
		if strings.Contains(text, place+":") || strings.Contains(text, place+" ") {
			r.Producers = append(r.Producers, id)
		}
	}
	if len(r.Producers) == 0 {
		r.Producers = all
	}
	return r
}

// Refused is the outcome of an invocation that the platform did not take.
func Refused(err *disdel.Error) disdel.Outcome {
	switch {
	case err == nil:
		return disdel.OutcomeUnknown
	case err.Kind == disdel.Canceled:
		return disdel.OutcomeCanceled
	case err.Kind == disdel.OverLimit:
		return disdel.OutcomeTooLarge
	case err.Kind == disdel.Unavailable && strings.Contains(err.Error(), "Too many"):
		return disdel.OutcomeThrottled
	default:
		return disdel.OutcomeInternalError
	}
}
