package estimator

import (
	"math"
	"reflect"
	"slices"

	"github.com/disdel/disdel"
)

// sample is one measured activation, brought to the size of the plan's: what it took whatever the rows, and for each
// row.
type timeSample struct {
	job   disdel.JobID
	cold  bool
	fixed float64 // s: init, reading the shard, the reference and the answer
	each  float64 // s for a row (train, evaluate) or an update (aggregate)
}

// group is how like the plan a past job is. Each has the spread to be expected of it before anything is measured.
type timeGroup struct {
	source disdel.Source
	prior  float64
	fits   func(in TimingInput, r *disdel.Record) bool
}

// groups go from the nearest to the farthest. Durations of the same work on the same machine vary by a seventh; what
// the last ones leave out (caches, threads that wait for each other, layers that are slow for their
// multiply-accumulates) by more.
var timeGroups = []timeGroup{
	{disdel.SourceHistory, 0.15, func(in TimingInput, r *disdel.Record) bool {
		return sameNetwork(in, r) && sameData(in, r) && sameShape(in, r)
	}},
	{disdel.SourceSimilar, 0.25, func(in TimingInput, r *disdel.Record) bool {
		return sameNetwork(in, r) && sameData(in, r)
	}},
	{disdel.SourceSimilar, 0.35, sameNetwork},
	{disdel.SourceProbe, 0.25, nil},
	{disdel.SourceSimilar, 0.7, func(TimingInput, *disdel.Record) bool { return true }},
}

// sameNetwork wants the same input too: the work of a layer goes with it.
func sameNetwork(in TimingInput, r *disdel.Record) bool {
	a, b := in.Job.Model, r.Job.Model
	return a.Name == b.Name && a.Custom == b.Custom && reflect.DeepEqual(a.Layers, b.Layers) &&
		reflect.DeepEqual(in.Data.Sample, r.Data.Sample)
}

func sameData(in TimingInput, r *disdel.Record) bool {
	return in.Data.Name == r.Data.Name && in.Data.Same(r.Data)
}

// sameShape is the same batch, workers, threads and memory, which on OpenWhisk gives the share of the processors.
// Memory a little different, as an estimate that learned makes it, counts as the same.
func sameShape(in TimingInput, r *disdel.Record) bool {
	a, b := memoryOf(in.Plan), memoryOf(r.Plan)
	return in.Plan.WorkerBatch(&in.Job) == r.Plan.WorkerBatch(&r.Job) && in.Plan.Workers == r.Plan.Workers &&
		(in.Plan.Threads == r.Plan.Threads || in.Plan.Threads == 0 || r.Plan.Threads == 0) && a*4 <= b*5 && b*4 <= a*5
}

func memoryOf(p disdel.Plan) disdel.Bytes {
	a, _ := p.Action(disdel.TaskTrain)
	return a.Limits.Memory
}

// scale brings a past job's parts to the size of the plan's.
type timeScale struct {
	work    float64 // multiply-accumulates of a sample; for an aggregation bytes of an update
	threads float64 // that compute
	crowd   float64 // processes that share a processor
	busy    float64 // times as long as alone that other programs make everything take
	units   int     // rows or updates of an activation of the plan
	near    bool    // the same network in the same shape
	load    float64 // bytes of a shard
	weights float64 // bytes of an update
}

// scaleOf tells false where the past job's work is not comparable.
func scaleOf(in TimingInput, r *disdel.Record, task disdel.Task) (timeScale, bool) {
	s := timeScale{work: 1, units: units(in.Plan, in.Plan.WorkerBatch(&in.Job), in.Data, task), near: sameNetwork(in, r) &&
		sameShape(in, r), threads: 1, crowd: 1, load: 1, weights: 1, busy: in.slowdown(task)}
	if now, then := shardBytes(in.Plan, in.Data), shardBytes(r.Plan, r.Data); now > 0 && then > 0 {
		s.load = max(now, leastLoad) / max(then, leastLoad)
	}
	if now, then := updateBytes(in.Plan), updateBytes(r.Plan); now > 0 && then > 0 {
		s.weights = max(now, leastMoved) / max(then, leastMoved)
	}
	if now, then := float64(in.Plan.Threads), float64(r.Plan.Threads); now > 0 && then > 0 {
		now, then = min(now, processors(in.Plan, task)), min(then, processors(r.Plan, task))
		s.threads = max(1, then/now) // fewer threads take longer; more of them help less than they should
	}
	s.crowd = max(1, min(1, processors(r.Plan, task))/min(1, processors(in.Plan, task)))
	then := workOf(r.Plan)
	switch {
	case sameNetwork(in, r):
	case in.Work > 0 && then > 0:
		s.work = float64(in.Work) / float64(then)
	default:
		return s, false
	}
	if task == disdel.TaskAggregate {
		s.work = s.weights
	}
	return s, true
}

