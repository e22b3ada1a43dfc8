package estimator

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// forecast is the whole job: the parts that its plan adds up to, corrected by how far the same sum was from what
// earlier jobs of this network and data took. One case in ten lies outside the interval.
func (t *timer) forecast() {
	p := t.in.Plan
	pool := t.pool()
	whole := pool.sum(t.in, t.out.Legs)
	t.because("forecast: train actions in %s: starts %v, compute %v; aggregation %v, evaluation %v, between %v",
		plural(int(whole.waves), "wave"), round(whole.started), round(whole.rows), round(whole.aggregate),
		round(whole.evaluate), round(whole.between))
	c := pool.correction(t.in, whole.total())
	seconds := whole.total() * c.factor
	if c.jobs > 0 {
		t.because("forecast: x %.2f by what %s took", c.factor, plural(c.jobs, "earlier job"))
	}
	if least := t.quota(float64(max(1, p.Rounds)) * float64(max(1, t.out.Legs))); least > seconds {
		t.because("forecast: the platform's %d invocations a minute make it %v", p.Platform.PerMinute, round(least))
		seconds = least
	}
	held := committed(p)
	low, high := seconds/c.low, seconds*c.high
	use := pool.use(t.in, t.out.Legs)
	by := pool.compare(t.in, use, gauge{(*disdel.Record).ByUse, pool.use, whole.total()})
	use *= by.factor
	quiet := t.in
	quiet.slow = alone(p)
	lowUse, highUse := use/by.low, use*by.high
	if stop := t.in.Job.Training.Stop(); stop != nil {
		low /= float64(max(1, p.Rounds))
		lowUse /= float64(max(1, p.Rounds))
		t.because("forecast: with all epochs; training may stop before")
	}
	t.out.Forecast = &disdel.Forecast{
		Duration: disdel.Interval[disdel.Millis]{Low: millisOf(low), Likely: millisOf(seconds), High: millisOf(high)},
		Cost:     disdel.Interval[float64]{Low: low * held, Likely: seconds * held, High: high * held},
		Used:     disdel.Interval[float64]{Low: lowUse, Likely: use, High: highUse},
		Quiet:    min(pool.use(quiet, t.out.Legs)*by.factor, pool.cheapestTwin(t.in)),
		Source:   t.all[disdel.TaskTrain].group.source, Samples: t.all[disdel.TaskTrain].whole.samples,
		Jobs: c.jobs, Measured: c.measured, Note: t.busyNote(whole.total() / pool.sum(quiet, t.out.Legs).total()),
	}
	t.out.Forecast.Goal = t.goal(takes{seconds, c.width(), held, use / max(seconds, leastDuration)})
}

// leastSlower is the least slowdown that is worth a word.
const leastSlower = 1.1

// busyNote says that other programs use the machine and by how much they slow the job down, "" where they do not.
func (t *timer) busyNote(slower float64) string {
	p := t.in.Plan.Platform
	if p.Processors == 0 || p.Busy < 1 || slower < leastSlower {
		return ""
	}
	return fmt.Sprintf("the machine is busy: %.0f threads of other programs want its %s. The job takes about %.1f times "+
		"as long as without them", p.Busy, plural(p.Processors, "processor"), slower)
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

// committed is the memory that DiSDeL's Eq. 6 sums for a plan, in GB: every train and aggregation action once.
func committed(p disdel.Plan) float64 {
	var sum disdel.Bytes
	for _, a := range p.Actions {
		sum += disdel.Bytes(actions(p, a.Task)) * a.Limits.Memory
	}
	return sum.Gigabytes()
}

// actions is how many actions of a task Eq. 6 counts for a plan.
func actions(p disdel.Plan, task disdel.Task) (n int) {
	switch task {
	case disdel.TaskTrain:
		return p.Workers
	case disdel.TaskAggregate:
		for _, l := range p.Levels {
			n += len(l.Clusters)
		}
	}
	return n
}

// UsedAhead is what is left of a running job by use, where so much time is: as much a second as its rounds so far.
func UsedAhead(r *disdel.Record, left *disdel.Forecast) disdel.Interval[float64] {
	var took disdel.Millis
	for _, round := range r.Rounds {
		took += round.Duration
	}
	if took <= 0 {
		return disdel.Interval[float64]{}
	}
	each, d := r.ByUse()/took.Seconds(), left.Duration
	return disdel.Interval[float64]{
		Low: each * d.Low.Seconds(), Likely: each * d.Likely.Seconds(), High: each * d.High.Seconds(),
	}
}

// historyWeight is how many of the job's own rounds the forecast that it started with counts for, by source: what was
// measured on other jobs weighs less.
var historyWeight = map[disdel.Source]float64{
	disdel.SourceHistory: 2, disdel.SourceSimilar: 0.5, disdel.SourceProbe: 1,
}

// Remaining forecasts what is left of a running job from its own rounds so far, blended with the forecast of its plan.
// elapsed is the time since it was submitted. Before the first round has ended it is the plan's forecast less what has
// passed; nil where nothing is known. It is pure.
func Remaining(plan disdel.Plan, rounds []disdel.Round, done []disdel.Activation,
	elapsed disdel.Millis,
) *disdel.Forecast {
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
	s := spreadOf(own, timeGroups[0].prior)
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
	// Rounds of one job share their machine: their mean is the better known the more of them were measured, and what
	// single rounds are off by evens out over those that are left.
	sigma := s.sigma * math.Sqrt(1/weight+1/math.Max(1, float64(left)))
	width := math.Exp(student(oneInTwenty, priorWeight+weight-1) * sigma)
	held := max(committed(plan), heldBy(done))
	return &disdel.Forecast{
		Duration: disdel.Interval[disdel.Millis]{
			Low: millisOf(likely / width), Likely: millisOf(likely),
			High: millisOf(likely * width),
		},
		Cost:   disdel.Interval[float64]{Low: likely / width * held, Likely: likely * held, High: likely * width * held},
		Source: disdel.SourceOwn, Samples: len(done),
	}
}

// beforeFirst is the plan's forecast less the time that has passed.
func beforeFirst(f *disdel.Forecast, elapsed disdel.Millis) *disdel.Forecast {
	if f == nil {
		return nil
	}
	out := *f
	for _, v := range []struct {
		time       *disdel.Millis
		cost, used *float64
	}{
		{&out.Duration.Low, &out.Cost.Low, &out.Used.Low},
		{&out.Duration.Likely, &out.Cost.Likely, &out.Used.Likely},
		{&out.Duration.High, &out.Cost.High, &out.Used.High},
	} {
		was := *v.time
		*v.time = max(0, was-elapsed)
		if was > 0 {
			*v.cost *= float64(*v.time) / float64(was)
			*v.used *= float64(*v.time) / float64(was)
		}
	}
	return &out
}

// heldBy is Eq. 6's memory as the activations so far had it: limits may have been raised since the plan was made.
func heldBy(done []disdel.Activation) float64 {
	held, sum := map[disdel.Slot]disdel.Bytes{}, disdel.Bytes(0)
	for _, a := range done {
		if a.Task == disdel.TaskEvaluate {
			continue
		}
		s := a.Slot()
		sum += max(0, a.Limits.Memory-held[s])
		held[s] = max(held[s], a.Limits.Memory)
	}
	return sum.Gigabytes()
}
