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
	need, why, measured := scheduler.EnoughTime(r, placed)
	maximum := r.Plan.Platform.MaxTimeout
	switch {
	case !measured:
		return w.unknownTime(cmp.Or(maximum, defaultMaximum))
	case maximum == 0 || need <= maximum:
		sets := append([]string{set("resources.timeout", time.Duration(need))}, w.roomFor(2*need)...)
		return with(fmt.Sprintf("%v should do: %s", time.Duration(need), why), sets...)
	default:
		return w.lessWork(need, maximum, why)
	}
}

// roomFor raises the job's deadline if it is shorter than the new timeout of one activation, or than the measured time
// of all rounds.
func (w *worker) roomFor(need disdel.Millis) []string {
	maximum, field := w.record.Job.TimeLimit()
	if all, _, _ := w.wholeTime(); all > need {
		need = all.Readable()
	}
	if maximum <= 0 || disdel.Millis(maximum) > need {
		return nil
	}
	return []string{set(field, time.Duration(disdel.Millis(maximum)+need))}
}

// unknownTime is the advice for an action without progress, if no other action of its kind finished. It is the longest
// timeout: a timeout is only a bound, and the next record will tell how long the work takes.
func (w *worker) unknownTime(maximum disdel.Millis) Advice {
	limit := w.a.Limits.Timeout
	known := fmt.Sprintf("no progress was seen in %v, and no %s action of the job finished, so its time is not "+
		"known", limit, w.a.Task)
	if limit >= maximum {
		return none("%s; %v is the platform's maximum: it takes smaller batches or a smaller network, or a platform that "+
			"allows more", known, maximum)
	}
	return with(fmt.Sprintf("%s; %v is the platform's maximum", known, maximum),
		append([]string{set("resources.timeout", time.Duration(maximum))}, w.roomFor(maximum)...)...)
}

// lessWork is for work that takes longer than the platform's maximum: shorter rounds, or more workers.
func (w *worker) lessWork(need, maximum disdel.Millis, why string) Advice {
	r, placed := w.record, w.placed()
	over := fmt.Sprintf("%v should do: %s; the platform's maximum is %v", time.Duration(need), why, time.Duration(maximum))
	done, _ := placed.Done()
	if limit := w.a.Limits.Timeout; limit > 0 && float64(maximum) >= 1.5*float64(limit) && need <= 2*maximum && done == 0 {
		return with(over, set("resources.timeout", time.Duration(maximum)))
	}
	if w.a.Task != disdel.TaskTrain {
		return none("%s; it takes a smaller network, less data, or a platform that allows more", over)
	}
	plan := r.PlanOf(&w.a.Invocation)
	if n := disdel.Millis(plan.Epochs); n > 1 && need/n <= maximum {
		sets := []string{set("distribution.sync", disdel.SyncEpoch)}
		if r.Job.Resources.Timeout > 0 {
			sets = append(sets, set("resources.timeout", time.Duration(min(maximum, (need/n).Readable()))))
		}
		return with(over+"; a round of one epoch instead of "+strconv.Itoa(int(n))+" fits", sets...)
	}
	if n := plan.Workers; n > 0 {
		more := int(math.Ceil(float64(n) * float64(need) / float64(maximum)))
		if more <= r.Job.Training.MostWorkers(r.Data.Train) || r.Data.Train == 0 {
			return with(fmt.Sprintf("%s; a worker of %d has %.0f %% of the rows that one of %d had", over, more,
				100*float64(n)/float64(more), n),
				set("distribution.workers", more), set("resources.timeout", time.Duration(maximum)))
		}
	}
	return none("%s; it takes a smaller network, less data, or a platform that allows more", over)
}

// placed is the activation with the part of the job that it was to train, which records of earlier versions lack.
func (w *worker) placed() disdel.Activation {
	a := *w.a
	p, stage := w.record.PlanOf(&a.Invocation), w.record.StageOf(&a.Invocation)
	switch {
	case a.TrainRange != nil || a.Task != disdel.TaskTrain:
	case p.Batches > 0:
		a.Beats = nil // which share of the round they are at, they do not tell
	default:
		at := stage.TrainRange(a.Round)
		a.TrainRange = &at
	}
	return a
}

// shortStart is a time before the first round that is not worth a word.
const shortStart = disdel.Millis(10 * time.Millisecond)

