package estimator

import (
	"cmp"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// timeSample is one measured activation, scaled to the size of the plan: a fixed time and a time for each row.
type timeSample struct {
	job   disdel.JobID
	cold  bool
	fixed float64 // s: init, reading the shard, the reference and the answer
	each  float64 // s for a row (train, evaluate) or an update (aggregate)
}

// timeGroup is a degree of similarity between an earlier job and the plan, with the spread that is expected before
// anything is measured.
type timeGroup struct {
	source disdel.Source
	prior  float64
	fits   func(in TimingInput, r *disdel.Record) bool
}

// timeGroups go from the nearest to the farthest. Durations of the same work on the same machine vary by a seventh.
// The last groups ignore more (caches, threads that wait, layers that are slow for their size), and vary more.
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

// sameNetwork also compares the input, since the work of a layer depends on it.
func sameNetwork(in TimingInput, r *disdel.Record) bool {
	return in.Job.Model.SameNetwork(&r.Job.Model) && in.Job.Model.Init.Freeze == r.Job.Model.Init.Freeze &&
		in.Job.Model.LoRA.Same(r.Job.Model.LoRA) &&
		slices.Equal(in.Data.Sample, r.Data.Sample)
}

func sameData(in TimingInput, r *disdel.Record) bool {
	return in.Data.Name == r.Data.Name && in.Data.Same(r.Data)
}

// sameShape is the same batch, workers, threads and memory; OpenWhisk gives processors by memory. A little difference
// in memory, such as that of an estimate that learned, does not count.
func sameShape(in TimingInput, r *disdel.Record) bool {
	a, b := memoryOf(in.Plan), memoryOf(r.Plan)
	return in.Plan.WorkerBatch(&in.Job) == r.Plan.WorkerBatch(&r.Job) && in.Plan.Workers == r.Plan.Workers &&
		len(in.Plan.Stages) == len(r.Plan.Stages) &&
		(in.Plan.Threads == r.Plan.Threads || in.Plan.Threads == 0 || r.Plan.Threads == 0) && a*4 <= b*5 && b*4 <= a*5
}

func memoryOf(p disdel.Plan) disdel.Bytes {
	a, _ := p.Action(disdel.TaskTrain)
	return a.Limits.Memory
}

// timeScale scales an earlier job's times to the size of the plan.
type timeScale struct {
	work    float64 // multiply-accumulates of a sample; for an aggregation bytes of an update
	threads float64 // that compute
	crowd   float64 // processes that share a processor
	busy    float64 // slowdown by other programs
	units   int     // rows or updates of an activation of the plan
	near    bool    // same network, same shape
	passes  float64 // s of a row between stages, which the earlier job did not have
	load    float64 // bytes of a shard
	weights float64 // bytes of an update
}

// scaleOf is false if the earlier job's work is not comparable.
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
		s.threads = max(1, then/now) // fewer threads take longer; more of them help too little to count
	}
	s.crowd = max(1, min(1, processors(r.Plan, task))/min(1, processors(in.Plan, task)))
	then := wholeWork(in, r)
	switch {
	case sameNetwork(in, r):
	case in.Work > 0 && then > 0:
		s.work = max(float64(in.Work), leastWork) / max(float64(then), leastWork)
	default:
		return s, false
	}
	switch task {
	case disdel.TaskAggregate:
		s.work = s.weights
	case disdel.TaskTrain:
		s.work *= (1 + extra(in.Plan)) / (1 + extra(r.Plan))
		s.work *= slowestStage(in.Plan, &in.Job, in.Work) / slowestStage(r.Plan, &r.Job, wholeWork(in, r))
		if len(r.Plan.Stages) == 0 {
			s.passes = passing(in.Plan, in.Plan.WorkerBatch(&in.Job))
		}
	}
	return s, true
}

// Floors of the sizes that times are scaled by: below them latency dominates, and time no longer goes with the bytes
// or the multiply-accumulates. A row of a network with 1,200 of them takes 12 us, of one with 19,000 25 us, and
// ResNet-18 computes about 3,000 in a microsecond.
const (
	leastWork  = float64(100_000)       // multiply-accumulates of a sample forwards
	leastLoad  = float64(4 * disdel.MB) // of a shard
	leastMoved = float64(disdel.MB)     // of an update
)

// processors is the number of processors of each of a plan's actions; +Inf if unknown. Only train actions run at the
// same time.
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

