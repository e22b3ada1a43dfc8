package report

import (
	"fmt"
	"math"
	"strconv"

	"github.com/disdel/disdel"
)

// Advice is the change that lets a failed job pass, worked out from what was measured.
type Advice struct {
	Why      string    `json:"why"`                // the arithmetic
	Sets     []string  `json:"sets,omitempty"`     // PATH=VALUE as --set takes it; none: submit the job as it is
	Commands []Command `json:"commands,omitempty"` // none: no change of the job file would do
}

// Command is one way to carry out an advice: lines for a POSIX shell.
type Command struct {
	When  string   `json:"when"`
	Lines []string `json:"lines"`
}

// What limits grow by where nothing better is known, and what they leave free above what was measured.
const (
	memoryFactor  = 1.5  // at least: no less than a retry's, and this is to be the last try
	timeoutFactor = 2.0  // the same
	headroom      = 1.25 // of a timeout over the time that the measured progress leads to
	fill          = 0.9  // of a memory limit that a smaller batch may be expected to use
	atCeiling     = 1.05 // a limit that may grow by less is taken to be at its ceiling
)

func (r *Report) advice() *Advice {
	if r.Status == disdel.StatusRunning && r.Failure == nil {
		return r.orphaned()
	}
	if r.Failure == nil {
		return nil
	}
	a := r.change()
	if a.Commands == nil && a.Sets == nil {
		return a
	}
	a.Commands = r.commands(a.Sets)
	return a
}

// orphaned is for a job that runs by its record. Whoever ran it may have died; then it is there to be taken up again.
func (r *Report) orphaned() *Advice {
	if !r.resumable(nil) {
		return nil
	}
	return &Advice{Why: "by its record the job runs; if the disdel that ran it is gone, it goes on from its newest checkpoint", Commands: r.commands(nil)[:1]}
}

// hints is what was said when the job ended, where nothing better is known.
func (r *Report) hints() []string {
	if r.Failure == nil || r.Failure.Hint == "" || len(r.Advice.Commands) > 0 {
		return nil
	}
	return []string{r.Failure.Hint}
}

// again is the advice to submit the job as it is.
func again(format string, args ...any) *Advice {
	return &Advice{Why: fmt.Sprintf(format, args...), Commands: []Command{}}
}

// change looks for what has to change, by the outcome that ended the job.
func (r *Report) change() *Advice {
	f := r.Failure
	switch {
	case r.Status == disdel.StatusCanceled:
		return again("nothing was wrong with the job")
	case f.activation == nil && f.Kind == disdel.Timeout:
		return r.moreDeadline()
	case f.activation == nil:
		return r.byKind()
	}
	switch f.Outcome {
	case disdel.OutcomeOutOfMemory:
		return r.moreMemory()
	case disdel.OutcomeTimeout:
		return r.moreTime()
	case disdel.OutcomeDiverged:
		return r.smallerSteps()
	case disdel.OutcomeCorrupt:
		return &Advice{Why: fmt.Sprintf("the data set or an update is damaged: remove %q and add it again, then submit the job as it is", r.Data.Name)}
	case disdel.OutcomeTooLarge:
		return &Advice{Why: "no limit of a job helps: the network's description has to be smaller, or the platform's bound higher"}
	case disdel.OutcomeDeveloperError, disdel.OutcomeApplicationError:
		if f.Kind == disdel.OverLimit || f.Kind == disdel.Denied {
			return &Advice{Why: "memory and time of the action were within their limits: what refused it has to change first" + colon(f.Hint)}
		}
		return again("memory and time were within their limits, so that the same job may pass; if it ends the same way again, the log tells more")
	case disdel.OutcomeThrottled:
		return again("the quota counts by the minute: the same job passes once it is free")
	case disdel.OutcomeInternalError, disdel.OutcomeLost, disdel.OutcomeStartFailure:
		return again("the platform was to blame, not the job: the same job passes once the platform is well")
	default:
		return r.byKind()
	}
}

func colon(hint string) string {
	if hint == "" {
		return ""
	}
	return ": " + hint
}

func (r *Report) byKind() *Advice {
	switch r.Failure.Kind {
	case disdel.Lost, disdel.Unavailable, disdel.Internal:
		return again("the platform or a store was to blame, not the job: the same job passes once they are well")
	default:
		return &Advice{Why: "the record has no measurement that a change could be worked out from"}
	}
}

// ceiling is the most memory that an action of this job may be given, and whose word that is; 0: the record does not say.
func ceiling(rec *disdel.Record) (disdel.Bytes, string) {
	most, whose := rec.Plan.Platform.MaxMemory, "the platform's maximum"
	if m := rec.Job.Resources.MaxMemory; m > 0 && (most == 0 || m < most) {
		most, whose = m, "resources.maxMemory"
	}
	if pool := rec.Plan.Platform.Pool; pool > 0 && (most == 0 || pool < most) {
		most, whose = pool, "the pool's memory"
	}
	return most, whose
}

