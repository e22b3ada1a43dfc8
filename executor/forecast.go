package executor

import (
	"math"
	"time"

	"github.com/disdel/disdel"
)

// forecast is the whole job: start-up, compute, aggregation, evaluation, what lies between them, and waves where the
// platform does not hold all train actions at once. One case in ten lies outside the interval.
func (t *timer) forecast() {
	p, train := t.in.Plan, t.all[disdel.TaskTrain]
	rounds := float64(max(1, p.Rounds))
	legs := float64(max(1, t.out.Legs))
	between, outside := t.gaps()
	waves := 1.0
	if p.Parallel > 0 {
		waves = math.Ceil(float64(p.Workers) / float64(p.Parallel))
	}
	rows := train.each * t.rows()
	started := train.cold*legs + train.warm*legs*(rounds-1)
	aggregate := t.aggregations(rounds)
	evaluate := t.evaluations(int(rounds))
	seconds := waves*(started+rows) + aggregate + evaluate + rounds*between
	t.because("forecast: train actions in %s: starts %v, compute %v; aggregation %v, evaluation %v, between %v",
		plural(int(waves), "wave"), round(started), round(rows), round(aggregate), round(evaluate), round(rounds*between))
	if least := t.quota(rounds * legs); least > seconds {
		t.because("forecast: the platform's %d invocations a minute make it %v", p.Platform.PerMinute, round(least))
		seconds = least
	}
	s := train.whole
	width := s.factor(s.jobs, oneInTwenty)
	held := Held(p)
	t.out.Forecast = &disdel.Forecast{
		Duration: disdel.Interval[disdel.Millis]{
			Low: millisOf(seconds/width + outside), Likely: millisOf(seconds + outside), High: millisOf(seconds*width + outside),
		},
		Cost:   disdel.Interval[float64]{Low: seconds / width * held, Likely: seconds * held, High: seconds * width * held},
		Source: train.group.source, Samples: s.samples,
	}
}

// rows is how many rows the largest shard's worker trains in the whole job.
func (t *timer) rows() float64 {
	p := t.in.Plan
	shard := units(disdel.Plan{Workers: p.Workers, Shards: p.Shards}, 0, t.in.Data, disdel.TaskTrain)
	return float64(shard) * float64(max(1, t.in.Job.Training.Epochs))
}

// aggregations is the time of all levels of all rounds: levels wait for each other, clusters of one level do not. A task that
// nothing is known of takes at least a train action's start-up.
func (t *timer) aggregations(rounds float64) (seconds float64) {
	k, ok := t.all[disdel.TaskAggregate]
	if !ok {
		train := t.all[disdel.TaskTrain]
		k = known{cold: train.cold, warm: train.warm}
	}
	for _, l := range t.in.Plan.Levels {
		most := 0
		for _, c := range l.Clusters {
			most = max(most, len(c))
		}
		seconds += k.cold + k.warm*(rounds-1) + rounds*k.each*float64(most)
	}
	return seconds
}

// evaluations is the time of the evaluations of the job; there is one at the end at least.
func (t *timer) evaluations(rounds int) float64 {
	p := t.in.Plan
	if p.HeldOut == 0 {
		return 0
	}
	n := 1
	if every := t.in.Job.Training.ValidateEvery; every > 0 {
		n = max(1, (rounds+every-1)/every)
	}
	k, ok := t.all[disdel.TaskEvaluate]
	if !ok { // forwards alone is a third of a training step
		train := t.all[disdel.TaskTrain]
		k = known{cold: train.cold, warm: train.warm, each: train.each / 3}
	}
	return k.cold + k.warm*float64(n-1) + float64(n)*k.each*float64(p.HeldOut)
}

// quota is the least time that the platform's invocations a minute allow for all of them, s.
func (t *timer) quota(trained float64) float64 {
	p := t.in.Plan
	if p.Platform.PerMinute <= 0 {
		return 0
	}
	n := trained * float64(p.Workers)
	for _, l := range p.Levels {
		n += float64(max(1, p.Rounds) * len(l.Clusters))
	}
	return 60 * math.Floor(math.Max(0, n-1)/float64(p.Platform.PerMinute))
}

// gaps are what earlier jobs took beside their activations, s: in each round (invoking, polling, cold containers) and outside
// of the rounds (package, actions, model).
func (t *timer) gaps() (between, outside float64) {
	var rounds, jobs float64
	for i := range t.in.Past {
		r := &t.in.Past[i]
		if r.Status != disdel.StatusSucceeded || len(r.Rounds) == 0 || !sameNetwork(t.in, r) || !sameData(t.in, r) {
			continue
		}
		rest := r.Phases.Total.Seconds()
		for _, round := range r.Rounds {
			between += max(0, round.Duration.Seconds()-busy(r, round.Round))
			rest -= round.Duration.Seconds()
			rounds++
		}
		outside += max(0, rest)
		jobs++
	}
	if jobs == 0 {
		return 0, 0
	}
	return between / rounds, outside / jobs
}

