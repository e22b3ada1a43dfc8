package advice

import (
	"fmt"
	"math"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// shortStart is a time before the first round that is not worth a word.
const shortStart = disdel.Millis(10 * time.Millisecond)

// moreDeadline is the advice to raise the job's deadline to the time that all rounds take, by the rounds so far.
func (w *worker) moreDeadline() Advice {
	r := w.record
	most, field := r.Job.TimeLimit()
	have := time.Duration(most)
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
	whole := start + each*disdel.Millis(all)
	if start >= shortStart {
		known += fmt.Sprintf("; the first began after %v", start.Text())
	}
	return disdel.Millis(factor * float64(whole)), factor, fmt.Sprintf("%s; all %d take %v", known, all, whole.Text())
}

// mostTime bounds the time of a job of which nothing was measured: by its forecast, or else by the timeouts of all its
// activations.
func (w *worker) mostTime() (most time.Duration, says string) {
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
		if p, told := placed.Pace(); told {
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
