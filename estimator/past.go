package estimator

import (
	"math"
	"reflect"

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
