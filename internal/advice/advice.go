package advice

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Advice is what lets a failed job pass.
type Advice struct {
	Why  string   // the arithmetic, or why no change of the job would do
	Sets []string // PATH=VALUE as --set takes them
	Pass bool     // the job may pass with Sets; where there are none, as it is
}

// Hint is the advice as the next step of an error; "" where no field of the job has to change.
func (a Advice) Hint() string {
	if len(a.Sets) == 0 {
		return ""
	}
	return "--set " + strings.Join(a.Sets, " --set ") + " (" + a.Why + ")"
}

// For is the advice for a job that did not succeed, from its record only. It does not change the record.
func For(r *disdel.Record) Advice { return ForPlanned(r, nil) }

// ForPlanned is the advice for a job that did not succeed. in is what the job was planned from: if the job must become
// smaller, ForPlanned plans a change that fits. With nil it takes the change that the job's failure names.
func ForPlanned(r *disdel.Record, in *scheduler.PlanInput) Advice {
	w := worker{record: r, a: Decisive(r), planned: in}
	if r.Failure == nil && r.Status != disdel.StatusCanceled && w.a == nil {
		return none("the record does not say why the job ended")
	}
	out := w.change()
	if out.Pass {
		w.withinBudget(&out)
	}
	return out
}

// Decisive is the activation that the job ended for: the one that its failure names, else the newest of the invocation
// that it names. A job may end for none: its deadline, its user, or a model that could not be kept.
func Decisive(r *disdel.Record) *disdel.Activation {
	if r.Failure == nil {
		return newest(r, func(*disdel.Activation) bool { return true })
	}
	f := r.Failure
	if f.Activation != "" {
		if a := newest(r, func(a *disdel.Activation) bool { return a.ID == f.Activation }); a != nil {
			return a
		}
	}
	if f.Invocation != "" {
		return newest(r, func(a *disdel.Activation) bool { return a.Invocation.ID == f.Invocation })
	}
	// Records of the first version name no invocation.
	return newest(r, func(a *disdel.Activation) bool {
		return a.Failure != nil && a.Failure.Kind == f.Kind && a.Failure.Code == f.Code
	})
}

// newest is the newest activation whose work was in vain that is what is looked for.
func newest(r *disdel.Record, is func(*disdel.Activation) bool) *disdel.Activation {
	for i := len(r.Activations) - 1; i >= 0; i-- {
		if a := &r.Activations[i]; failed(a.Outcome) && is(a) {
			return a
		}
	}
	return nil
}

func failed(o disdel.Outcome) bool {
	switch o {
	case disdel.OutcomeUnknown, disdel.OutcomeSuccess, disdel.OutcomePaused, disdel.OutcomeCanceled:
		return false
	default:
		return true
	}
}

// worker has the record and the activation that the job ended for, nil for none.
type worker struct {
	record  *disdel.Record
	a       *disdel.Activation
	planned *scheduler.PlanInput // that the job was planned from; nil: unknown
}

func submitUnchanged(format string, args ...any) Advice {
	return Advice{Why: fmt.Sprintf(format, args...), Pass: true}
}

func none(format string, args ...any) Advice { return Advice{Why: fmt.Sprintf(format, args...)} }

func with(why string, sets ...string) Advice { return Advice{Why: why, Sets: sets, Pass: true} }

func set(path string, value any) string { return fmt.Sprintf("%s=%v", path, value) }

// change looks for what has to change, by the outcome that ended the job.
func (w *worker) change() Advice {
	r := w.record
	switch {
	case r.Status == disdel.StatusCanceled:
		return submitUnchanged("nothing was wrong with the job")
	case r.Failure != nil && r.Failure.Code == disdel.CodeUnkept:
		return submitUnchanged("the job goes on once the disk or storage takes its files%s", colon(r.Failure.Hint))
	case r.Failure != nil && r.Failure.Code == disdel.CodeStoreGone:
		return submitUnchanged("the job goes on once its store is back%s", colon(r.Failure.Hint))
	case w.a == nil && r.Failure != nil && r.Failure.Kind == disdel.Timeout:
		return w.moreDeadline()
	case w.a == nil:
		return w.byKind()
	}
	switch w.a.Outcome {
	case disdel.OutcomeOutOfMemory:
		if w.a.LackedDevice() {
			return w.moreDevice()
		}
		return w.moreMemory()
	case disdel.OutcomeTimeout:
		return w.moreTime()
	case disdel.OutcomeDiverged:
		return w.smallerSteps()
	case disdel.OutcomeCorrupt:
		if w.a.Failure != nil && w.a.Failure.Hint != "" {
			return none("its input is damaged: %s", w.a.Failure.Hint)
		}
		return none("the data set or an update is damaged: remove %q and add it again, then submit the job as it is",
			r.Data.Name)
	case disdel.OutcomeTooLarge:
		return none("no limit of a job helps: the network's description has to be smaller, or the platform's bound higher")
	case disdel.OutcomeDeveloperError, disdel.OutcomeApplicationError:
		if w.a.FailureCode() == disdel.CodeInitDied && !w.imageServes() {
			return w.brokenImage()
		}
		return w.ofItself()
	case disdel.OutcomeThrottled:
		return submitUnchanged("the quota counts by the minute: the same job passes once it is free")
	case disdel.OutcomeStartFailure:
		if c := w.a.FailureCode(); (c == disdel.CodeInitTimeout || c == disdel.CodeInitDied) && !w.imageServes() {
			return w.brokenImage()
		}
		if w.a.FailureCode() == disdel.CodeInitTimeout && w.a.Limits.Timeout < scheduler.LeastTime {
			return with(fmt.Sprintf("a container may take longer to start than %v", w.a.Limits.Timeout),
				set("resources.timeout", time.Duration(scheduler.LeastTime)))
		}
		if k := kindOf(w.a); k == disdel.Invalid || k == disdel.OverLimit || k == disdel.NotFound {
			return none("no field of a job helps%s", colon(hintOf(w.a)))
		}
		return submitUnchanged("the platform was to blame, not the job: the same job passes once the platform is well")
	case disdel.OutcomeInternalError, disdel.OutcomeLost:
		return submitUnchanged("the platform was to blame, not the job: the same job passes once the platform is well")
	default:
		return w.byKind()
	}
}