// Floors of the sizes that times are scaled by: below them latency dominates, and time no longer goes with the bytes.
const (
	leastLoad  = float64(4 * disdel.MB) // of a shard
	leastMoved = float64(disdel.MB)     // of an update
)

// processors is how many each of a plan's actions has where they share known ones. Only train actions run side by side.
func processors(p disdel.Plan, task disdel.Task) float64 {
	if p.Platform.Processors == 0 || task != disdel.TaskTrain {
		return math.Inf(1)
	}
	side := max(1, p.Workers)
	if p.Parallel > 0 {
		side = min(side, p.Parallel)
	}
	return float64(p.Platform.Processors) / float64(side)
}

func shardBytes(p disdel.Plan, d disdel.DataInfo) float64 {
	return float64(d.Train) / float64(max(1, p.Workers)) * float64(d.SampleSize)
}

func updateBytes(p disdel.Plan) float64 {
	a, _ := p.Action(disdel.TaskAggregate)
	return float64(a.Estimate.Model)
}

// workOf is the multiply-accumulates of one sample forwards, by the layers of the plan's own estimate.
func workOf(p disdel.Plan) (macs int64) {
	a, _ := p.Action(disdel.TaskTrain)
	for _, l := range a.Estimate.Layers {
		macs += l.MACs
	}
	return macs
}

// units is how many rows or updates an activation of the plan has to do with at most; at least 1.
func units(p disdel.Plan, batch int, d disdel.DataInfo, task disdel.Task) int {
	n := 1
	switch task {
	case disdel.TaskTrain:
		shard := (d.Train + max(1, p.Workers) - 1) / max(1, p.Workers)
		if len(p.Shards) > 0 {
			shard = 0
		}
		for _, s := range p.Shards {
			shard = max(shard, s.Len())
		}
		if n = max(1, shard) * max(1, p.Epochs); p.Batches > 0 {
			n = min(n, p.Batches*max(1, batch))
		}
	case disdel.TaskEvaluate:
		n = p.HeldOut
	case disdel.TaskAggregate:
		for _, l := range p.Levels {
			for _, c := range l.Clusters {
				n = max(n, len(c))
			}
		}
	}
	return max(1, n)
}

// samplesOf are the measured activations of a task in a past job. Activations that ran out of time count where no other
// tells more: by their progress, else as twice what they had.
func samplesOf(in TimingInput, r *disdel.Record, task disdel.Task) []timeSample {
	by, ok := scaleOf(in, r, task)
	if !ok {
		return nil
	}
	var out, cut []timeSample
	for _, a := range thinned(r.Activations, task) {
		switch {
		case !by.tells(r, a):
		case task == disdel.TaskTrain && a.Outcome == disdel.OutcomeSuccess && a.Rows == 0 && len(a.Phases) > 0:
			// another activation had delivered this before: it trained nothing
		case a.Recovered != "": // its duration is that of a container that did not answer
		case a.Outcome == disdel.OutcomeTimeout:
			cut = append(cut, by.sample(r, a, unfinished(r, a)))
		case a.Outcome == disdel.OutcomeSuccess || a.Outcome == disdel.OutcomePaused && a.Rows > 0:
			out = append(out, by.sample(r, a, a.Duration.Seconds()))
		}
	}
	if len(out) == 0 {
		return cut
	}
	return out
}

// leastCompute is the least time to compute that says how fast rows or multiply-accumulates are, s: below it the first
// step's page faults and the batch's padding are what was measured.
const leastCompute = 0.02

// mostGrowth is how many times the rows of a job, of a few milliseconds, the plan may have before they say nothing of
// it.
const mostGrowth = 10

// tells is false where a few rows were computed, and the plan has many or another network: one job of five rows made
// every forecast absurd.
func (s timeScale) tells(r *disdel.Record, a disdel.Activation) bool {
	compute, known := a.Phases["compute"]
	if s.near || !known || a.Task == disdel.TaskAggregate || compute.Seconds() >= leastCompute {
		return true
	}
	return s.work == 1 && s.units <= mostGrowth*max(a.Rows, 1)
}

// mostActivations of one job are looked at for one task: evenly spread over the job, the first and the last among them.
const mostActivations = 48

