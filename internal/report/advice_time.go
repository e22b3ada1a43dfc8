package report

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/disdel/disdel"
)

// moreTime gives the time that the measured progress leads to; above the platform's maximum it divides the work.
func (r *Report) moreTime() *Advice {
	f, rec := r.Failure, r.record
	need, why := r.projected()
	most := rec.Plan.Platform.MaxTimeout
	if most == 0 || need <= most {
		sets := []string{set("resources.timeout", time.Duration(need))}
		if d := disdel.Millis(rec.Job.Reliability.Deadline); d > 0 && d <= 2*need {
			sets = append(sets, set("reliability.deadline", time.Duration(d+2*need)))
		}
		return &Advice{Why: why, Sets: sets}
	}
	over := fmt.Sprintf("%s, above the platform's maximum of %v", why, span(most))
	if f.Timeout > 0 && float64(most) >= 1.5*float64(f.Timeout) && need <= 2*most && f.LastBeat == nil {
		return &Advice{Why: over + ": the maximum is the most there is", Sets: []string{set("resources.timeout", time.Duration(most))}}
	}
	if n := disdel.Millis(rec.Plan.Epochs); f.activation.Task == disdel.TaskTrain && n > 1 && need/n <= most {
		sets := []string{set("distribution.sync", disdel.SyncEpoch)}
		if rec.Job.Resources.Timeout > 0 {
			sets = append(sets, set("resources.timeout", time.Duration(min(most, roundUp(need/n)))))
		}
		return &Advice{Why: over + "; a round of one epoch instead of " + strconv.Itoa(int(n)) + " fits", Sets: sets}
	}
	if w := rec.Plan.Workers; f.activation.Task == disdel.TaskTrain && w > 0 {
		more := int(math.Ceil(float64(w) * float64(need) / float64(most)))
		if more*max(1, r.Job.Training.BatchSize) <= r.Data.Train || r.Data.Train == 0 {
			return &Advice{
				Why:  fmt.Sprintf("%s; a worker of %d has %.0f %% of the rows that one of %d had", over, more, 100*float64(w)/float64(more), w),
				Sets: []string{set("distribution.workers", more), set("resources.timeout", time.Duration(most))},
			}
		}
	}
	return &Advice{Why: over + ": it takes a smaller network, less data, or a platform that allows more"}
}

// projected is the timeout that the failed activation would have passed with, and its arithmetic.
func (r *Report) projected() (disdel.Millis, string) {
	f := r.Failure
	first, last := r.progress()
	if gain := last.share - first.share; gain > 0 && last.at > first.at {
		left := time.Duration((1 - last.share) / gain * float64(last.at-first.at))
		whole := last.at + left
		need := roundUp(disdel.Millis(headroom * float64(whole)))
		return need, fmt.Sprintf("at %v it had done %.0f %% of its round, which leads to %v; with a quarter to spare that is %v",
			span(disdel.Millis(last.at)), 100*last.share, span(disdel.Millis(whole)), time.Duration(need))
	}
	factor := math.Max(r.Job.Reliability.Retries.TimeoutFactor, timeoutFactor)
	need := roundUp(disdel.Millis(factor * float64(f.Timeout)))
	return need, fmt.Sprintf("no heartbeat tells how far it came; %v x %.2g is %v", span(f.Timeout), factor, time.Duration(need))
}

// progressPoint is how much of its round an action had trained at a time after its invocation.
type progressPoint struct {
	at    time.Duration
	share float64
}

// progress is the first and the last point of a train action that trains whole epochs. Of legs and of rounds shorter than
// an epoch the heartbeats do not tell which share of the round they are at.
func (r *Report) progress() (first, last progressPoint) {
	a, epochs := r.Failure.activation, r.record.Plan.Epochs
	if a.Task != disdel.TaskTrain || a.Leg > 0 || r.record.Plan.Batches > 0 || epochs < 1 {
		return first, last
	}
	for _, b := range a.Beats {
		if b.Epoch < 1 || b.Batches < 1 {
			continue
		}
		p := progressPoint{time.Duration(b.At), (float64(b.Epoch-1-a.Round*epochs) + float64(b.Batch)/float64(b.Batches)) / float64(epochs)}
		if p.share < 0 || p.share > 1 {
			return progressPoint{}, progressPoint{}
		}
		if first.at == 0 {
			first = p
		}
		last = p
	}
	return first, last
}

// moreDeadline gives the whole job the time that its rounds lead to.
func (r *Report) moreDeadline() *Advice {
	have := time.Duration(r.Job.Reliability.Deadline)
	done, all := len(r.Rounds), r.record.Plan.Rounds
	if have <= 0 {
		return again("the record has no deadline to raise")
	}
	need, why := 2*have, fmt.Sprintf("no round was finished; twice the deadline is %v", 2*have)
	if f := r.record.Plan.Forecast; f != nil && time.Duration(f.Duration.High) > need {
		need = time.Duration(roundUp(f.Duration.High))
		why = fmt.Sprintf("no round was finished; the job was expected to take up to %v", span(f.Duration.High))
	}
	if done > 0 && all > done {
		whole := time.Duration(float64(r.Duration) * float64(all) / float64(done))
		need = time.Duration(roundUp(disdel.Millis(headroom * float64(whole))))
		why = fmt.Sprintf("%d of %d rounds took %v, so all take %v; with a quarter to spare that is %v", done, all, span(r.Duration), span(disdel.Millis(whole)), need)
	}
	return &Advice{Why: why, Sets: []string{set("reliability.deadline", max(need, have+time.Second))}}
}

// roundUp makes a time that is easy to read, never a shorter one, and never less than a second: less is no time to start in.
func roundUp(m disdel.Millis) disdel.Millis {
	step := time.Minute
	for _, s := range []struct{ below, step time.Duration }{
		{20 * time.Second, time.Second}, {2 * time.Minute, 5 * time.Second}, {10 * time.Minute, 30 * time.Second},
	} {
		if time.Duration(m) <= s.below {
			step = s.step
			break
		}
	}
	return disdel.Millis((time.Duration(m) + step - 1) / step * step)
}