// slowestStage is the time that stages take for a row, as a share of one action's with the same steps. It is the time
// of the slowest stage and of the bubble: stages wait for the first and the last micro-batches (GPipe, section 2.3).
// whole is the number of multiply-accumulates of the network, 0 if it is unknown. A plan has the number of one stage.
// If there are more than two stages, the others are assumed to have equal shares of the rest.
func slowestStage(p disdel.Plan, job *disdel.Job, whole int64) float64 {
	n := float64(len(p.Stages))
	if n < 2 {
		return 1
	}
	share := 1 / n
	if own := workOf(p); whole > 0 && own > 0 {
		known := min(1, float64(own)/float64(whole))
		share = max(known, (1-known)/(n-1))
	}
	parts := 1.0
	if rows := p.WorkerBatch(job); p.StepMemory.MicroBatch > 0 {
		parts = max(1, math.Ceil(float64(rows)/float64(p.StepMemory.MicroBatch)))
	}
	return share * (parts + n - 1) / parts
}

// passing is the time in seconds that stages exchange messages for one row. Each stage sends outputs and gradients to
// its neighbours, and reads its inputs twice; the slowest one counts. rows is the number of rows of a step.
func passing(p disdel.Plan, rows int) (most float64) {
	if p.StepMemory.MicroBatch > 0 {
		rows = min(rows, p.StepMemory.MicroBatch)
	}
	before := disdel.Bytes(0)
	for i, s := range p.Stages {
		neighbours := 2.0
		if i == 0 || i == len(p.Stages)-1 {
			neighbours = 1
		}
		most = max(most, float64(3*before+2*s.Passes)/stageRate+neighbours*stagePause/float64(max(1, rows)))
		before = s.Passes
	}
	return most
}

// stageRate is how many bytes a second a stage sends or receives, and stagePause the s that the exchange of a
// micro-batch with a neighbour takes beside its bytes. A stage computes nothing meanwhile. With the embedded store on
// two quiet cores, messages of 200 and 400 KB took 5.6 and 7.5 ms there and back.
const (
	stageRate  = float64(250 * disdel.MB)
	stagePause = 0.003
)

// wholeWork is the multiply-accumulates of a sample in the network of an earlier job. A plan with stages has the layers
// of one.
func wholeWork(in TimingInput, r *disdel.Record) int64 {
	switch n := len(r.Plan.Stages); {
	case n < 2:
		return workOf(r.Plan)
	case sameNetwork(in, r):
		return in.Work
	default:
		return workOf(r.Plan) * int64(n)
	}
}

func shardBytes(p disdel.Plan, d disdel.DataInfo) float64 {
	return float64(d.Train) / float64(max(1, p.Replicas())) * float64(d.SampleSize)
}

func updateBytes(p disdel.Plan) float64 { return float64(p.Update(disdel.WireFloat32)) }

// extra is what a plan's training steps compute more to save memory, as a share.
func extra(p disdel.Plan) float64 {
	a, _ := p.Action(disdel.TaskTrain)
	return a.Estimate.Extra
}

// workOf is the multiply-accumulates of one sample's forward pass, by the layers of the plan's estimate.
func workOf(p disdel.Plan) (macs int64) {
	a, _ := p.Action(disdel.TaskTrain)
	for _, l := range a.Estimate.Layers {
		macs += l.MACs
	}
	return macs
}

// units is the largest number of rows or updates of an activation of the plan; at least 1.
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

// samplesOf are the measured activations of a task in an earlier job. Activations that timed out count only if there
// are no others: by their progress, otherwise as twice their timeout.
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
		case a.Recovered != "": // the container did not answer, so its duration says nothing
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

// leastCompute is the least compute time, in seconds, that tells the speed of rows: below it, page faults and the
// padding of the first step dominate.
const leastCompute = 0.02

// mostGrowth is how many times the rows of a very short job the plan may have before the job tells nothing.
const mostGrowth = 10

// tells is false for an activation of a few rows if the plan has many rows or another network.
func (s timeScale) tells(r *disdel.Record, a disdel.Activation) bool {
	compute, known := a.Phases["compute"]
	if s.near || !known || a.Task == disdel.TaskAggregate || compute.Seconds() >= leastCompute {
		return true
	}
	return s.work == 1 && s.units <= mostGrowth*max(a.Rows, 1)
}

// mostActivations is the number of activations of one job that count for a task: evenly spread, with the first and
// the last.
const mostActivations = 48