// brokenImage is for an image whose containers have taken no request.
func (w *worker) brokenImage() Advice {
	return none("no field of a job helps: no container of this image has taken a request%s", colon(hintOf(w.a)))
}

// imageServes tells whether an action of the job has run in a container of its image.
func (w *worker) imageServes() bool {
	return slices.ContainsFunc(w.record.Activations, func(a disdel.Activation) bool {
		return a.Outcome == disdel.OutcomeSuccess || a.Outcome == disdel.OutcomePaused
	})
}

// ofItself is for an action that failed of itself.
func (w *worker) ofItself() Advice {
	if w.a.Suspected {
		return w.moreMemory()
	}
	if k := kindOf(w.a); k == disdel.OverLimit || k == disdel.Denied {
		return none("memory and time of the action were within their limits: what refused it has to change first%s",
			colon(hintOf(w.a)))
	}
	return submitUnchanged("memory and time were within their limits, so that the same job may pass; if it ends the " +
		"same way again, the log tells more")
}

func kindOf(a *disdel.Activation) disdel.Kind {
	if a.Failure == nil {
		return disdel.UnknownKind
	}
	return a.Failure.Kind
}

func hintOf(a *disdel.Activation) string {
	if a.Failure == nil {
		return ""
	}
	return a.Failure.Hint
}

func colon(hint string) string {
	if hint == "" {
		return ""
	}
	return ": " + hint
}

func (w *worker) byKind() Advice {
	switch w.record.Failure.Kind {
	case disdel.Lost, disdel.Unavailable, disdel.Internal:
		return submitUnchanged("the platform or a store was to blame, not the job: the same job passes once they are well")
	case disdel.OverLimit:
		maximum, field := w.record.Job.Budget()
		over := w.record.Failure.Code == disdel.CodeOverBudget
		switch ways := w.record.Failure.Changes; {
		case over && len(ways) > 0:
			return with("the job stopped before it cost more than "+field+"; what is left needs more", ways[0]...)
		case len(ways) > 0:
			return with("the plan does not keep a limit", ways[0]...)
		case maximum > 0:
			return submitUnchanged("the job would have cost more than %s", field) // withinBudget says how much
		}
	}
	return none("the record has no measurement that a change could be worked out from")
}

// Rates that a job goes back to: those of the job file's own defaults, and for sgd, which has none, that of most
// libraries.
const (
	adamRate = 0.001
	sgdRate  = 0.01
	// farOff is how many times its default a rate may be before dividing it by ten is too little.
	farOff = 10
)

// smallerSteps takes a rate that is far from its optimiser's default back to it, divides another by ten, and bounds the
// gradient.
func (w *worker) smallerSteps() Advice {
	o := w.record.Job.Training.Optimizer
	out := Advice{Why: "steps were too long", Pass: true}
	if rate := o.Rate(); rate > 0 {
		standard := usualRate(w.record)
		next, why := rate/10, fmt.Sprintf(": the learning rate was %g", rate)
		if rate > farOff*standard {
			next, why = standard, fmt.Sprintf(": the learning rate was %g, and %g is usual for %s", rate, standard, o.Name())
		}
		out.Why += why
		out.Sets = append(out.Sets,
			set("training.optimizer."+o.Name()+".learningRate", strconv.FormatFloat(next, 'g', 3, 64)))
	}
	if w.record.Job.Training.ClipNorm == 0 {
		out.Why += "; no gradient was cut"
		out.Sets = append(out.Sets, set("training.clipNorm", 1))
	}
	return out
}

// headroom is what a measured cost of the whole job is raised by.
const headroom = 1.25

// withinBudget raises what the job may cost where the job, with what is advised, would cost more: as far as its rounds,
// its forecast and what it has spent tell.
func (w *worker) withinBudget(out *Advice) {
	r := w.record
	maximum, field := r.Job.Budget()
	known := slices.ContainsFunc(out.Sets, func(s string) bool { return strings.HasPrefix(s, field+"=") })
	if maximum <= 0 || known || r.Status == disdel.StatusCanceled {
		return
	}
	spent := r.MeteredCost()
	total := 2 * spent
	if done, all := len(r.Rounds), r.Plan.Rounds; done > 0 && all > done {
		total = math.Max(total, spent*float64(all)/float64(done))
	}
	if f := r.Plan.Forecast; f != nil {
		total = math.Max(total, f.MeteredCost().High)
	}
	total *= headroom
	if total <= maximum {
		return
	}
	out.Why += fmt.Sprintf("; it may cost up to %.4g GB-s in all, and %s is %.4g", total, field, maximum)
	out.Sets = append(out.Sets, set(field, fmt.Sprintf("%.0fGB-s", math.Ceil(total))))
}
