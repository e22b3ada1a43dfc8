package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// work is an invocation in the cloud, and what its action knows.
type work struct {
	sim.Call
	rows      int           // that it trains or evaluates if it finishes
	remaining disdel.Millis // of its attempt after this leg
}

// legShare is the part of its timeout after which an unfinished train action stores its state and pauses.
const legShare = 0.8

// work computes the work of an invocation.
func (j *job) work(inv disdel.Invocation) work {
	w := work{Call: sim.Call{
		Namespace: j.line.Tenant, Action: string(inv.Action), Memory: inv.Limits.Memory, Timeout: inv.Limits.Timeout,
		Hold: inv.Hold, Threads: 1,
	}}
	slower := j.line.Slower
	if slower == 0 {
		slower = 1
	}
	plan := j.planOf(inv)
	switch inv.Task {
	case disdel.TaskTrain:
		w.Threads, w.rows = max(1, j.threads(plan)), j.rows(inv)
		total := j.line.Round + times(j.line.PerThousand, float64(w.rows)/1000/float64(w.Threads))
		if remaining, ok := j.remaining[shareOf(inv)]; ok {
			total = remaining
		}
		w.Work = min(total, times(inv.Limits.Timeout, legShare))
		w.remaining = total - w.Work
	case disdel.TaskAggregate:
		w.Work = j.line.Aggregate
		if l := inv.Level - 1; l >= 0 && l < len(plan.Levels) && inv.Member < len(plan.Levels[l].Clusters) {
			w.Work += times(j.line.EachUpdate, plan.Levels[l].Updates(inv.Member))
		}
	default:
		w.Work, w.rows = j.line.Evaluate, j.line.HeldOut
	}
	w.Work, w.Load = times(w.Work, slower*j.luck(inv)), j.line.Load
	return w
}

// threads is the number of a train action's threads in a plan.
func (j *job) threads(plan disdel.Plan) int {
	if plan.Threads > 0 {
		return plan.Threads
	}
	return j.spec.Threads
}

// luck is how much slower than usual an activation is: lognormal, and always the same for an activation.
func (j *job) luck(inv disdel.Invocation) float64 {
	if j.line.Noise == 0 {
		return 1
	}
	place := uint64(inv.Attempt)<<40 | uint64(inv.Level)<<32 | uint64(inv.Member)
	lot := rand.New(rand.NewPCG(scheduler.Seed(j.ID, inv.Round), place))
	return math.Exp(j.line.Noise * lot.NormFloat64())
}

func times(d disdel.Millis, by float64) disdel.Millis { return disdel.Millis(float64(d) * by) }

// share is the work of a worker in a round, in whatever attempt.
type share struct{ round, worker int }

func shareOf(inv disdel.Invocation) share { return share{inv.Round, inv.Member} }

// rows is how many rows a worker trains in a round, over all epochs.
func (j *job) rows(inv disdel.Invocation) int {
	shard := j.planOf(inv).Shards[inv.Member].Len()
	if inv.TrainRange == nil {
		return shard
	}
	if inv.TrainRange.Batches > 0 {
		return min(shard, inv.TrainRange.Batches*j.line.BatchSize)
	}
	return shard * max(1, inv.TrainRange.Epochs)
}

// loss is the training loss at the end of an invocation.
func (j *job) loss(inv disdel.Invocation) float64 {
	if inv.TrainRange == nil {
		return j.line.Losses.At(float64(inv.Round + 1))
	}
	at := float64(inv.TrainRange.Epoch + inv.TrainRange.Epochs)
	if n := inv.TrainRange.Batches; n > 0 && inv.Task == disdel.TaskTrain {
		batches := max(1, (j.planOf(inv).Shards[inv.Member].Len()+j.line.BatchSize-1)/j.line.BatchSize)
		at = float64(inv.TrainRange.Epoch) + float64(inv.TrainRange.Batch+n)/float64(batches)
	}
	return j.line.Losses.At(at)
}

// activation is the result of an invocation.
func (j *job) activation(inv disdel.Invocation, w work, r sim.Reply) disdel.Activation {
	a := disdel.Activation{
		Invocation: inv, Outcome: disdel.OutcomeSuccess, Duration: r.Duration, WaitTime: r.Wait, Cold: r.Cold,
		Start: moment(r.Start), End: moment(r.Start + r.Duration), Rows: w.rows, Peak: inv.Likely,
	}
	if inv.Task == disdel.TaskTrain {
		a.Phases = map[string]disdel.Millis{"compute": max(0, r.Duration-j.line.Round)}
	}
	j.Activations++
	if r.Cold {
		j.Cold++
	}
	j.CostGBs += a.HeldGBs()
	if j.over { // it is no longer awaited
		return a
	}
	switch {
	case r.Throttled:
		a.Outcome, a.Failure = disdel.OutcomeThrottled, &disdel.Error{
			Kind: disdel.Unavailable, Code: disdel.CodeQuotaConcurrent, Op: "invoke", Msg: "too many invocations",
		}
	case r.TimedOut:
		delete(j.remaining, shareOf(inv))
		a.Outcome, a.Failure = disdel.OutcomeTimeout, &disdel.Error{
			Kind: disdel.Timeout, Op: string(inv.Task), Msg: "it ran for as long as it may",
		}
	case r.Held && inv.Task != disdel.TaskTrain:
		a.Outcome, a.Failure = disdel.OutcomeTimeout, &disdel.Error{
			Kind: disdel.Timeout, Code: disdel.CodeOverBudget, Op: string(inv.Task), Msg: "the budget holds no more of it",
		}
	case r.Held:
		w.remaining += r.Left
		j.remaining[shareOf(inv)] = w.remaining
		a.Outcome = disdel.OutcomePaused
	case inv.Task == disdel.TaskTrain && w.remaining > 0:
		j.remaining[shareOf(inv)] = w.remaining
		a.Outcome = disdel.OutcomePaused
	default:
		delete(j.remaining, shareOf(inv))
	}
	if a.Outcome.Failed() {
		j.Failed++
	} else {
		a.Result = j.result(inv, w)
	}
	return a
}

// moment is a time of the virtual clock in the form of records.
func moment(at disdel.Millis) time.Time { return time.Unix(0, int64(at)).UTC() }

// result is an action's result: it always did its work.
func (j *job) result(inv disdel.Invocation, w work) []byte {
	switch inv.Task {
	case disdel.TaskTrain:
		batch := 0
		if w.remaining > 0 { // a leg without progress would count as a timeout
			batch = inv.Leg + 1
		}
		return fmt.Appendf(nil, `{"loss":%g,"samples":%d,"rows":%d,"epochs":1,"paused":%t,"batch":%d}`,
			j.loss(inv), j.planOf(inv).Shards[inv.Member].Len(), w.rows, w.remaining > 0, batch)
	case disdel.TaskAggregate:
		return []byte(`{"weight":1}`)
	default:
		out, _ := json.Marshal(disdel.EvaluateResult{Loss: j.loss(inv), Accuracy: 0.5, Samples: w.rows}) // plain data
		return out
	}
}
