package estimator

import (
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// parts is what a job's duration is made of, s.
type parts struct {
	waves     float64 // in which train actions run that the platform does not hold all at once
	started   float64 // start-ups of train actions
	rows      float64 // computing
	aggregate float64
	evaluate  float64
	between   float64 // invoking, polling, cold containers: what rounds take beside their activations
	outside   float64 // package, actions, model: what a job takes beside its rounds
}

func (p parts) total() float64 {
	return p.waves*(p.started+p.rows) + p.aggregate + p.evaluate + p.between + p.outside
}

// sum is a job's parts by what is known of its tasks, in as many legs a round.
func (w *pool) sum(in TimingInput, legs int) parts {
	all := w.known(in)
	p, train := in.Plan, all[disdel.TaskTrain]
	rounds := float64(max(1, p.Rounds))
	pieces := float64(max(1, legs)) * rounds
	out := parts{waves: 1, rows: train.each * rowsOf(in), started: train.cold + train.warm*(pieces-1)}
	if p.Parallel > 0 {
		out.waves = math.Ceil(float64(p.Workers) / float64(p.Parallel))
	}
	out.aggregate = aggregations(p, all, rounds)
	out.evaluate = evaluations(in, all, int(rounds))
	between, outside := w.gaps()
	busy := in.slowdown(disdel.TaskAggregate)
	out.between, out.outside = rounds*between*busy, outside*busy
	return out
}

// use is the cost by use of a job by what is known of its tasks, GB-s: every action's memory for as long as it runs.
// What waits for room, or for the others, holds nothing.
func (w *pool) use(in TimingInput, legs int) (gbs float64) {
	all := w.known(in)
	p, rounds := in.Plan, float64(max(1, in.Plan.Rounds))
	train, updates := all[disdel.TaskTrain], 0
	for _, l := range p.Levels {
		for _, c := range l.Clusters {
			updates += len(c)
		}
	}
	aggregate, ok := all[disdel.TaskAggregate]
	if !ok {
		aggregate = known{cold: train.cold, warm: train.warm}
	}
	pieces := float64(max(1, legs)) * rounds
	workers, clusters := float64(p.Workers), float64(actions(p, disdel.TaskAggregate))
	seconds := map[disdel.Task]float64{
		disdel.TaskTrain:     workers*(train.cold+train.warm*(pieces-1)) + train.each*allRows(in),
		disdel.TaskAggregate: clusters*(aggregate.cold+aggregate.warm*(rounds-1)) + rounds*aggregate.each*float64(updates),
		disdel.TaskEvaluate:  evaluations(in, all, int(rounds)),
	}
	for _, a := range p.Actions {
		gbs += seconds[a.Task] * a.Limits.Memory.Gigabytes()
	}
	return gbs
}

// allRows is how many rows all workers train in the whole job.
func allRows(in TimingInput) (rows float64) {
	for _, s := range in.Plan.Shards {
		rows += float64(s.Len())
	}
	if rows == 0 {
		return rowsOf(in) * float64(in.Plan.Workers)
	}
	return rows * float64(max(1, in.Job.Training.Epochs))
}

// rowsOf is how many rows the largest shard's worker trains in the whole job.
func rowsOf(in TimingInput) float64 {
	p := in.Plan
	shard := units(disdel.Plan{Workers: p.Workers, Shards: p.Shards}, 0, in.Data, disdel.TaskTrain)
	return float64(shard) * float64(max(1, in.Job.Training.Epochs))
}

// aggregations is the time of all levels of all rounds: levels wait for each other, clusters of one level do not. A
// task that nothing is known of takes at least a train action's start-up.
func aggregations(p disdel.Plan, all map[disdel.Task]known, rounds float64) (seconds float64) {
	k, ok := all[disdel.TaskAggregate]
	if !ok {
		train := all[disdel.TaskTrain]
		k = known{cold: train.cold, warm: train.warm}
	}
	for _, l := range p.Levels {
		most := 0
		for _, c := range l.Clusters {
			most = max(most, len(c))
		}
		seconds += k.cold + k.warm*(rounds-1) + rounds*k.each*float64(most)
	}
	return seconds
}

// evaluations is the time of the evaluations of the job; there is one at the end at least.
func evaluations(in TimingInput, all map[disdel.Task]known, rounds int) float64 {
	p := in.Plan
	if p.HeldOut == 0 {
		return 0
	}
	n := 1
	if every := in.Job.Training.ValidateEvery; every > 0 {
		n = max(1, (rounds+every-1)/every)
	}
	k, ok := all[disdel.TaskEvaluate]
	if !ok { // forwards alone is a third of a training step
		train := all[disdel.TaskTrain]
		k = known{cold: train.cold, warm: train.warm, each: train.each / 3}
	}
	return k.cold + k.warm*float64(n-1) + float64(n)*k.each*float64(p.HeldOut)
}

// gaps are what the pool's jobs took beside their activations on a quiet machine, s, in the median of the jobs: in each
// round and outside of the rounds.
func (w *pool) gaps() (between, outside float64) {
	if w.gapsKnown {
		return w.between, w.outside
	}
	var rounds, rests []float64
	for _, r := range w.jobs {
		if r.Status != disdel.StatusSucceeded || len(r.Rounds) == 0 || r.Resumes > 0 {
			continue
		}
		busy := recordSlowdown(r, disdel.TaskAggregate)
		ran := busyByRound(r)
		rest, sum, counted := r.Phases.Total.Seconds(), 0.0, 0.0
		for _, round := range r.Rounds {
			rest -= round.Duration.Seconds()
			if took := ran[round.Round]; took > 0 { // a long job's record leaves activations out
				sum += max(0, round.Duration.Seconds()-took)
				counted++
			}
		}
		if counted > 0 {
			rounds = append(rounds, sum/counted/busy)
		}
		rests = append(rests, max(0, rest)/busy)
	}
	w.between, w.outside, w.gapsKnown = middle(rounds), middle(rests), true
	return w.between, w.outside
}

// middle is the median of v, 0 of nothing.
func middle(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// busyByRound is the time of each round in which an activation of it ran, s: the sum over its stages, which follow each
// other.
func busyByRound(r *disdel.Record) map[int]float64 {
	type stage struct {
		task         disdel.Task
		round, level int
	}
	type span struct{ first, last time.Time }
	spans := map[stage]span{}
	for _, a := range r.Activations {
		if a.Start.IsZero() {
			continue
		}
		s := stage{a.Task, a.Round, a.Level}
		was, ok := spans[s]
		if !ok || a.Start.Before(was.first) {
			was.first = a.Start
		}
		if a.End.After(was.last) {
			was.last = a.End
		}
		spans[s] = was
	}
	out := map[int]float64{}
	for s, v := range spans {
		out[s.round] += v.last.Sub(v.first).Seconds()
	}
	return out
}
