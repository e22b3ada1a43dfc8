package advice

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// headroom is what a measured time or cost of the whole job is raised by.
const headroom = 1.25

// moreTime gives the time that the measured progress leads to; above the platform's maximum it divides the work.
func (w *worker) moreTime() Advice {
	r := w.record
	need, why := scheduler.EnoughTime(w.placed(), r.Job.Reliability.Retries)
	most := r.Plan.Platform.MaxTimeout
	if most == 0 || need <= most {
		sets := []string{set("resources.timeout", time.Duration(need))}
		if most, field := r.Job.TimeLimit(); most > 0 && disdel.Millis(most) <= 2*need {
			sets = append(sets, set(field, time.Duration(disdel.Millis(most)+2*need)))
		}
		return with(fmt.Sprintf("%v should do: %s", time.Duration(need), why), sets...)
	}
	over := fmt.Sprintf("%v should do: %s; the platform's maximum is %v", time.Duration(need), why, time.Duration(most))
	placed := w.placed()
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

// moreDeadline gives the whole job the time that its rounds lead to.
func (w *worker) moreDeadline() Advice {
	r := w.record
	most, field := r.Job.TimeLimit()
	have := time.Duration(most)
	if have <= 0 {
		return submitUnchanged("the record has no deadline to raise")
	}
	took := time.Duration(r.Phases.Total)
	if took == 0 && r.Ended.After(r.Created) {
		took = r.Ended.Sub(r.Created)
	}
	done, all := len(r.Rounds), r.Plan.Rounds
	need, why := 2*have, fmt.Sprintf("no round was finished; twice the deadline is %v", 2*have)
	if f := r.Plan.Forecast; f != nil && time.Duration(f.Duration.High) > need {
		need = time.Duration(f.Duration.High.Readable())
		why = fmt.Sprintf("no round was finished; the job was expected to take up to %v", f.Duration.High.Readable())
	}
	if done > 0 && all > done {
		whole := time.Duration(float64(took) * float64(all) / float64(done))
		need = time.Duration(disdel.Millis(headroom * float64(whole)).Readable())
		why = fmt.Sprintf("%d of %d rounds took %v, so all take %v; with a quarter to spare that is %v",
			done, all, disdel.Millis(took).Text(), disdel.Millis(whole).Text(), need)
	}
	return with(why, set(field, max(need, have+time.Second)))
}