// thinned is a job's activations of a task, so few that a hundred long jobs are looked through at once.
func thinned(all []disdel.Activation, task disdel.Task) []disdel.Activation {
	var of []disdel.Activation
	for _, a := range all {
		if a.Task == task {
			of = append(of, a)
		}
	}
	if len(of) <= mostActivations {
		return of
	}
	out := make([]disdel.Activation, mostActivations)
	for i := range out {
		out[i] = of[i*(len(of)-1)/(mostActivations-1)]
	}
	return out
}

func (s timeScale) sample(r *disdel.Record, a disdel.Activation, seconds float64) timeSample {
	n := a.Rows
	if n == 0 || a.Outcome == disdel.OutcomeTimeout {
		n = units(r.Plan, r.Plan.WorkerBatch(&r.Job), r.Data, a.Task)
	}
	if a.Task == disdel.TaskAggregate {
		n = members(r.Plan, a)
	}
	load, fetch, push := a.Phases["load"].Seconds(), a.Phases["fetch"].Seconds(), a.Phases["push"].Seconds()
	variable, known := a.Phases["compute"]
	grows := variable.Seconds()
	if a.Task == disdel.TaskAggregate {
		grows, fetch, push = grows+push, 0, 0
	}
	if !known {
		grows = max(0, seconds-a.InitTime.Seconds())
	}
	rest, busy := max(0, seconds-grows-load-fetch-push), s.busy/measuredSlowdown(r.Plan, &a)
	return timeSample{
		job: r.ID, cold: a.Cold, fixed: (rest + load*s.load + (fetch+push)*s.weights) * s.crowd * busy,
		each: grows / float64(max(1, n)) * s.work * s.threads * busy,
	}
}

func members(p disdel.Plan, a disdel.Activation) int {
	if a.Level < 1 || a.Level > len(p.Levels) || a.Member >= len(p.Levels[a.Level-1].Clusters) {
		return 1
	}
	return len(p.Levels[a.Level-1].Clusters[a.Member])
}

// unfinished is how long an activation would have taken that ran out of time, s.
func unfinished(r *disdel.Record, a disdel.Activation) float64 {
	if a.Task == disdel.TaskTrain {
		stage := r.StageOf(&a.Invocation)
		at := stage.Span(a.Round)
		a.Span = &disdel.Span{Epochs: max(1, r.Plan.Epochs), Epoch: at.Epoch}
	}
	if pace, ok := a.Pace(); ok && r.Plan.Batches == 0 {
		return pace.Ends.Seconds()
	}
	return math.Max(a.Duration.Seconds(), 0) * TimeoutFactor
}

// spread is what measured durations of one kind say of the next one. Durations of machines that others use too are
// skewed to the right, so that it works on their logarithms.
type spread struct {
	likely  float64 // geometric mean, s
	longest float64
	sigma   float64 // of the logarithm, between activations
	jobs    float64 // and between jobs: the spread of a whole job's duration
	count   int     // jobs behind it
	samples int     // activations behind it
}

// priorWeight is how many jobs a group's prior spread counts for: with one measured job the prior decides, with twenty
// the measurements.
const priorWeight = 4

// leastDuration keeps the logarithm of a duration that was measured as nothing finite, s.
const leastDuration = 1e-3

type measured struct {
	job     disdel.JobID
	seconds float64
}

// spreadOf needs at least one duration. prior is the spread of the logarithm to be expected before anything is
// measured.
func spreadOf(all []measured, prior float64) spread {
	var logs []float64
	byJob := map[disdel.JobID][]float64{}
	s := spread{samples: len(all)}
	for _, m := range all {
		l := math.Log(max(m.seconds, leastDuration))
		logs = append(logs, l)
		byJob[m.job] = append(byJob[m.job], l)
		s.longest = max(s.longest, m.seconds)
	}
	var jobs []float64
	for _, l := range byJob {
		m, _ := moments(l)
		jobs = append(jobs, m)
	}
	mean, variance := moments(logs)
	_, between := moments(jobs)
	s.likely, s.count = math.Exp(mean), len(jobs)
	s.sigma, s.jobs = s.blend(variance, prior), s.blend(between, prior)
	return s
}

// blend weighs a measured variance with the prior's.
func (s spread) blend(variance, prior float64) float64 {
	k := float64(s.count)
	return math.Sqrt((priorWeight*prior*prior + k*variance) / (priorWeight + k))
}