// moreDeadline is the advice to raise the job's deadline to the time that all rounds take, by the rounds so far.
func (w *worker) moreDeadline() Advice {
	r := w.record
	maximum, field := r.Job.TimeLimit()
	have := time.Duration(maximum)
	if have <= 0 {
		return submitUnchanged("the record has no deadline to raise")
	}
	need, factor, known := w.wholeTime()
	if need == 0 {
		bound, says := w.mostTime()
		bound = max(bound, have+time.Second)
		return with(fmt.Sprintf("no progress was seen in %v, so the time of the job is not known; %s %v", have, says,
			bound), set(field, bound))
	}
	enough := max(time.Duration(need.Readable()), have+time.Second)
	return with(fmt.Sprintf("%s; x %.4g that is %v", known, factor, enough), set(field, enough))
}

// wholeTime is how long all rounds of the job take, times a factor that covers their noise; known is the arithmetic as
// text. need is 0 if nothing was measured.
func (w *worker) wholeTime() (need disdel.Millis, factor float64, known string) {
	each, factor, known := w.roundTime()
	if each == 0 {
		return 0, 0, ""
	}
	start, all := w.startTime(), max(1, w.record.Plan.Rounds)
	total := start + each*disdel.Millis(all)
	if start >= shortStart {
		known += fmt.Sprintf("; the first began after %v", start.Text())
	}
	return disdel.Millis(factor * float64(total)), factor, fmt.Sprintf("%s; all %d take %v", known, all, total.Text())
}

// mostTime bounds the time of a job of which nothing was measured: by its forecast, or else by the timeouts of all its
// activations.
func (w *worker) mostTime() (maximum time.Duration, says string) {
	p := w.record.Plan
	if p.Forecast != nil && p.Forecast.Duration.High > 0 {
		return time.Duration(p.Forecast.Duration.High.Readable()), "the forecast was up to"
	}
	return time.Duration(scheduler.LongestTime(p).Readable()),
		"no job is longer than all its actions at their timeouts, which is far more than it needs:"
}

// startTime is how long it took until the first round began.
func (w *worker) startTime() disdel.Millis {
	r := w.record
	for i := range r.Activations {
		if a := &r.Activations[i]; !a.Start.IsZero() {
			return max(0, disdel.Millis(a.Start.Sub(r.Created))-a.WaitTime)
		}
	}
	return 0
}

// roundTime is how long a round takes, a factor that covers its noise, and the source as text. each is 0 if unknown.
func (w *worker) roundTime() (each disdel.Millis, factor float64, known string) {
	r := w.record
	if n := len(r.Rounds); n > 0 {
		each, factor = meanRound(r.Rounds)
		return each, factor, fmt.Sprintf("%d of %d rounds took %v each", n, r.Plan.Rounds, each.Text())
	}
	for i := range r.Activations {
		a := worker{record: r, a: &r.Activations[i]}
		if a.a.Task != disdel.TaskTrain {
			continue
		}
		took, by := disdel.Millis(0), 0.0
		placed := a.placed()
		if p, measured := placed.Pace(); measured {
			took, by = p.Whole, p.Margin()
		}
		if a.a.Outcome == disdel.OutcomeSuccess {
			took, by = max(took, a.a.Duration), max(by, unfinished)
		}
		p := r.PlanOf(&a.a.Invocation)
		if took *= disdel.Millis(p.Waves()); took > each { // not all workers train at once
			each, factor = took, max(by, unfinished)
		}
	}
	return each, factor, fmt.Sprintf("a round takes about %v by the progress of its training", each.Text())
}

// unfinished is the factor from the training time of a round to its whole time, if no round has ended: it covers the
// aggregation and an evaluation.
const unfinished = 1.6

// meanRound is the mean time of the rounds, and a factor that covers the standard error of the mean. The first round is
// longer than the others, because it starts the containers.
func meanRound(rounds []disdel.Round) (disdel.Millis, float64) {
	var sum, squares float64
	for _, r := range rounds {
		sum += float64(r.Duration)
	}
	n := float64(len(rounds))
	mean := sum / n
	p := disdel.Pace{Whole: disdel.Millis(mean), Error: -1}
	if len(rounds) >= 3 {
		for _, r := range rounds {
			squares += (float64(r.Duration) - mean) * (float64(r.Duration) - mean)
		}
		p.Error = disdel.Millis(math.Sqrt(squares / (n - 1) / n))
	}
	return p.Whole, p.Margin()
}
