package estimator

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// forecast is the forecast of the whole job: the sum of the parts of its plan, corrected by how far the same sum was
// from the duration of earlier jobs of this network and data. One case in ten is outside the interval.
func (t *timer) forecast() {
	p := t.in.Plan
	pool := t.pool()
	total := pool.sum(t.in, t.out.Legs)
	t.because("forecast: train actions in %s: starts %v, compute %v; aggregation %v, evaluation %v, between %v",
		disdel.Counted(int(total.waves), "wave"), round(total.started), round(total.rows), round(total.aggregate),
		round(total.evaluate), round(total.between))
	c := pool.correction(t.in, total.total())
	seconds := total.total() * c.factor
	if c.jobs > 0 {
		t.because("forecast: x %.2f by what %s took", c.factor, disdel.Counted(c.jobs, "earlier job"))
	}
	if minimum := t.quota(float64(max(1, p.Rounds)) * float64(max(1, t.out.Legs))); minimum > seconds {
		t.because("forecast: the platform's %d invocations a minute make it %v", p.Platform.PerMinute, round(minimum))
		seconds = minimum
	}
	held := committed(p)
	low, high := seconds/c.low, seconds*c.high
	use := pool.use(t.in, t.out.Legs)
	by := pool.compare(t.in, use, gauge{(*disdel.Record).MeteredCost, pool.use, total.total()})
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
		Source:   t.all[disdel.TaskTrain].group.source, Samples: t.all[disdel.TaskTrain].fullTime.samples,
		Jobs: c.jobs, Measured: c.measured, Note: t.busyNote(total.total() / pool.sum(quiet, t.out.Legs).total()),
	}
	t.out.Forecast.Goal = t.goal(jobCost{seconds, c.width(), held, use / max(seconds, leastDuration)})
}

// leastSlower is the least slowdown that a note mentions.
const leastSlower = 1.1

// busyNote says by how much other programs on the machine slow the job down; "" if they do not.
func (t *timer) busyNote(slower float64) string {
	p := t.in.Plan.Platform
	if p.Processors == 0 || p.Busy < 1 || slower < leastSlower {
		return ""
	}
	return fmt.Sprintf("the machine is busy: %.0f threads of other programs want its %s. The job takes about %.1f times "+
		"as long as without them", p.Busy, disdel.Counted(p.Processors, "processor"), slower)
}

// quota is the least time, in seconds, that the platform's limit of invocations a minute allows for all invocations.
// trained is the number of invocations of each worker.
func (t *timer) quota(trained float64) float64 {
	p := t.in.Plan
	if p.Platform.PerMinute <= 0 {
		return 0
	}
	n := trained*float64(p.Workers) + float64(max(1, p.Rounds)*p.ActionCount(disdel.TaskAggregate))
	return 60 * math.Floor(math.Max(0, n-1)/float64(p.Platform.PerMinute))
}

// committed is the memory that DiSDeL's Eq. 6 sums for a plan, in GB: every train and aggregate action once.
func committed(p disdel.Plan) float64 {
	var sum disdel.Bytes
	for _, a := range p.Actions {
		sum += disdel.Bytes(p.ActionCount(a.Task)) * a.Limits.Memory
	}
	return sum.Gigabytes()
}

// RemainingUse is the cost by use of the rest of a running job, in GB-s: as much a second as its rounds so far.
func RemainingUse(r *disdel.Record, remaining *disdel.Forecast) disdel.Interval[float64] {
	var took disdel.Millis
	for _, round := range r.Rounds {
		took += round.Duration
	}
	if took <= 0 {
		return disdel.Interval[float64]{}
	}
	each, d := r.MeteredCost()/took.Seconds(), remaining.Duration
	return disdel.Interval[float64]{
		Low: each * d.Low.Seconds(), Likely: each * d.Likely.Seconds(), High: each * d.High.Seconds(),
	}
}

// historyWeight is how many of the job's own rounds its first forecast counts for, by source.
var historyWeight = map[disdel.Source]float64{
	disdel.SourceHistory: 2, disdel.SourceSimilar: 0.5, disdel.SourceProbe: 1,
}