// busy is the time of a round in which an activation of it ran, s: the sum over its stages, which follow each other.
func busy(r *disdel.Record, round int) (seconds float64) {
	type stage struct {
		task  disdel.Task
		level int
	}
	first, last := map[stage]time.Time{}, map[stage]time.Time{}
	for _, a := range r.Activations {
		if a.Round != round || a.Start.IsZero() {
			continue
		}
		s := stage{a.Task, a.Level}
		if was, ok := first[s]; !ok || a.Start.Before(was) {
			first[s] = a.Start
		}
		if a.End.After(last[s]) {
			last[s] = a.End
		}
	}
	for s := range first {
		seconds += last[s].Sub(first[s]).Seconds()
	}
	return seconds
}

// Held is the memory that DiSDeL's Eq. 6 sums for a plan, in GB: every train and aggregation action once.
func Held(p disdel.Plan) float64 {
	var sum disdel.Bytes
	for _, a := range p.Actions {
		n := 0
		switch a.Task {
		case disdel.TaskTrain:
			n = p.Workers
		case disdel.TaskAggregate:
			for _, l := range p.Levels {
				n += len(l.Clusters)
			}
		}
		sum += disdel.Bytes(n) * a.Limits.Memory
	}
	return float64(sum) / float64(disdel.GB)
}

// historyWeight is how many of the job's own rounds the forecast that it started with counts for, by source: what was
// measured on other jobs weighs less.
var historyWeight = map[string]float64{"history": 2, "similar jobs": 0.5, "probe": 1}

// Remaining forecasts what is left of a running job from its own rounds so far, blended with the forecast of its plan. elapsed
// is the time since it was submitted. Before the first round has ended it is the plan's forecast less what has passed; nil
// where nothing is known. It is pure.
func Remaining(plan disdel.Plan, rounds []disdel.Round, done []disdel.Activation, elapsed disdel.Millis) *disdel.Forecast {
	left := plan.Rounds - len(rounds)
	if len(rounds) == 0 {
		return beforeFirst(plan.Forecast, elapsed)
	}
	var own []measured
	spent := 0.0
	for i, r := range rounds {
		spent += r.Duration.Seconds()
		if i > 0 || len(rounds) < 3 { // the first starts cold; once there are others, it tells nothing of what is left
			own = append(own, measured{"this job", r.Duration.Seconds()})
		}
	}
	s := spreadOf(own, groups[0].prior)
	each, weight := s.likely, float64(len(own))
	if f := plan.Forecast; f != nil && plan.Rounds > 0 {
		w := historyWeight[f.Source]
		planned := f.Duration.Likely.Seconds() / float64(plan.Rounds)
		each = (weight*each + w*planned) / (weight + w)
	}
	since := min(max(0, elapsed.Seconds()-spent), 0.9*each)
	if left <= 0 {
		left, since = 0, 0
	}
	likely := max(0, float64(left)*each-since)
	// Rounds of one job share their machine: their mean is the better known the more of them were measured, and what single
	// rounds are off by evens out over those that are left.
	sigma := s.sigma * math.Sqrt(1/weight+1/math.Max(1, float64(left)))
	width := math.Exp(student(oneInTwenty, priorWeight+weight-1) * sigma)
	held := max(Held(plan), heldBy(done))
	return &disdel.Forecast{
		Duration: disdel.Interval[disdel.Millis]{Low: millisOf(likely / width), Likely: millisOf(likely), High: millisOf(likely * width)},
		Cost:     disdel.Interval[float64]{Low: likely / width * held, Likely: likely * held, High: likely * width * held},
		Source:   "this job", Samples: len(done),
	}
}

// beforeFirst is the plan's forecast less the time that has passed.
func beforeFirst(f *disdel.Forecast, elapsed disdel.Millis) *disdel.Forecast {
	if f == nil {
		return nil
	}
	out := *f
	for _, v := range []struct {
		time *disdel.Millis
		cost *float64
	}{{&out.Duration.Low, &out.Cost.Low}, {&out.Duration.Likely, &out.Cost.Likely}, {&out.Duration.High, &out.Cost.High}} {
		was := *v.time
		*v.time = max(0, was-elapsed)
		if was > 0 {
			*v.cost *= float64(*v.time) / float64(was)
		}
	}
	return &out
}

// heldBy is Eq. 6's memory as the activations so far had it: limits may have been raised since the plan was made.
func heldBy(done []disdel.Activation) float64 {
	type slot struct {
		task          disdel.Task
		level, member int
	}
	held, sum := map[slot]disdel.Bytes{}, disdel.Bytes(0)
	for _, a := range done {
		if a.Task == disdel.TaskEvaluate {
			continue
		}
		s := slot{a.Task, a.Level, a.Member}
		sum += max(0, a.Limits.Memory-held[s])
		held[s] = max(held[s], a.Limits.Memory)
	}
	return float64(sum) / float64(disdel.GB)
}
