package advice

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// defaultMaximum is OpenWhisk's own, for records that do not say what the platform's is.
const defaultMaximum = disdel.Millis(5 * time.Minute)

// moreTime gives the time that the measured progress leads to; above the platform's maximum it divides the work.
func (w *worker) moreTime() Advice {
	r, placed := w.record, w.placed()
	if stall, stalled := placed.Stalled(); stalled {
		return submitUnchanged("it stopped answering (%s), and its timeout of %v is long enough: look at the machine "+
			"that it ran on, then submit the job as it is", stall.Text(), w.a.Limits.Timeout)
	}
	need, why, told := scheduler.EnoughTime(r, placed)
	most := r.Plan.Platform.MaxTimeout
	switch {
	case !told:
		return w.unknownTime(cmp.Or(most, defaultMaximum))
	case most == 0 || need <= most:
		sets := append([]string{set("resources.timeout", time.Duration(need))}, w.roomFor(2*need)...)
		return with(fmt.Sprintf("%v should do: %s", time.Duration(need), why), sets...)
	default:
		return w.lessWork(need, most, why)
	}
}

// roomFor raises the job's deadline if it is shorter than the new timeout of one activation, or than the measured time
// of all rounds.
func (w *worker) roomFor(need disdel.Millis) []string {
	most, field := w.record.Job.TimeLimit()
	if all, _, _ := w.wholeTime(); all > need {
		need = all.Readable()
	}
	if most <= 0 || disdel.Millis(most) > need {
		return nil
	}
	return []string{set(field, time.Duration(disdel.Millis(most)+need))}
}

// unknownTime is the advice for an action without progress, if no other action of its kind finished. It is the longest
// timeout: a timeout is only a bound, and the next record will tell how long the work takes.
func (w *worker) unknownTime(most disdel.Millis) Advice {
	limit := w.a.Limits.Timeout
	known := fmt.Sprintf("no progress was seen in %v, and no %s action of the job finished, so its time is not "+
		"known", limit, w.a.Task)
	if limit >= most {
		return none("%s; %v is the platform's maximum: it takes smaller batches or a smaller network, or a platform that "+
			"allows more", known, most)
	}
	return with(fmt.Sprintf("%s; %v is the platform's maximum", known, most),
		append([]string{set("resources.timeout", time.Duration(most))}, w.roomFor(most)...)...)
}

// lessWork is for work that takes longer than the platform's maximum: shorter rounds, or more workers.
func (w *worker) lessWork(need, most disdel.Millis, why string) Advice {
	r, placed := w.record, w.placed()
	over := fmt.Sprintf("%v should do: %s; the platform's maximum is %v", time.Duration(need), why, time.Duration(most))
	done, _ := placed.Done()
	if limit := w.a.Limits.Timeout; limit > 0 && float64(most) >= 1.5*float64(limit) && need <= 2*most && done == 0 {
		return with(over, set("resources.timeout", time.Duration(most)))
	}
	if w.a.Task != disdel.TaskTrain {
		return none("%s; it takes a smaller network, less data, or a platform that allows more", over)
	}
	plan := r.PlanOf(&w.a.Invocation)
	if n := disdel.Millis(plan.Epochs); n > 1 && need/n <= most {
		sets := []string{set("distribution.sync", disdel.SyncEpoch)}
		if r.Job.Resources.Timeout > 0 {
			sets = append(sets, set("resources.timeout", time.Duration(min(most, (need/n).Readable()))))
		}
		return with(over+"; a round of one epoch instead of "+strconv.Itoa(int(n))+" fits", sets...)
	}
	if n := plan.Workers; n > 0 {
		more := int(math.Ceil(float64(n) * float64(need) / float64(most)))
		if more <= r.Job.Training.MostWorkers(r.Data.Train) || r.Data.Train == 0 {
			return with(fmt.Sprintf("%s; a worker of %d has %.0f %% of the rows that one of %d had", over, more,
				100*float64(n)/float64(more), n),
				set("distribution.workers", more), set("resources.timeout", time.Duration(most)))
		}
	}
	return none("%s; it takes a smaller network, less data, or a platform that allows more", over)
}

// placed is the activation with the part of the job that it was to train, which records of earlier versions lack.
func (w *worker) placed() disdel.Activation {
	a := *w.a
	p, stage := w.record.PlanOf(&a.Invocation), w.record.StageOf(&a.Invocation)
	switch {
	case a.Span != nil || a.Task != disdel.TaskTrain:
	case p.Batches > 0:
		a.Beats = nil // which share of the round they are at, they do not tell
	default:
		at := stage.Span(a.Round)
		a.Span = &at
	}
	return a
}