// thinned returns a job's activations of a task, at most mostActivations.
func thinned(all []disdel.Activation, task disdel.Task) []disdel.Activation {
	var kept []disdel.Activation
	for _, a := range all {
		if a.Task == task {
			kept = append(kept, a)
		}
	}
	if len(kept) <= mostActivations {
		return kept
	}
	out := make([]disdel.Activation, mostActivations)
	for i := range out {
		out[i] = kept[i*(len(kept)-1)/(mostActivations-1)]
	}
	return out
}

func (s timeScale) sample(r *disdel.Record, a disdel.Activation, seconds float64) timeSample {
	n := a.Rows
	if n == 0 || a.Outcome == disdel.OutcomeTimeout {
		n = units(r.Plan, r.Plan.WorkerBatch(&r.Job), r.Data, a.Task)
	}
	read := float64(max(1, n))
	if a.Task == disdel.TaskAggregate {
		read = updates(r.Plan, a)
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
		each: (grows/read*s.work*s.threads + s.passes) * busy,
	}
}

// updates is how many updates an aggregation read, and 1 where nothing tells, or where it joined shards.
func updates(p disdel.Plan, a disdel.Activation) float64 {
	if a.Level < 1 || a.Level > len(p.Levels) || a.Member >= len(p.Levels[a.Level-1].Clusters) {
		return 1
	}
	return cmp.Or(p.Levels[a.Level-1].Updates(a.Member), 1)
}

// unfinished is how long an activation that timed out would have taken, in seconds.
func unfinished(r *disdel.Record, a disdel.Activation) float64 {
	if a.Task == disdel.TaskTrain {
		stage := r.StageOf(&a.Invocation)
		at := stage.TrainRange(a.Round)
		a.TrainRange = &disdel.TrainRange{Epochs: max(1, r.Plan.Epochs), Epoch: at.Epoch}
	}
	if pace, ok := a.Pace(); ok && r.Plan.Batches == 0 {
		return pace.Ends.Seconds()
	}
	return math.Max(a.Duration.Seconds(), 0) * TimeoutFactor
}

// spread is a summary of measured durations of one kind. It works on logarithms, since durations on shared machines
// are skewed to the right.
type spread struct {
	likely  float64 // geometric mean, s
	longest float64
	sigma   float64 // of the logarithm, between activations
	jobs    float64 // of the logarithm, between whole jobs
	count   int     // jobs
	samples int     // activations
}

// priorWeight is how many jobs the prior spread of a group counts for.
const priorWeight = 4

// leastDuration keeps the logarithm of a duration finite, in seconds.
const leastDuration = 1e-3

type measured struct {
	job     disdel.JobID
	seconds float64
}

// spreadOf needs at least one duration. prior is the expected spread of the logarithm before anything is measured.
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

// factor is the factor above the likely duration that the next one exceeds only in the tail of z normal deviations.
// It uses Student's t, since the spread is an estimate and activations of one job are not independent.
func (s spread) factor(sigma, z float64) float64 {
	k := float64(max(1, s.count))
	return min(mostFactor, math.Exp(student(z, priorWeight+k-1)*sigma*math.Sqrt(1+1/k)))
}

// mostFactor bounds the factor for records that vary wildly.
const mostFactor = 100

// Normal deviations of the quantiles 1 in 100 and 1 in 20.
const (
	oneInHundred = 2.326
	oneInTwenty  = 1.645
)

// student is the quantile of Student's t for a normal deviation z and at least four degrees of freedom (Abramowitz
// and Stegun 26.7.5, within 1 %).
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
// the same samples as the timeouts.
type pool struct {
	jobs  []*disdel.Record // newest first
	group timeGroup        // nearest group of any of them

	load loadForecast // of the coming job

	between, outside float64
	gapsKnown        bool
	fallback         map[disdel.Task]known
}

// mostJobs is the number of jobs of a pool, the newest ones.
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

// known is the pool's times of every task of a plan: medians of start-ups, since single ones vary much, and geometric
// means of times per row.
func (w *pool) known(in TimingInput) map[disdel.Task]known {
	out := map[disdel.Task]known{}
	for _, a := range in.Plan.Actions {
		var samples []timeSample
		for _, r := range w.jobs {
			for _, stage := range r.SplitByStage() {
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

// typical replaces the largest start-up, which a timeout must exceed, by the median one.
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

// warmShare is a warm start as a share of a cold one, if none was measured: process, shard and network are there.
const warmShare = 0.25

// leastEach is the least time of a row that has a logarithm, in seconds.
const leastEach = 1e-12
