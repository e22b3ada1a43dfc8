package scheduler

import (
	"slices"

	"github.com/disdel/disdel"
)

// PastObservations returns the observations of earlier jobs of a kind that succeeded with this data and batch, oldest
// first; records are newest first. For jobs whose policy recorded none, they follow from the activations. Results on
// held-out rows are omitted if only one of the two jobs started from given weights, or if it froze other layers or
// trained other adapters: the times are comparable, but learning is not.
func PastObservations(records []disdel.Record, job disdel.Job, data disdel.DataInfo) []disdel.Observation {
	var out []disdel.Observation
	for _, r := range slices.Backward(records) {
		if r.Status != disdel.StatusSucceeded || !r.Data.Same(data) ||
			!r.Job.Training.SameBatch(job.Training) {
			continue
		}
		seen := seenOf(&r)
		a, b := &r.Job.Model, &job.Model
		if a.Init.Given() != b.Init.Given() || a.Init.Freeze != b.Init.Freeze || !a.LoRA.Same(b.LoRA) {
			for i := range seen { // which are copies
				seen[i].HeldOut, seen[i].Accuracy = nil, nil
			}
		}
		complete := 0 // of them, up to the last end of an epoch
		for i, o := range seen {
			if o.Epoch == float64(int(o.Epoch)) {
				complete = i + 1
			}
		}
		out = append(out, seen[:complete]...)
	}
	return out
}

// seenOf returns what a job's policy saw of its rounds, or would have seen.
func seenOf(r *disdel.Record) (seen []disdel.Observation) {
	for i := range r.Rounds {
		if o := r.Rounds[i].Observed; o != nil {
			seen = append(seen, *o)
		}
	}
	if len(seen) > 0 || siblingsOf(r) > 0 { // a job takes longer beside others than alone
		return seen
	}
	by := map[int][]*disdel.Activation{}
	for i := range r.Activations {
		a := &r.Activations[i]
		by[a.Round] = append(by[a.Round], a)
	}
	trained := 0.0
	for _, round := range r.Rounds {
		o := fromActivations(round, by[round.Round])
		o.Epoch, o.Setting = r.EpochsAfter(round), settingOf(r, round)
		o.Rows = int(float64(r.Data.Train)*(o.Epoch-trained) + 0.5)
		if trained = o.Epoch; o.Duration > 0 && len(by[round.Round]) > 0 {
			seen = append(seen, o)
		}
	}
	return seen
}

// settingOf returns the setting of a round of a job.
func settingOf(r *disdel.Record, round disdel.Round) disdel.Setting {
	all := r.AllStages()
	return all[min(max(0, round.Stage), len(all)-1)].Setting
}

// fromActivations makes the observation of a round from its activations. Its time excludes the evaluation. Its parts
// are those of the slowest worker, and of the slowest aggregation of each level.
func fromActivations(round disdel.Round, all []*disdel.Activation) disdel.Observation {
	o := disdel.Observation{
		Round: round.Round, Duration: round.Duration, Loss: round.TrainLoss, HeldOut: round.Loss, Accuracy: round.Accuracy,
		Missing: len(round.Missing), Left: len(round.Left),
	}
	workers, levels := map[int]disdel.Observation{}, map[int]disdel.Millis{}
	for _, a := range all {
		switch a.Task {
		case disdel.TaskEvaluate:
			o.Duration -= a.WaitTime + a.Duration
			continue
		case disdel.TaskAggregate:
			levels[a.Level] = max(levels[a.Level], a.Duration)
		case disdel.TaskTrain:
			o.Limit = max(o.Limit, a.Limits.Memory)
			w := workers[a.Member]
			w.Compute, w.Exchange = w.Compute+a.Phases["compute"], w.Exchange+a.Phases["exchange"]
			workers[a.Member] = w
		}
		o.Cost += a.HeldGBs()
		if a.Cold {
			o.Cold = max(o.Cold, a.InitTime, 1)
		}
		if a.Outcome.Failed() {
			o.Retried++
		}
	}
	for _, w := range workers {
		if w.Compute > o.Compute || w.Compute == o.Compute && w.Exchange > o.Exchange {
			o.Compute, o.Exchange = w.Compute, w.Exchange
		}
	}
	for _, took := range levels {
		o.Reduce += took
	}
	return o
}

// epoch is what was observed of an epoch, in one or several rounds.
type epoch struct {
	workers   int
	memory    disdel.Bytes // chosen for a train action; 0: by the estimate
	limit     disdel.Bytes // of a train action; 0: unknown
	until     float64      // epochs trained by its end
	duration  disdel.Millis
	rows      int
	compute   disdel.Millis // of the slowest workers of its rounds
	exchange  disdel.Millis // part of compute: exchanges with other workers after steps
	reduce    disdel.Millis // of their aggregations
	rounds    int
	cost      float64  // GB-s
	losses    float64  // sum of its rounds' losses, each times the round's rows
	heldOut   *float64 // loss of held-out rows at its end; nil: not evaluated
	disturbed bool     // a cold start, or a worker that failed or left: its time says little
	remaining int      // workers that were released while it ran
	failed    bool     // a worker failed
	cold      disdel.Millis
}

// started is the time of 1,000 rows without cold starts.
func (e epoch) started() disdel.Millis {
	return disdel.Observation{Duration: max(0, e.duration-e.cold), Rows: e.rows}.PerThousand()
}

// each is the time of 1,000 rows.
func (e epoch) each() disdel.Millis {
	return disdel.Observation{Duration: e.duration, Rows: e.rows}.PerThousand()
}

// meanLoss is the mean training loss of the epoch's rows.
func (e epoch) meanLoss() float64 { return e.losses / float64(max(1, e.rows)) }

// epochs combines rounds into the epochs that most policies consider.
func epochs(seen []disdel.Observation) []epoch {
	var out []epoch
	var e epoch
	for _, o := range seen {
		e.workers, e.memory, e.limit = o.Setting.Workers, o.Setting.Memory, o.Limit
		e.duration, e.rows = e.duration+o.Duration, e.rows+o.Rows
		e.compute, e.cost = e.compute+o.Compute, e.cost+o.Cost
		e.reduce, e.rounds, e.exchange = e.reduce+o.Reduce, e.rounds+1, e.exchange+o.Exchange
		e.losses += o.Loss * float64(o.Rows)
		e.failed = e.failed || o.Retried > 0 || o.Missing > 0
		e.remaining += o.Left
		e.disturbed, e.cold = e.disturbed || e.failed || o.Cold > 0 || o.Left > 0, e.cold+o.Cold
		if o.Epoch != float64(int(o.Epoch)) {
			continue // in the middle of one
		}
		e.heldOut = o.HeldOut
		if e.until = o.Epoch; e.duration > 0 {
			out = append(out, e)
		}
		e = epoch{}
	}
	return out
}
