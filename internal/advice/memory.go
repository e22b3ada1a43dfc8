package advice

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

const (
	atCeiling = 1.05 // a limit that may grow by less is taken to be at its ceiling
)

// Ceiling is the most memory that an action of this job may be given, and whose word that is; 0: the record does not
// say.
func Ceiling(r *disdel.Record) (disdel.Bytes, string) {
	maximum, whose := r.Plan.Platform.MaxMemory, "the platform's maximum"
	if m := r.Job.Resources.MaxMemory; m > 0 && (maximum == 0 || m < maximum) {
		maximum, whose = m, "resources.maxMemory"
	}
	if pool := r.Plan.Platform.Pool; pool > 0 && (maximum == 0 || pool < maximum) {
		maximum, whose = pool, "the pool's memory"
	}
	return maximum, whose
}

// platformMost is the ceiling without the user's own; without a known one there is no bound.
func (w *worker) platformMost() disdel.Bytes {
	p := w.record.Plan.Platform
	maximum := p.MaxMemory
	if p.Pool > 0 && (maximum == 0 || p.Pool < maximum) {
		maximum = p.Pool
	}
	if maximum == 0 {
		return math.MaxInt64
	}
	return maximum
}

// moreMemory raises the limit; at the ceiling it lowers what the action needs instead.
func (w *worker) moreMemory() Advice {
	if w.a.Task != disdel.TaskTrain {
		return w.besideTraining()
	}
	limit := w.a.Limits.Memory
	need, why := scheduler.EnoughMemory(w.record, *w.a)
	sum := fmt.Sprintf("%v was too little, and %d MB should do: %s", limit, need.MB(), why)
	maximum, whose := Ceiling(w.record)
	switch {
	case maximum == 0 || need <= maximum:
		return with(sum, set("resources.memory", megabytes(need)))
	case whose == "resources.maxMemory" && need <= w.platformMost():
		return with(fmt.Sprintf("%s; resources.maxMemory is %v, and the platform allows %v", sum, maximum, w.platformMost()),
			set("resources.memory", megabytes(need)), set("resources.maxMemory", megabytes(need)))
	case float64(maximum) >= atCeiling*float64(limit):
		return with(fmt.Sprintf("%s; %s is %v", sum, whose, maximum), set("resources.memory", inMegabytes(maximum)))
	default:
		return w.smallerWork(need, maximum, fmt.Sprintf("%s; %s is %v", sum, whose, maximum))
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

// smallerWork is a change of the job that was planned and keeps the action within the limit.
func (w *worker) smallerWork(need, limit disdel.Bytes, why string) Advice {
	if w.planned == nil {
		return w.toldBefore(limit, why)
	}
	in := *w.planned
	in.Job = w.record.Job
	plan := w.record.PlanOf(&w.a.Invocation)
	plan.SaveMemoryIn(&in.Job, plan.StepMemory)
	changes := scheduler.FitKilled(in, scheduler.KilledAction{
		Task: w.a.Task, Need: need, Batch: w.batch(), Workers: w.record.PlanOf(&w.a.Invocation).Workers,
	}, limit)
	if len(changes) == 0 || len(changes[0].Set) == 0 {
		return none("%s; no batch, number of workers, precision or optimiser was planned that fits %v: it takes a smaller "+
			"network or a platform that allows more", why, limit)
	}
	return with(fmt.Sprintf("%s; this was planned and fits %v", why, limit), changes[0].Set...)
}

// toldBefore is the change that the job's failure names, if it names one.
func (w *worker) toldBefore(limit disdel.Bytes, why string) Advice {
	if f := w.record.Failure; f != nil && len(f.Changes) > 0 {
		return with(fmt.Sprintf("%s; this was planned and fits %v", why, limit), f.Changes[0]...)
	}
	return none("%s; the job has to become smaller, and disdel estimate FILE --max-memory %s shows how", why,
		inMegabytes(limit))
}

// besideTraining is for aggregate and evaluate actions. No field of a job sets their memory, but the next job of this
// kind starts from what this one had come to.
func (w *worker) besideTraining() Advice {
	task, limit := w.a.Task, w.a.Limits.Memory
	need, why := scheduler.EnoughMemory(w.record, *w.a)
	maximum, whose := Ceiling(w.record)
	sum := fmt.Sprintf("%v was too little for the %s action", limit, task)
	switch {
	case maximum == 0 || need <= maximum:
		return submitUnchanged("%s; the next job of this kind gives it %d MB, since the history now knows (%s)", sum,
			need.MB(), why)
	case whose == "resources.maxMemory" && need <= w.platformMost():
		return with(fmt.Sprintf("%s, and %d MB should do: %s; resources.maxMemory is %v", sum, need.MB(), why, maximum),
			set("resources.maxMemory", megabytes(need)))
	case limit < maximum:
		return submitUnchanged("%s; the next job of this kind gives it %v, the most that %s allows", sum, maximum, whose)
	default:
		return w.smallerWork(need, maximum, fmt.Sprintf("%s, and %d MB should do: %s; %s is %v", sum, need.MB(), why, whose,
			maximum))
	}
}

func megabytes(b disdel.Bytes) string { return fmt.Sprintf("%dMB", b.MB()) }

// inMegabytes is a ceiling in whole megabytes, none of which is above it.
func inMegabytes(b disdel.Bytes) string { return fmt.Sprintf("%dMB", b/disdel.MB) }

// moreDevice raises the share of a GPU's memory; at the ceiling it lowers what the action needs instead.
func (w *worker) moreDevice() Advice {
	limit, maximum := w.a.Limits.Device, w.record.Plan.Platform.MaxDevice
	if limit == 0 || maximum == 0 {
		return w.smallerOnDevice("the record does not say how much of a GPU there was")
	}
	need, why := scheduler.DeviceMemory(*w.a, lastDeviceFactor)
	sum := fmt.Sprintf("%v of a GPU were too little for the %s action, and %d MB should do: %s", limit, w.a.Task,
		need.MB(), why)
	switch {
	case limit >= maximum:
		return w.smallerOnDevice(fmt.Sprintf("it had all of a GPU, %v", maximum))
	case w.a.Task != disdel.TaskTrain:
		return submitUnchanged("%s; the next job of this kind gets more, since the history now knows", sum)
	default:
		return with(sum, set("resources.gpu.memory", megabytes(min(need, maximum/disdel.MB*disdel.MB))))
	}
}

// lastDeviceFactor is the least growth of a share that nothing comes after, as that of other memory.
const lastDeviceFactor = 1.5

// smallerOnDevice halves the batch, because most memory of an action on a GPU is proportional to it.
func (w *worker) smallerOnDevice(why string) Advice {
	if batch := w.batch(); batch > 1 {
		return with(why+"; half of the batch needs less", w.setBatch(batch/2))
	}
	return none("%s; no smaller batch is left: it takes a smaller network or a larger GPU", why)
}
