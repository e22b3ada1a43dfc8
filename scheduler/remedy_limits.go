package scheduler

import (
	"fmt"
	"sync"

	"github.com/disdel/disdel"
)

// adjusted is a retry with one thing changed.
func (d *decider) adjusted(r Remedy, field disdel.Field, from, to disdel.Quantity, why string) Remedy {
	r.Retry, r.Why = true, fmt.Sprintf("%s %v -> %v: %s", field, from, to, why)
	r.Adjustment = &disdel.Adjustment{
		Invocation: d.a.Invocation.ID, Task: d.a.Task, Cause: d.a.Outcome, Field: field, From: from, To: to, Why: why,
	}
	return r
}

// memory gives more of it, and at the ceiling divides the work.
func (d *decider) memory() Remedy {
	if r, ok := d.raised(); ok {
		return r
	}
	next, _ := Memory(d.a, d.retries.MemoryFactor)
	ceiling, who := d.ceiling()
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
func (d *decider) raised() (r Remedy, ok bool) {
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

// ceiling is the most memory that the failed action may get, in whole MB, and what says so.
func (d *decider) ceiling() (most disdel.Bytes, who string) {
	job := d.Job
	if d.a.Task != disdel.TaskTrain {
		job.Resources.Memory = 0 // it is a train action's
	}
	b := planBuilder{PlanInput: PlanInput{Job: job, Platform: d.Plan.Platform}}
	most, who = b.ceiling()
	return most / disdel.MB * disdel.MB, who
}

// planned retries with the largest batch whose plan fits the ceiling, or with the fewest workers if the planner may
// choose them.
func (d *decider) planned(need, ceiling disdel.Bytes, at string) Remedy {
	in, workers := *d.Planned, max(1, d.Plan.Workers)
	in.Job = d.Job
	k := Killed{Task: d.a.Task, Need: need, Batch: d.Plan.WorkerBatch(&d.Job), Workers: workers}
	s := k.search(in, ceiling)
	more := sync.OnceValues(func() (Remedy, bool) { // it plans dozens of jobs
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

// shardIsLarge says whether a smaller shard would do more than a smaller batch.
func (d *decider) shardIsLarge() bool {
	train, _ := d.Plan.Action(disdel.TaskTrain)
	e := train.Estimate
	return d.a.Task == disdel.TaskTrain && e.Shard > e.Activations && e.Shard*5 >= e.Total
}

// workersFor is DiSDeL's container rule: while m_e is above M, ceil((m_e - M) / M) more.
func (d *decider) workersFor(needs, ceiling disdel.Bytes) int {
	return d.Plan.Workers + max(1, int((needs-ceiling+ceiling-1)/max(1, ceiling)))
}

// moreWorkers plans again with smaller shards; not where the job file names the number, nor where a shard would not
// fill a batch.
func (d *decider) moreWorkers(n int, why string) (Remedy, bool) {
	rows := 0
	for _, s := range d.Plan.Shards {
		rows += s.Len()
	}
	n = min(n, d.Job.Training.MostWorkers(rows))
	if most := d.Job.Distribution.MaxWorkers; most > 0 {
		n = min(n, most)
	}
	if d.a.Task != disdel.TaskTrain || d.Job.Distribution.Workers > 0 || n <= d.Plan.Workers {
		return Remedy{}, false
	}
	r := Remedy{Limits: d.a.Limits, Workers: n}
	return d.adjusted(r, disdel.FieldWorkers, disdel.Quantity{Count: d.Plan.Workers}, disdel.Quantity{Count: n}, why), true
}

// halfBatch plans again with half the batch. An aggregation has none.
func (d *decider) halfBatch(why string) (Remedy, bool) {
	batch := d.Plan.WorkerBatch(&d.Job)
	if d.a.Task == disdel.TaskAggregate || batch < 2 {
		return Remedy{}, false
	}
	return d.smallerBatch(batch/2, why), true
}

// smallerBatch plans again with so many rows of a worker.
func (d *decider) smallerBatch(rows int, why string) Remedy {
	r := Remedy{Limits: d.a.Limits, BatchSize: rows}
	from := disdel.Quantity{Count: d.Plan.WorkerBatch(&d.Job)}
	return d.adjusted(r, disdel.FieldBatchSize, from, disdel.Quantity{Count: rows}, why)
}

// time retries with a longer timeout. At the ceiling, work that made progress continues from its stored state. A
// stalled action keeps its timeout.
func (d *decider) time() Remedy {
	if stall, stalled := d.a.Stalled(); stalled {
		return d.retryUnchanged(0, "it stopped answering: %s, and its timeout of %v is long enough", stall.Text(),
			d.a.Limits.Timeout)
	}
	next, why := Timeout(d.a, d.retries.TimeoutFactor)
	most, who := d.Plan.Platform.MaxTimeout, "the platform's maximum"
	if own := disdel.Millis(d.Job.Resources.Timeout); own > 0 && own <= most {
		most, who = own, "resources.timeout"
	}
	limit := d.a.Limits.Timeout
	if limit < most {
		if next > most {
			next, why = most, fmt.Sprintf("%s, and %s is %v", why, who, most)
		}
		r := Remedy{Limits: d.a.Limits}
		r.Limits.Timeout = next
		return d.adjusted(r, disdel.FieldTimeout, disdel.Quantity{Time: limit}, disdel.Quantity{Time: next}, why)
	}
	at := fmt.Sprintf("the timeout is at %s of %v", who, most)
	if done, _ := d.a.Done(); done > 0 && d.a.Task == disdel.TaskTrain {
		return d.retryUnchanged(0, "%s: the round goes on from its stored state, %s", at, d.a.DoneText())
	}
	// it is the user's to raise: starting takes as long with any number of workers
	if platform := d.Plan.Platform.MaxTimeout; most < platform {
		return d.refuse("%s, and nothing came of it", at)
	}
	if r, ok := d.moreWorkers(2*d.Plan.Workers, at); ok {
		return r
	}
	return d.refuse("%s, and nothing came of it", at)
}