// factor is what the likely duration is to be multiplied with so that the next one is below in all but the tail of z
// normal deviations: Student's t, since the spread itself is only estimated, and activations of one job are no
// independent samples.
func (s spread) factor(sigma, z float64) float64 {
	k := float64(max(1, s.count))
	return min(mostFactor, math.Exp(student(z, priorWeight+k-1)*sigma*math.Sqrt(1+1/k)))
}

// mostFactor keeps a wild past from saying more than that it says nothing.
const mostFactor = 100

// The normal deviations of one case in a hundred, and of one in twenty.
const (
	oneInHundred = 2.326
	oneInTwenty  = 1.645
)

// student is the quantile of Student's t that belongs to a normal deviation, for four degrees of freedom and up
// (Abramowitz and Stegun 26.7.5, within 1 %).
func student(z, freedom float64) float64 {
	z2 := z * z
	g1 := z * (z2 + 1) / 4
	g2 := z * ((5*z2+16)*z2 + 3) / 96
	g3 := z * (((3*z2+19)*z2+17)*z2 - 15) / 384
	return z + g1/freedom + g2/(freedom*freedom) + g3/(freedom*freedom*freedom)
}

// moments are mean and variance; the variance of one value is 0.
func moments(v []float64) (mean, variance float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	if len(v) < 2 {
		return mean, 0
	}
	for _, x := range v {
		variance += (x - mean) * (x - mean) / float64(len(v)-1)
	}
	return mean, variance
}

// pool is the earlier jobs that a forecast uses: jobs of the same network and data in any shape, so that forecasts of
// several shapes come from one model. If there are none, it is jobs of the same network. Without any, a forecast uses
// the same sources as the timeouts.
type pool struct {
	jobs  []*disdel.Record // newest first
	group timeGroup        // the nearest that any of them is in

	load loadForecast // of the job to come

	between, outside float64
	gapsKnown        bool
	fallback         map[disdel.Task]known
}

// mostJobs of a pool are looked at: older ones tell less of the machine as it is now.
const mostJobs = 24

func (t *timer) pool() *pool {
	w := &pool{group: t.all[disdel.TaskTrain].group, fallback: t.all, load: t.load}
	fits := func(r *disdel.Record) bool { return sameNetwork(t.in, r) && sameData(t.in, r) }
	if !slices.ContainsFunc(t.in.Past, func(r disdel.Record) bool { return t.comparable(&r) && fits(&r) }) {
		fits = func(r *disdel.Record) bool { return sameNetwork(t.in, r) }
	}
	for i := range t.in.Past {
		if r := &t.in.Past[i]; len(w.jobs) < mostJobs && t.comparable(r) && fits(r) {
			w.jobs = append(w.jobs, r)
		}
	}
	return w
}

func (t *timer) comparable(r *disdel.Record) bool {
	return r.Job.Training.Backend == t.in.Job.Training.Backend
}

// known is what the pool says of every task of a plan: medians for start-ups, since single ones wait for whatever else
// the machine does, and geometric means for what grows with the rows.
func (w *pool) known(in TimingInput) map[disdel.Task]known {
	out := map[disdel.Task]known{}
	for _, a := range in.Plan.Actions {
		var samples []timeSample
		for _, r := range w.jobs {
			for _, stage := range r.ByStage() {
				samples = append(samples, samplesOf(in, stage, a.Task)...)
			}
		}
		if k, ok := w.fallback[a.Task]; len(samples) > 0 {
			out[a.Task] = typical(samples)
		} else if ok {
			out[a.Task] = k.typical()
		}
	}
	return out
}

// typical is the same without the largest start-up, which a timeout has to be above and most activations are below.
func (k known) typical() known {
	out := typical(k.samples)
	out.each = k.each
	return out
}

func typical(samples []timeSample) known {
	var cold, warm, all []float64
	var logs float64
	for _, s := range samples {
		all = append(all, s.fixed)
		if s.cold {
			cold = append(cold, s.fixed)
		} else {
			warm = append(warm, s.fixed)
		}
		logs += math.Log(max(s.each, leastEach))
	}
	k := known{each: math.Exp(logs / float64(len(samples)))}
	if k.each <= leastEach {
		k.each = 0
	}
	if k.cold = middle(cold); len(cold) == 0 {
		k.cold = middle(all)
	}
	if k.warm = middle(warm); len(warm) == 0 {
		k.warm = k.cold * warmShare
	}
	return k
}

// warmShare of a cold start is what a warm one takes where none was measured: the process, the shard and the network
// are there, and only the reference and the answer are on their way.
const warmShare = 0.25

// leastEach is what a row takes at least, s, to have a logarithm.
const leastEach = 1e-12