// moreMemory raises the limit by the factor of the job's retries; at the ceiling it lowers what the action needs instead.
func (r *Report) moreMemory() *Advice {
	rec, limit := r.record, r.Failure.Limit
	factor := math.Max(rec.Job.Reliability.Retries.MemoryFactor, memoryFactor)
	need := disdel.Bytes(math.Ceil(float64(max(limit, r.Failure.Peak)) * factor))
	if r.Failure.activation.Task != disdel.TaskTrain {
		return r.besideTraining()
	}
	most, whose := ceiling(rec)
	sum := fmt.Sprintf("it was stopped at %v, so it needs more than that; %v x %.2g is %d MB", max(limit, r.Failure.Peak), max(limit, r.Failure.Peak), factor, need.MB())
	switch {
	case most == 0 || need <= most:
		return &Advice{Why: sum, Sets: []string{set("resources.memory", megabytes(need))}}
	case whose == "resources.maxMemory" && need <= r.platformMost():
		return &Advice{
			Why:  fmt.Sprintf("%s, above resources.maxMemory of %v; the platform allows %v", sum, most, r.platformMost()),
			Sets: []string{set("resources.memory", megabytes(need)), set("resources.maxMemory", megabytes(need))},
		}
	case float64(most) >= atCeiling*float64(limit):
		return &Advice{
			Why:  fmt.Sprintf("%s, above %s: %v is the most there is", sum, whose, most),
			Sets: []string{set("resources.memory", megabytes(most))},
		}
	default:
		return r.smallerWork(need, limit, fmt.Sprintf("%s, and %s is %v", sum, whose, most))
	}
}

// platformMost is the ceiling without the user's own; without a known one there is no bound.
func (r *Report) platformMost() disdel.Bytes {
	p := r.record.Plan.Platform
	most := p.MaxMemory
	if p.Pool > 0 && (most == 0 || p.Pool < most) {
		most = p.Pool
	}
	if most == 0 {
		return math.MaxInt64
	}
	return most
}

// batch is the batch size that the job had come to when it ended: a retry may have lowered it.
func (r *Report) batch() int {
	batch := r.Job.Training.BatchSize
	for _, a := range r.Troubles.Adjustments {
		if n, err := strconv.Atoi(a.To); err == nil && n > 0 && a.Field == "batchSize" {
			batch = n
		}
	}
	return batch
}

// smallerWork finds the largest batch, by halves, whose share of need fits the limit; then the shard. The estimate says
// which share of the memory goes with the batch, and which with the shard.
func (r *Report) smallerWork(need, limit disdel.Bytes, why string) *Advice {
	batch := r.batch()
	train, _ := r.record.Plan.Action(disdel.TaskTrain)
	e := train.Estimate
	if e.Total <= 0 || e.Activations+e.Misc <= 0 {
		if batch < 2 {
			return &Advice{Why: why + "; the record does not say what a smaller network or shard would save"}
		}
		return &Advice{Why: fmt.Sprintf("%s; half of the batch needs less", why), Sets: []string{set("training.batchSize", batch/2)}}
	}
	share := float64(e.Activations+e.Misc) / float64(e.Total)
	fits := func(saved float64) bool { return float64(need)*(1-saved) <= fill*float64(limit) }
	for b := batch / 2; b >= 1; b /= 2 {
		if saved := share * (1 - float64(b)/float64(batch)); fits(saved) {
			return &Advice{
				Why: fmt.Sprintf("%s; %.0f %% of the estimate goes with the batch, and %d rows instead of %d need about %v",
					why, 100*share, b, batch, disdel.Bytes(float64(need)*(1-saved))),
				Sets: []string{set("training.batchSize", b)},
			}
		}
	}
	workers, shard := r.record.Plan.Workers, float64(e.Dta)/float64(e.Total)
	for w := 2 * workers; w > 0 && w <= max(1, r.Data.Train/max(1, batch)); w *= 2 {
		if saved := shard * (1 - float64(workers)/float64(w)); fits(saved) {
			return &Advice{
				Why: fmt.Sprintf("%s; %.0f %% of the estimate is the shard, and %d workers instead of %d need about %v each",
					why, 100*shard, w, workers, disdel.Bytes(float64(need)*(1-saved))),
				Sets: []string{set("distribution.workers", w)},
			}
		}
	}
	return &Advice{Why: why + "; no smaller batch and no further workers bring it below: it takes a smaller network or a platform that allows more"}
}

// besideTraining is for aggregate and evaluate actions. No field of a job sets their memory, but the next job of this kind starts
// from what this one had come to.
func (r *Report) besideTraining() *Advice {
	task := r.Failure.activation.Task
	switch most, _ := ceiling(r.record); {
	case most == 0 || r.Failure.Limit < most:
		return again("the next job of this kind gives its %s actions more than %v, since the history now knows that this is too little", task, r.Failure.Limit)
	case task == disdel.TaskEvaluate && r.batch() > 1:
		return &Advice{
			Why:  "it evaluates in batches of the training's size; half of it needs less",
			Sets: []string{set("training.batchSize", r.batch()/2)},
		}
	default:
		return &Advice{Why: "no field of a job sets this action's memory: it takes a smaller network or a platform that allows more"}
	}
}

// smallerSteps divides the learning rate by ten and bounds the gradient.
func (r *Report) smallerSteps() *Advice {
	o := r.Job.Training.Optimizer
	a := &Advice{Why: "steps were too long"}
	if rate := o.Rate(); rate > 0 {
		path := "training.optimizer." + o.Name() + ".learningRate"
		a.Why += fmt.Sprintf(": the learning rate was %g", rate)
		a.Sets = append(a.Sets, set(path, strconv.FormatFloat(rate/10, 'g', 3, 64)))
	}
	if r.Job.Training.ClipNorm == 0 {
		a.Why += ", and no gradient was cut"
		a.Sets = append(a.Sets, set("training.clipNorm", 1))
	}
	return a
}

func set(path string, value any) string { return fmt.Sprintf("%s=%v", path, value) }

func megabytes(b disdel.Bytes) string { return fmt.Sprintf("%dMB", b.MB()) }
