package advice

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

const (
	fill      = 0.9  // of a memory limit that a smaller batch may be expected to use
	atCeiling = 1.05 // a limit that may grow by less is taken to be at its ceiling
)

// Ceiling is the most memory that an action of this job may be given, and whose word that is; 0: the record does not
// say.
func Ceiling(r *disdel.Record) (disdel.Bytes, string) {
	most, whose := r.Plan.Platform.MaxMemory, "the platform's maximum"
	if m := r.Job.Resources.MaxMemory; m > 0 && (most == 0 || m < most) {
		most, whose = m, "resources.maxMemory"
	}
	if pool := r.Plan.Platform.Pool; pool > 0 && (most == 0 || pool < most) {
		most, whose = pool, "the pool's memory"
	}
	return most, whose
}

// platformMost is the ceiling without the user's own; without a known one there is no bound.
func (w *worker) platformMost() disdel.Bytes {
	p := w.record.Plan.Platform
	most := p.MaxMemory
	if p.Pool > 0 && (most == 0 || p.Pool < most) {
		most = p.Pool
	}
	if most == 0 {
		return math.MaxInt64
	}
	return most
}

// moreMemory raises the limit; at the ceiling it lowers what the action needs instead.
func (w *worker) moreMemory() Advice {
	if w.a.Task != disdel.TaskTrain {
		return w.besideTraining()
	}
	limit := w.a.Limits.Memory
	need, why := scheduler.EnoughMemory(w.record, *w.a)
	sum := fmt.Sprintf("%v was too little, and %d MB should do: %s", limit, need.MB(), why)
	most, whose := Ceiling(w.record)
	switch {
	case most == 0 || need <= most:
		return with(sum, set("resources.memory", megabytes(need)))
	case whose == "resources.maxMemory" && need <= w.platformMost():
		return with(fmt.Sprintf("%s; resources.maxMemory is %v, and the platform allows %v", sum, most, w.platformMost()),
			set("resources.memory", megabytes(need)), set("resources.maxMemory", megabytes(need)))
	case float64(most) >= atCeiling*float64(limit):
		return with(fmt.Sprintf("%s; %s is %v", sum, whose, most), set("resources.memory", whole(most)))
	default:
		return w.smallerWork(need, limit, fmt.Sprintf("%s; %s is %v", sum, whose, most))
	}
}

// batch is the batch size that the job had come to when it ended: a retry may have lowered it.
func (w *worker) batch() int {
	batch := w.record.Plan.WorkerBatch(&w.record.Job)
	for _, a := range w.record.Adjustments {
		if a.Field == disdel.FieldBatchSize && a.Task != disdel.TaskEvaluate && a.To.Count > 0 {
			batch = a.To.Count
		}
	}
	return batch
}

// setBatch has every worker take so many rows a step, whoever's batch the job file gives.
func (w *worker) setBatch(rows int) string {
	t, workers := w.record.Job.Training, w.record.PlanOf(&w.a.Invocation).Workers
	return set(t.BatchField(), t.WithWorkerBatch(rows, workers).JobBatch())
}

// most is how many workers the data is enough for, where each of so many takes a batch of that size.
func (w *worker) most(batch, workers int) int {
	return w.record.Job.Training.WithWorkerBatch(batch, workers).MostWorkers(w.record.Data.Train)
}

// smallerWork finds the largest batch, by halves, whose share of need fits the limit; then the shard. The estimate says
// which share of the memory goes with the batch, and which with the shard.
func (w *worker) smallerWork(need, limit disdel.Bytes, why string) Advice {
	batch := w.batch()
	plan := w.record.PlanOf(&w.a.Invocation)
	train, _ := plan.Action(disdel.TaskTrain)
	e := train.Estimate
	if e.Total <= 0 || e.Activations+e.Misc <= 0 {
		if batch < 2 {
			return none("%s; the record does not say what a smaller network or shard would save", why)
		}
		return with(why+"; half of the batch needs less", w.setBatch(batch/2))
	}
	share := float64(e.Activations+e.Misc) / float64(e.Total)
	fits := func(saved float64) bool { return float64(need)*(1-saved) <= fill*float64(limit) }
	for b := batch / 2; b >= 1; b /= 2 {
		if saved := share * (1 - float64(b)/float64(batch)); fits(saved) {
			return with(fmt.Sprintf("%s; %.0f %% of the estimate goes with the batch, and %d rows instead of %d need about %v",
				why, 100*share, b, batch, disdel.Bytes(float64(need)*(1-saved))), w.setBatch(b))
		}
	}
	workers, shard := plan.Workers, float64(e.Shard)/float64(e.Total)
	for n := 2 * workers; n > 0 && n <= w.most(batch, workers); n *= 2 {
		if saved := shard * (1 - float64(workers)/float64(n)); fits(saved) {
			return with(fmt.Sprintf("%s; %.0f %% of the estimate is the shard, and %d workers instead of %d need about %v each",
				why, 100*shard, n, workers, disdel.Bytes(float64(need)*(1-saved))), set("distribution.workers", n))
		}
	}
	return none("%s; no smaller batch and no further workers bring it below: it takes a smaller network or a platform "+
		"that allows more", why)
}

// besideTraining is for aggregate and evaluate actions. No field of a job sets their memory, but the next job of this
// kind starts from what this one had come to.
func (w *worker) besideTraining() Advice {
	task, limit := w.a.Task, w.a.Limits.Memory
	need, why := scheduler.EnoughMemory(w.record, *w.a)
	most, whose := Ceiling(w.record)
	sum := fmt.Sprintf("%v was too little for the %s action", limit, task)
	switch {
	case most == 0 || need <= most:
		return submitUnchanged("%s; the next job of this kind gives it %d MB, since the history now knows (%s)", sum,
			need.MB(), why)
	case whose == "resources.maxMemory" && need <= w.platformMost():
		return with(fmt.Sprintf("%s, and %d MB should do: %s; resources.maxMemory is %v", sum, need.MB(), why, most),
			set("resources.maxMemory", megabytes(need)))
	case limit < most:
		return submitUnchanged("%s; the next job of this kind gives it %v, the most that %s allows", sum, most, whose)
	case task == disdel.TaskEvaluate && w.batch() > 1:
		return with("it evaluates in batches of the training's size; half of it needs less",
			w.setBatch(w.batch()/2))
	default:
		return none("no field of a job sets this action's memory: it takes a smaller network or a platform that allows more")
	}
}

func megabytes(b disdel.Bytes) string { return fmt.Sprintf("%dMB", b.MB()) }

// whole is a ceiling in whole megabytes, none of which is above it.
func whole(b disdel.Bytes) string { return fmt.Sprintf("%dMB", b/disdel.MB) }
