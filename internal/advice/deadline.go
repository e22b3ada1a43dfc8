package advice

import (
	"fmt"
	"math"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// moreDeadline gives the whole job the time that its rounds lead to: the time before its first round, and the time of a
// round for each of them.
func (w *worker) moreDeadline() Advice {
	r := w.record
	most, field := r.Job.TimeLimit()
	have := time.Duration(most)
	if have <= 0 {
		return submitUnchanged("the record has no deadline to raise")
	}
	each, factor, known := w.roundTime()
	if each == 0 {
		need, says := w.mostTime()
		need = max(need, have+time.Second)
		return with(fmt.Sprintf("no progress was seen in %v, so that nobody knows how long the job takes; %s %v", have, says,
			need), set(field, need))
	}
	start, all := w.startTime(), max(1, r.Plan.Rounds)
	whole := start + each*disdel.Millis(all)
	need := max(time.Duration(disdel.Millis(factor*float64(whole)).Readable()), have+time.Second)
	return with(fmt.Sprintf("%s, and %.2f s went by before the first: all %d take %v; x %.4g that is %v",
		known, start.Seconds(), all, whole.Text(), factor, need), set(field, need))
}

// mostTime is a bound of the whole job where nothing of it was measured: what was expected of it before it began, else
// all its activations at their timeouts.
func (w *worker) mostTime() (most time.Duration, says string) {
	p := w.record.Plan
	if p.Forecast != nil && p.Forecast.Duration.High > 0 {
		return time.Duration(p.Forecast.Duration.High.Readable()), "it was expected to take up to"
	}
	var round disdel.Millis
	for _, a := range p.Actions {
		if a.Task == disdel.TaskTrain {
			round += a.Limits.Timeout * disdel.Millis(max(1, p.Legs))
		} else {
			round += a.Limits.Timeout
		}
	}
	return time.Duration((round * disdel.Millis(max(1, p.Rounds))).Readable()), "with every action at its timeout it takes"
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

// roundTime is how long a round takes, a factor that covers its noise, and what says so; 0: nothing does.
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
		if p, told := scheduler.PaceOf(a.placed()); told {
			took, by = p.Whole, p.Margin()
		}
		if a.a.Outcome == disdel.OutcomeSuccess {
			took, by = max(took, a.a.Duration), max(by, unfinished)
		}
		if took > each {
			each, factor = took, max(by, unfinished)
		}
	}
	return each, factor, fmt.Sprintf("a round takes about %v by the progress of its training", each.Text())
}

const (
	// unfinished is the margin over the training of a round that nobody saw the end of: its aggregation, and where it is
	// due its evaluation.
	unfinished = 1.6
	// mostFactor keeps the advice below two and a half times the need.
	mostFactor = 1.9
)

// meanRound is the mean time of the rounds, and a factor that covers three standard errors of the sum of rounds to
// come. The first round starts its containers, so that it is longer than the others.
func meanRound(rounds []disdel.Round) (disdel.Millis, float64) {
	var sum, squares float64
	for _, r := range rounds {
		sum += float64(r.Duration)
	}
	n := float64(len(rounds))
	mean := sum / n
	if len(rounds) < 3 {
		return disdel.Millis(mean), 1.5
	}
	for _, r := range rounds {
		squares += (float64(r.Duration) - mean) * (float64(r.Duration) - mean)
	}
	spread := math.Sqrt(squares/(n-1)/n) / math.Max(1, mean)
	return disdel.Millis(mean), math.Min(mostFactor, math.Max(headroom, 1.1+3*spread))
}