// Remaining forecasts the rest of a running job. It blends the job's own rounds so far with the forecast of its plan.
// elapsed is the time since it was submitted. Before the first round has ended it is the plan's forecast minus
// elapsed. It is nil if nothing is known.
func Remaining(plan disdel.Plan, rounds []disdel.Round, done []disdel.Activation,
	elapsed disdel.Millis,
) *disdel.Forecast {
	remaining := plan.Rounds - len(rounds)
	if len(rounds) == 0 {
		return beforeFirst(plan.Forecast, elapsed)
	}
	var own []measured
	spent := 0.0
	for i, r := range rounds {
		spent += r.Duration.Seconds()
		if i > 0 || len(rounds) < 3 { // the first one starts cold: with others, it does not count
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
	if remaining <= 0 {
		remaining, since = 0, 0
	}
	likely := max(0, float64(remaining)*each-since)
	// Rounds of one job share their machine: more rounds make the mean more certain, and errors of single rounds even
	// out over the rest.
	sigma := s.sigma * math.Sqrt(1/weight+1/math.Max(1, float64(remaining)))
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

// beforeFirst is the plan's forecast minus the time that has passed.
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

// heldBy is Eq. 6's memory by the activations so far: limits may have been raised since the plan was made.
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

// parts are the parts of a job's duration, in seconds.
type parts struct {
	waves     float64 // of train actions, if the platform does not run all at once
	started   float64 // start-ups of train actions
	rows      float64 // computing
	aggregate float64
	evaluate  float64
	between   float64 // time of rounds without activations: invoking, polling, cold containers
	outside   float64 // time outside of rounds: package, actions, model
}

func (p parts) total() float64 {
	return p.waves*(p.started+p.rows) + p.aggregate + p.evaluate + p.between + p.outside
}

// sum is the parts of a job whose rounds take so many legs.
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

// use is the cost by use of a job, in GB-s: every action's memory for as long as it runs. Waiting for room or for
// other actions costs nothing.
func (w *pool) use(in TimingInput, legs int) (gbs float64) {
	all := w.known(in)
	p, rounds := in.Plan, float64(max(1, in.Plan.Rounds))
	train, updates := all[disdel.TaskTrain], 0.0
	for _, l := range p.Levels {
		for c := range l.Clusters {
			updates += l.Updates(c)
		}
	}
	aggregate, ok := all[disdel.TaskAggregate]
	if !ok {
		aggregate = known{cold: train.cold, warm: train.warm}
	}
	pieces := float64(max(1, legs)) * rounds
	workers, clusters := float64(p.Workers), float64(p.ActionCount(disdel.TaskAggregate))
	seconds := map[disdel.Task]float64{
		disdel.TaskTrain:     workers*(train.cold+train.warm*(pieces-1)) + train.each*allRows(in),
		disdel.TaskAggregate: clusters*(aggregate.cold+aggregate.warm*(rounds-1)) + rounds*aggregate.each*updates,
		disdel.TaskEvaluate:  evaluations(in, all, int(rounds)),
	}
	for _, a := range p.Actions {
		gbs += seconds[a.Task] * a.Limits.Memory.Gigabytes()
	}
	return gbs
}

// allRows is the number of rows that all workers train in the whole job.
func allRows(in TimingInput) (rows float64) {
	for _, s := range in.Plan.Shards {
		rows += float64(s.Len())
	}
	if rows == 0 {
		return rowsOf(in) * float64(in.Plan.Workers)
	}
	return rows * float64(max(1, in.Job.Training.Epochs))
}

// rowsOf is the number of rows that the worker of the largest shard trains in the whole job.
func rowsOf(in TimingInput) float64 {
	p := in.Plan
	shard := units(disdel.Plan{Workers: p.Workers, Shards: p.Shards}, 0, in.Data, disdel.TaskTrain)
	return float64(shard) * float64(max(1, in.Job.Training.Epochs))
}

// aggregations is the time of all levels of all rounds. Levels run one after another, clusters of a level at once. A
// task without measurements takes the start-up of a train action.
func aggregations(p disdel.Plan, all map[disdel.Task]known, rounds float64) (seconds float64) {
	k, ok := all[disdel.TaskAggregate]
	if !ok {
		train := all[disdel.TaskTrain]
		k = known{cold: train.cold, warm: train.warm}
	}
	for _, l := range p.Levels {
		maximum := 0.0
		for c := range l.Clusters {
			maximum = max(maximum, l.Updates(c))
		}
		seconds += k.cold + k.warm*(rounds-1) + rounds*k.each*maximum
	}
	return seconds
}

// evaluations is the time of the job's evaluations; at least one, at the end.
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
	if !ok { // the forward pass is a third of a training step
		train := all[disdel.TaskTrain]
		k = known{cold: train.cold, warm: train.warm, each: train.each / 3}
	}
	return k.cold + k.warm*float64(n-1) + float64(n)*k.each*float64(p.HeldOut)
}

// gaps are the median times of the pool's jobs without activations, on a quiet machine, in seconds: in each round,
// and outside of the rounds.
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

// busyByRound is the time of each round in which an activation ran, in seconds: the sum over its stages, which run
// one after another.
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

// correction is the ratio of the measured duration of whole jobs to the sum of their parts, and its uncertainty.
type correction struct {
	factor float64 // the likely duration over the sum
	// The interval is from the likely duration over low to the likely duration times high.
	low, high float64
	jobs      int  // whole jobs that it uses
	measured  bool // some of them have exactly the plan's shape
}

// Weights of the correction, in units of a job of exactly the plan's shape.
const (
	ownWeight    = 20.0 // of such a job, against one of half the workers or of twice the time
	noCorrection = 0.3  // of the uncorrected sum
	fadedAfter   = 12.0 // newer jobs until a job counts half
)

// Additions to the measured spread of the logarithm.
const (
	leastJitter  = 0.08 // s: waits of a job's processes that do not depend on the work
	strangeDoubt = 0.05 // for each doubling of the nearest earlier job's time
	shapeDoubt   = 0.12 // for each doubling between the nearest earlier job's shape and the plan's
)

// The prior spread of whole jobs of one network and data: the deviation of the logarithm, and how many jobs it counts
// for. Both come from the forecasts of jobs that `make bench-estimator` draws.
const (
	wholePrior  = 0.12
	wholeWeight = 10
)

// gauge is a measure of whole jobs: its value in a record, and the value that a pool expects.
type gauge struct {
	took     func(*disdel.Record) float64
	expected func(own TimingInput, legs int) float64
	seconds  float64 // duration of the coming job
}

// correction is the correction of a job's duration, given the sum of its parts.
func (w *pool) correction(in TimingInput, sum float64) correction {
	return w.compare(in, sum, gauge{
		func(r *disdel.Record) float64 { return r.Phases.Total.Seconds() },
		func(own TimingInput, legs int) float64 { return w.sum(own, legs).total() },
		sum,
	})
}

// compare compares every whole job of the pool with the sum of its own plan's parts. Nearer jobs weigh more: by
// workers, batch, threads, length, and other programs' load (Shepard's weights). The spread blends the group's prior
// with the measurements, by Student's t.
func (w *pool) compare(in TimingInput, sum float64, by gauge) correction {
	c := correction{factor: 1}
	var logs, weights []float64
	nearest, nearestShape := math.Inf(1), math.Inf(1)
	for i, r := range w.jobs {
		own, ok := asPlanned(in, r)
		if !ok {
			continue
		}
		expected, took := by.expected(own, r.Plan.Legs), by.took(r)
		if expected <= 0 || sum <= 0 || took <= 0 {
			continue
		}
		length := math.Abs(math.Log2(expected / sum))
		shape := farOff(in, own)
		load := math.Abs(math.Log2(in.slowdown(disdel.TaskTrain) / own.slowdown(disdel.TaskTrain)))
		d := shape + length/4 + load
		logs = append(logs, math.Log(took/expected))
		weights = append(weights, math.Exp2(-float64(i)/fadedAfter)/(1/ownWeight+d*d))
		nearest, nearestShape = min(nearest, length), min(nearestShape, shape)
		c.measured = c.measured || shape == 0 && sameData(in, r)
	}
	c.jobs = len(logs)
	mean, variance, count := weighed(logs, weights)
	c.factor = math.Exp(mean)
	prior, weight := w.group.prior, float64(priorWeight)
	if c.jobs > 0 {
		prior, weight = wholePrior, wholeWeight
	}
	sigma := math.Sqrt((weight*prior*prior + count*variance) / (weight + count))
	sigma = math.Hypot(sigma, leastJitter/max(by.seconds*c.factor, leastDuration))
	if c.jobs > 0 {
		sigma = math.Hypot(sigma, math.Hypot(strangeDoubt*nearest, shapeDoubt*nearestShape))
	}
	count = max(1, count)
	off := student(oneInTwenty, weight+count-1) * sigma * math.Sqrt(1+1/count)
	c.low = min(mostFactor, math.Exp(math.Hypot(off, oneInTwenty*w.load.less)))
	c.high = min(mostFactor, math.Exp(math.Hypot(off, oneInTwenty*w.load.more)))
	return c
}

// width is one factor for both ends of the interval.
func (c correction) width() float64 { return math.Sqrt(c.low * c.high) }

// cheapestTwin is the least cost by use of an earlier job of the same plan; +Inf if there is none.
func (w *pool) cheapestTwin(in TimingInput) float64 {
	minimum := math.Inf(1)
	for _, r := range w.jobs {
		own, ok := asPlanned(in, r)
		if ok && farOff(in, own) == 0 && sameData(in, r) && r.Plan.Rounds == in.Plan.Rounds &&
			r.Job.Training.Epochs == in.Job.Training.Epochs && len(r.Rounds) == r.Plan.Rounds {
			minimum = min(minimum, r.MeteredCost())
		}
	}
	return minimum
}

// weighed is the weighted mean of logarithms, shrunk towards 0, their variance, and the number of equal samples they
// are worth (Kish's effective sample size).
func weighed(logs, weights []float64) (mean, variance, count float64) {
	var sum, squares, total float64
	for i, l := range logs {
		sum += weights[i]
		squares += weights[i] * weights[i]
		total += weights[i] * l
	}
	if sum == 0 {
		return 0, 0, 0
	}
	mean, count = total/sum, sum*sum/squares
	for i, l := range logs {
		variance += weights[i] * (l - mean) * (l - mean) / sum
	}
	if count > 1 {
		variance *= count / (count - 1)
	}
	return mean * sum / (sum + noCorrection), variance, count
}

// asPlanned is the input of a forecast of an earlier job, as far as the job ran. It is false if the job's duration is
// not that of one run of all its rounds under one plan.
func asPlanned(in TimingInput, r *disdel.Record) (TimingInput, bool) {
	if len(r.Stages) > 1 || r.Status != disdel.StatusSucceeded || r.Phases.Total <= 0 || r.Resumes > 0 ||
		len(r.Rounds) == 0 || r.Plan.Rounds == 0 {
		return in, false
	}
	own := TimingInput{Plan: r.Plan, Job: r.Job, Data: r.Data, Work: in.Work}
	own.slow, _ = slowdownsOf(r)
	if ran := len(r.Rounds); ran < r.Plan.Rounds { // stopped early
		own.Job.Training.Epochs = max(1, r.Job.Training.Epochs*ran/r.Plan.Rounds)
		own.Plan.Rounds = ran
	}
	return own, true
}

// farOff is the number of doublings between two jobs' shapes; 0: the same shape.
func farOff(a, b TimingInput) (d float64) {
	apart := func(x, y int) float64 {
		if x <= 0 || y <= 0 {
			return 0
		}
		return math.Abs(math.Log2(float64(x) / float64(y)))
	}
	d = apart(a.Plan.Workers, b.Plan.Workers) + apart(a.Plan.WorkerBatch(&a.Job), b.Plan.WorkerBatch(&b.Job)) +
		apart(a.Plan.Threads, b.Plan.Threads)
	if memory := apart(int(memoryOf(a.Plan).MB()), int(memoryOf(b.Plan).MB())); memory > math.Log2(1.25) {
		d += memory / 2
	}
	return d
}
