package estimator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

func sec(s float64) disdel.Millis { return disdel.Millis(s * float64(time.Second)) }

// workload is a job's shape and what its machine does.
type workload struct {
	network        string
	workers, epoch int // rounds of one epoch
	batch, rows    int
	memory         disdel.Bytes
	macs           int64
	threads        int
	processors     int     // of the platform; 0: unknown
	cold, warm     float64 // s of start-up
	rate           float64 // rows a second of a worker
}

var lenetWork = workload{
	network: "lenet5", workers: 2, epoch: 5, batch: 64, rows: 60000, memory: 256 * disdel.MB, macs: 416_520, threads: 1,
	cold: 1, warm: 0.2, rate: 3000,
}

func (w workload) plan() disdel.Plan {
	p := disdel.Plan{
		Workers: w.workers, Rounds: w.epoch, Epochs: 1, Threads: w.threads, HeldOut: 10000, Parallel: w.workers,
		Platform: disdel.PlatformLimits{MinTimeout: sec(0.1), MaxTimeout: sec(300), Processors: w.processors},
		Levels:   []disdel.Level{{Height: 1, Clusters: [][]int{{}}}},
	}
	for i := range w.workers {
		p.Shards = append(p.Shards, disdel.RowRange{Start: i * w.rows / w.workers, End: (i + 1) * w.rows / w.workers})
		p.Levels[0].Clusters[0] = append(p.Levels[0].Clusters[0], i)
	}
	for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
		a := disdel.ActionPlan{Task: task, Limits: disdel.Limits{Memory: w.memory}}
		a.Estimate.Layers = []disdel.LayerEstimate{{MACs: w.macs}}
		a.Estimate.Model = disdel.MB
		p.Actions = append(p.Actions, a)
	}
	return p
}

func (w workload) job() disdel.Job {
	var j disdel.Job
	j.Model.Name, j.Training.BatchSize, j.Training.Epochs, j.Training.ValidateEvery = w.network, w.batch, w.epoch, 1
	return j
}

func (w workload) data() disdel.DataInfo {
	return disdel.DataInfo{
		Name: "fashion-mnist", Checksum: "c", Train: w.rows, HeldOut: 10000, Sample: []int{1, 28, 28},
		SampleSize: 784,
	}
}

func (w workload) input(past ...disdel.Record) TimingInput {
	return TimingInput{Past: past, Plan: w.plan(), Job: w.job(), Data: w.data(), Work: w.macs}
}

// run is the record of the workload on a machine that is slower by the factor that speed gives for every activation.
func (w workload) run(id int, speed func() float64) disdel.Record {
	r := disdel.Record{
		ID: disdel.JobID(fmt.Sprintf("job-%d", id)), Status: disdel.StatusSucceeded, Job: w.job(),
		Data: w.data(), Plan: w.plan(),
	}
	now := time.Unix(0, 0)
	add := func(task disdel.Task, round, member, level, rows int, start, compute float64) float64 {
		f := speed()
		d := (start + compute) * f
		a := disdel.Activation{
			Outcome: disdel.OutcomeSuccess, Cold: round == 0, Duration: sec(d), Start: now, End: now.Add(time.Duration(sec(d))),
			Rows:   rows,
			Phases: map[string]disdel.Millis{"load": sec(start * f / 2), "compute": sec(compute * f)},
		}
		a.Task, a.Round, a.Member, a.Level, a.Limits = task, round, member, level, disdel.Limits{Memory: w.memory}
		r.Activations = append(r.Activations, a)
		return d
	}
	for round := range w.epoch {
		begin, start := now, w.warm
		if round == 0 {
			start = w.cold
		}
		longest := 0.0
		for m := range w.workers {
			rows := r.Plan.Shards[m].Len()
			longest = max(longest, add(disdel.TaskTrain, round, m, 0, rows, start, float64(rows)/w.rate))
		}
		now = now.Add(time.Duration(sec(longest)))
		now = now.Add(time.Duration(sec(add(disdel.TaskAggregate, round, 0, 1, 0, start, 0.1))))
		now = now.Add(time.Duration(sec(add(disdel.TaskEvaluate, round, 0, 0, 10000, start, 10000/w.rate/3))))
		now = now.Add(300 * time.Millisecond)
		r.Rounds = append(r.Rounds, disdel.Round{Round: round, Duration: disdel.Millis(now.Sub(begin))})
	}
	r.Phases.Total = disdel.Millis(now.Sub(time.Unix(0, 0))) + sec(0.5)
	return r
}

func steady() float64 { return 1 }

// DiSDeL III-B.2b: history first, then the expected cost, then the platform's maximum; between them the nearest jobs,
// scaled, and a probe. A round of the job at hand trains 30,000 rows in 10 s after a start of 1 s.
func TestTimingTakesTheNearestSource(t *testing.T) {
	with := func(change func(w *workload)) workload { w := lenetWork; change(&w); return w }
	cost := func(in TimingInput) TimingInput { in.Job.Resources.MaxCost = 60; return in }
	less := func(in TimingInput) TimingInput { in.Job.Resources.MaxCost = 0.1; return in }
	probe := func(in TimingInput) TimingInput {
		in.Rate = &Rate{RowsPerSecond: 3000, StartUp: sec(1)}
		return in
	}
	same := lenetWork.run(1, steady)
	batch := with(func(w *workload) { w.batch = 128 }).run(1, steady)
	workers := with(func(w *workload) { w.workers = 4 }).run(1, steady)
	twice := with(func(w *workload) { w.network, w.macs, w.rate = "other", 2*w.macs, w.rate/2 }).run(1, steady)
	unknown := with(func(w *workload) { w.network, w.macs = "other", 0 }).run(1, steady)
	other := with(func(w *workload) { w.memory = 512 * disdel.MB }).run(1, steady)
	near := with(func(w *workload) { w.memory = 240 * disdel.MB }).run(1, steady)
	larger := with(func(w *workload) { w.memory = 320 * disdel.MB })
	backend := lenetWork.run(1, steady)
	backend.Job.Training.Backend = "gorgonia"
	for _, c := range []struct {
		name          string
		in            TimingInput
		source        disdel.Source
		least, likely float64 // s: the timeout is at least this, and this is what is expected; 0: no forecast
		most          float64
	}{
		{"nothing known", lenetWork.input(), "platform maximum", 300, 0, 300},
		{"cost: (60 GB-s / 5 rounds / 2 workers) / 0.25 GB", cost(lenetWork.input()), "cost", 24, 0, 24},
		{"a cost below a start and a leg", less(lenetWork.input()), "cost", 10, 0, 10},
		{"probe before cost", cost(probe(lenetWork.input())), "probe", 16, 11, 300},
		{"the same before all", cost(probe(lenetWork.input(batch, same))), "history", 16, 11, 27},
		{"memory a little different", lenetWork.input(near), "history", 16, 11, 27},
		{"a quarter more memory", lenetWork.input(larger.run(1, steady)), "history", 16, 11, 27},
		{"a fifth less memory", larger.input(same), "history", 16, 11, 27},
		{"memory different", lenetWork.input(other), "similar jobs", 16, 11, 80},
		{"another batch", probe(lenetWork.input(batch)), "similar jobs", 16, 11, 80},
		{"more workers, by rows", lenetWork.input(workers), "similar jobs", 16, 11, 80},
		{"the nearest of two", lenetWork.input(twice, workers), "similar jobs", 16, 11, 80},
		{"another network, by multiply-accumulates", lenetWork.input(twice), "similar jobs", 16, 11, 300},
		{"a probe before another network", probe(lenetWork.input(twice)), "probe", 16, 11, 300},
		{"another network of unknown work", lenetWork.input(unknown), "platform maximum", 300, 0, 300},
		{"another backend", lenetWork.input(backend), "platform maximum", 300, 0, 300},
	} {
		got := TimingOf(c.in)
		d := got.Timeouts[disdel.TaskTrain].Seconds()
		if got.Source != c.source || d < c.least || d > c.most || len(got.Timeouts) != 3 || got.Legs != 1 {
			t.Errorf("%s: %v s from %s, want %v to %v from %s (%v)", c.name, d, got.Source, c.least, c.most, c.source,
				got.Reasons)
		}
		if k, ok := know(c.in, disdel.TaskTrain); ok != (c.likely > 0) || ok && math.Abs(k.fullTime.likely-c.likely) > 1.1 {
			t.Errorf("%s: %v s expected, want %v", c.name, k.fullTime.likely, c.likely)
		}
		if (got.Forecast != nil) != (c.likely > 0) || got.Forecast != nil && got.Forecast.Source != c.source {
			t.Errorf("%s: forecast %+v", c.name, got.Forecast)
		}
	}
	own := lenetWork.input(same)
	own.Job.Resources.Timeout = disdel.Duration(42 * time.Second)
	if got := TimingOf(own); got.Source != "job file" || got.Timeouts[disdel.TaskEvaluate] != sec(42) ||
		got.Forecast == nil {
		t.Errorf("the job file's own: %+v", got)
	}
}

// What a past job's parts are scaled by: half the threads take twice the time, twice the rows take twice the reading,
// and one outlier among many is not to be killed when it comes again.
func TestTimingScalesThePast(t *testing.T) {
	likely := func(change func(w *workload)) float64 {
		w := lenetWork
		change(&w)
		k, _ := know(lenetWork.input(w.run(1, steady)), disdel.TaskTrain)
		return k.fullTime.likely
	}
	for name, c := range map[string]struct {
		change func(w *workload)
		want   float64 // s: 10 of compute, 0.5 of reading, 0.5 of the rest
	}{
		"the same":          {func(*workload) {}, 11},
		"twice the threads": {func(w *workload) { w.threads = 2 }, 21},
		"half the rows":     {func(w *workload) { w.workers = 4 }, 11.5},
		"twice the work":    {func(w *workload) { w.network, w.macs = "other", 2*w.macs }, 6},
		"half the rows, each half the work": {
			func(w *workload) { w.workers, w.network, w.macs = 4, "other", w.macs/2 },
			21.5,
		},
	} {
		if got := likely(c.change); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%s: %v s, want %v s", name, got, c.want)
		}
	}
	var past []disdel.Record
	for i := range 10 {
		past = append(past, lenetWork.run(i, steady))
	}
	past[4].Activations[0].Duration *= 3
	past[4].Activations[0].Phases["compute"] *= 3
	if got := TimingOf(lenetWork.input(past...)).Timeouts[disdel.TaskTrain].Seconds(); got < 31*overLongest {
		t.Errorf("one of 100 took 33 s, and the timeout is %v s", got)
	}
}

// An activation that ran out of time tells by its progress what it needed; another job's success tells more.
func TestTimingLearnsFromTimeouts(t *testing.T) {
	r := lenetWork.run(1, steady)
	r.Activations = r.Activations[:1]
	a := &r.Activations[0]
	a.Outcome, a.Duration, a.Phases, a.Rows = disdel.OutcomeTimeout, sec(10), nil, 0
	in := lenetWork.input(r)
	if k, _ := know(in, disdel.TaskTrain); math.Abs(k.fullTime.likely-20) > 0.1 {
		t.Errorf("without progress: %v s, want twice 10", k.fullTime.likely)
	}
	a.Beats = []disdel.Beat{{At: sec(10), Epoch: 1, Batch: 100, Batches: 469}}
	if k, _ := know(in, disdel.TaskTrain); math.Abs(k.fullTime.likely-46.9) > 0.1 {
		t.Errorf("by progress: %v s, want 46.9", k.fullTime.likely)
	}
	crash := lenetWork.run(2, steady)
	for i := range crash.Activations {
		crash.Activations[i].Outcome = disdel.OutcomeDeveloperError
	}
	if got := TimingOf(lenetWork.input(crash)); got.Source != "platform maximum" {
		t.Errorf("crashes tell nothing: %s", got.Source)
	}
}

// The target: with history the timeout is at most 2.5 times what the activation takes at the median, and
// nothing is killed for time, on machines whose speed varies from job to job and from activation to activation.
func TestTimeoutsWithHistory(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var ratios []float64
	for trial := range 300 {
		machine := func() func() float64 {
			load := math.Exp(0.1 * random.NormFloat64())
			return func() float64 { return load * math.Exp(0.08*random.NormFloat64()) }
		}
		var past []disdel.Record
		for i := range 1 + trial%6 {
			past = append(past, lenetWork.run(i, machine()))
		}
		timeout := TimingOf(lenetWork.input(past...)).Timeouts[disdel.TaskTrain].Seconds()
		next := lenetWork.run(99, machine())
		for _, a := range next.Activations {
			if a.Task != disdel.TaskTrain {
				continue
			}
			if a.Duration.Seconds() > timeout {
				t.Errorf("trial %d: %v s, and the timeout was %v s", trial, a.Duration, timeout)
			}
			ratios = append(ratios, timeout/a.Duration.Seconds())
		}
	}
	if m := median(ratios); m > 2.5 || m < leastFactor {
		t.Errorf("timeout over actual: %.2f at the median, want at most 2.5", m)
	} else {
		t.Logf("timeout over actual: %.2f at the median of %d activations", m, len(ratios))
	}
}

// A forecast's interval holds nine of ten jobs; neither much fewer nor nearly all.
func TestForecastsHoldNineOfTen(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const trials = 400
	inside := 0
	var off []float64
	for range trials {
		machine := func() func() float64 {
			load := math.Exp(0.15 * random.NormFloat64())
			return func() float64 { return load * math.Exp(0.05*random.NormFloat64()) }
		}
		past := []disdel.Record{lenetWork.run(1, machine()), lenetWork.run(2, machine()), lenetWork.run(3, machine())}
		f := TimingOf(lenetWork.input(past...)).Forecast
		next := lenetWork.run(4, machine())
		actual := next.Phases.Total
		inside += btoi(f.Duration.Low <= actual && actual <= f.Duration.High)
		off = append(off, math.Abs(math.Log(actual.Seconds()/f.Duration.Likely.Seconds())))
		if f.Samples != 30 || f.Source != "history" {
			t.Fatalf("%d samples from %s", f.Samples, f.Source)
		}
	}
	if share := float64(inside) / trials; share < 0.85 || share > 0.98 {
		t.Errorf("%.0f %% of the jobs within the interval, want 90", 100*share)
	} else {
		t.Logf("%.0f %% of the jobs within the interval, median error %.1f %%", 100*share, 100*median(off))
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// On a machine that never varies the forecast is the job: start-up, compute, aggregation, evaluation and gaps are all
// counted. Eq. 6: the time in the rounds times the memory of two train actions and one aggregation of 0.25 GB.
func TestForecastCountsEveryPart(t *testing.T) {
	past := lenetWork.run(1, steady)
	f := TimingOf(lenetWork.input(past)).Forecast
	if got, want := f.Duration.Likely.Seconds(), past.Phases.Total.Seconds(); math.Abs(got-want) > 0.02*want {
		t.Errorf("%v s, want %v s", got, want)
	}
	if got, want := f.Cost.Likely, (past.Phases.Total.Seconds()-0.5)*3*0.25; math.Abs(got-want) > 0.02*want {
		t.Errorf("%v GB-s, want %v GB-s", got, want)
	}
	in := lenetWork.input(past)
	in.Plan.Parallel = 1
	if got, want := TimingOf(in).Forecast.Duration.Likely.Seconds()-f.Duration.Likely.Seconds(), 1+4*0.2+
		5*10.0; math.Abs(got-want) > 0.5 {
		t.Errorf("two waves take %v s more, want %v s", got, want)
	}
	in = lenetWork.input(past)
	in.Plan.Platform.PerMinute = 4 // 20 invocations: the last one in the fourth minute after the first
	if got := TimingOf(in).Forecast.Duration.Likely.Seconds(); got < 180 {
		t.Errorf("4 invocations a minute: %v s", got)
	}
}

// A round above the platform's maximum is several activations: 12 minutes of work in 5-minute pieces, each of which may
// use 270 s and takes 1 s to start.
func TestLegs(t *testing.T) {
	slow := lenetWork
	slow.rate = 30000 / 720.0
	in := slow.input(slow.run(1, steady))
	got := TimingOf(in)
	if got.Legs != 3 || got.Timeouts[disdel.TaskTrain] != sec(300) {
		t.Errorf("%d legs of %v", got.Legs, got.Timeouts[disdel.TaskTrain])
	}
	const want = "a round of worker 0 takes about 12m1s, above the platform's 5m0s: 3 activations one after another, " +
		"with a checkpoint between"
	if !strings.Contains(strings.Join(got.Reasons, "\n"), want) {
		t.Errorf("reasons %q", got.Reasons)
	}
	in.Job.Resources.Timeout = disdel.Duration(100 * time.Second)
	if got := TimingOf(in); got.Legs != 9 || got.Timeouts[disdel.TaskTrain] != sec(100) {
		t.Errorf("within resources.timeout: %d legs of %v", got.Legs, got.Timeouts[disdel.TaskTrain])
	}
	cold, warm := slow, slow
	cold.cold = 100 // leaves 170 s of the first leg
	warm.warm = 150 // leaves 120 s of each later one
	for _, c := range []struct {
		name string
		w    workload
		legs int
	}{{"a slow first start", cold, 4}, {"slow later starts", warm, 5}} {
		if got := TimingOf(c.w.input(c.w.run(1, steady))); got.Legs != c.legs {
			t.Errorf("%s: %d legs, want %d", c.name, got.Legs, c.legs)
		}
	}
}

// While a job runs, its own rounds take over from the plan's forecast, and nothing is left at its end.
func TestRemaining(t *testing.T) {
	plan := lenetWork.plan()
	if f := Remaining(plan, nil, nil, sec(3)); f != nil {
		t.Errorf("nothing known: %+v", f)
	}
	plan.Rounds = 10
	plan.Forecast = &disdel.Forecast{Duration: disdel.Interval[disdel.Millis]{
		Low: sec(80), Likely: sec(100),
		High: sec(120),
	}, Cost: disdel.Interval[float64]{Low: 8, Likely: 10, High: 12}, Source: "history"}
	if f := Remaining(plan, nil, nil, sec(20)); f.Duration.Likely != sec(80) || math.Abs(f.Cost.Likely-8) > 1e-9 ||
		f.Source != "history" {
		t.Errorf("before the first round: %+v", f)
	}
	var rounds []disdel.Round
	width := math.Inf(1)
	for i := range 10 {
		rounds = append(rounds, disdel.Round{Round: i, Duration: sec(20)}) // twice as slow as planned
		f := Remaining(plan, rounds, make([]disdel.Activation, i), sec(20*float64(i+1)))
		left := float64(9 - i)
		own := float64(i + 1)
		if i >= 2 {
			own = float64(i) // without the cold one
		}
		want := left * (own*20 + 2*10) / (own + 2)
		if math.Abs(f.Duration.Likely.Seconds()-want) > 0.01 || f.Source != "this job" || f.Samples != i ||
			f.Duration.Low > f.Duration.Likely || f.Duration.High < f.Duration.Likely {
			t.Errorf("%d rounds: %+v, want %v s", i+1, f.Duration, want)
		}
		if w := (f.Duration.High - f.Duration.Low).Seconds(); i >= 2 && w > width {
			t.Errorf("%d rounds: the interval grew from %v to %v s", i+1, width, w)
		} else {
			width = w
		}
	}
	if f := Remaining(plan, rounds, nil, sec(300)); f.Duration.High != 0 || f.Cost.High != 0 {
		t.Errorf("at its end: %+v", f)
	}
}

// Student's t at 0.99 and 0.95, from the published tables.
func TestStudent(t *testing.T) {
	for _, c := range []struct{ z, freedom, want float64 }{
		{oneInHundred, 4, 3.747},
		{oneInHundred, 10, 2.764},
		{oneInHundred, 120, 2.358},
		{oneInTwenty, 4, 2.132},
		{oneInTwenty, 30, 1.697},
	} {
		if got := student(c.z, c.freedom); math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("t(%v) = %v, want %v", c.freedom, got, c.want)
		}
	}
}

// Whatever the past holds, timeouts are within the platform's bounds, and intervals in order.
func TestTimingStaysWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := lenetWork.input(lenetWork.run(1, steady), lenetWork.run(2, steady))
		for i := range in.Past {
			r := &in.Past[i]
			for k := range r.Activations {
				a := &r.Activations[k]
				a.Duration = disdel.Millis(rapid.Int64Range(0, math.MaxInt64/8).Draw(t, "duration"))
				a.Rows = rapid.IntRange(0, 1<<40).Draw(t, "rows")
				a.Outcome = disdel.Outcome(rapid.IntRange(0, int(disdel.OutcomeCorrupt)).Draw(t, "outcome"))
			}
		}
		in.Plan.Parallel = rapid.IntRange(0, 9).Draw(t, "parallel")
		in.Job.Resources.MaxCost = rapid.Float64Range(0, 1e300).Draw(t, "cost")
		got := TimingOf(in)
		for task, d := range got.Timeouts {
			if d < in.Plan.Platform.MinTimeout || d > in.Plan.Platform.MaxTimeout {
				t.Errorf("%s: %v", task, d)
			}
		}
		if f := got.Forecast; f != nil &&
			(f.Duration.Low > f.Duration.Likely || f.Duration.Likely > f.Duration.High || f.Cost.Low > f.Cost.Likely ||
				f.Cost.Likely > f.Cost.High || f.Duration.Low < 0) {
			t.Errorf("%+v", f)
		}
		if got.Legs < 1 {
			t.Errorf("%d legs", got.Legs)
		}
	})
}

// Actions that share the processors of one machine take each other's time: 12 workers on two have a sixth of the rows
// and a sixth of a processor of two workers' each.
func TestWorkersShareKnownProcessors(t *testing.T) {
	on := func(w workload, processors int) workload { w.processors = processors; return w }
	many := lenetWork
	many.workers = 12
	past := on(lenetWork, 2).run(1, steady)
	alone, shared := TimingOf(many.input(past)), TimingOf(on(many, 2).input(past))
	if a, b := alone.Timeouts[disdel.TaskTrain].Seconds(), shared.Timeouts[disdel.TaskTrain].Seconds(); a > 10 || b < 16 {
		t.Errorf("timeouts of %v s on as many processors as actions, %v s on two", a, b)
	}
	two := TimingOf(on(lenetWork, 2).input(past)).Forecast.Duration.Likely.Seconds()
	if got := shared.Forecast.Duration.Likely.Seconds(); got < two || got > 2*two {
		t.Errorf("12 workers take %v s, two %v s", got, two)
	}
	if got, want := TimingOf(on(lenetWork, 2).input(on(many, 2).run(1, steady))).Timeouts[disdel.TaskTrain].Seconds(),
		10.0; got < want {
		t.Errorf("two workers are expected to take %v s by what 12 took", got)
	}
}

// Loading a few kilobytes takes as long as loading a few more: a large shard's time does not follow from theirs.
func TestSmallShardsDoNotScale(t *testing.T) {
	small := lenetWork
	small.rows, small.rate = 1000, 300000
	past := small.run(1, steady)
	got := TimingOf(lenetWork.input(past)).Timeouts[disdel.TaskTrain].Seconds()
	if got > 30 { // half of the start of 1 s is the loading of 392 KB, and the shard is sixty times as large
		t.Errorf("a timeout of %v s", got)
	}
}

// What OpenWhisk called a failure though its update was complete says nothing of times: the container did not answer.
func TestRecoveredActivationsAreNoSamples(t *testing.T) {
	in, r := lenetWork.input(), lenetWork.run(1, steady)
	all, left := len(samplesOf(in, &r, disdel.TaskTrain)), 0
	for i := range r.Activations {
		if a := &r.Activations[i]; a.Task == disdel.TaskTrain && a.Round%2 == 0 {
			a.Recovered, a.Duration = disdel.NoRecord, 100*a.Duration
		} else if a.Task == disdel.TaskTrain {
			left++
		}
	}
	if got := len(samplesOf(in, &r, disdel.TaskTrain)); got != left || got == all {
		t.Errorf("%d samples, %d of %d activations were answered", got, left, all)
	}
}

// staged is the workload in stages, the largest of which has a share of the multiply-accumulates, and steps of so many
// micro-batches.
func (w workload) staged(stages, parts int, share float64, passes disdel.Bytes) TimingInput {
	in := w.input()
	for i := range in.Plan.Actions {
		if a := &in.Plan.Actions[i]; a.Task == disdel.TaskTrain {
			a.Estimate.Layers[0].MACs = int64(share * float64(w.macs))
			a.Estimate.Extra = 1.0 / 3
		}
	}
	rows := in.Plan.Shards
	in.Plan.Stages, in.Plan.Shards = make([]disdel.PlannedStage, stages), nil
	for i := range stages - 1 {
		in.Plan.Stages[i].Passes = passes
	}
	for _, r := range rows {
		for range stages {
			in.Plan.Shards = append(in.Plan.Shards, r)
		}
	}
	in.Plan.Workers *= stages
	in.Plan.Parallel, in.Plan.StepMemory.MicroBatch = in.Plan.Workers, w.batch/parts
	return in
}

// A job in stages that never ran is forecast by one action's: the slowest stage's share, its second pass forward, the
// bubble of GPipe's order and what the stage passes on, and waits for. One that ran in the same stages counts as it is.
func TestStagesAreForecastByOneAction(t *testing.T) {
	whole := lenetWork.run(1, func() float64 { return 1 })
	alone, ok := know(lenetWork.input(whole), disdel.TaskTrain)
	if !ok {
		t.Fatal("the same job is not known")
	}
	for _, c := range []struct {
		stages, parts int
		share         float64
		passes        disdel.Bytes
		want          float64 // beside one action's time for a row, without what is passed
	}{
		{2, 4, 0.5, 0, 0.5 * 4 / 3 * 5 / 4},
		{2, 4, 0.3, 0, 0.7 * 4 / 3 * 5 / 4},
		{2, 1, 0.5, 0, 0.5 * 4 / 3 * 2},
		{4, 8, 0.25, 0, 0.25 * 4 / 3 * 11 / 8},
		{4, 8, 0.4, 50 * disdel.KB, 0.4 * 4 / 3 * 11 / 8},
	} {
		in := lenetWork.staged(c.stages, c.parts, c.share, c.passes)
		in.Past = []disdel.Record{whole}
		k, _ := know(in, disdel.TaskTrain)
		want := alone.each * c.want
		bytes, pause := float64(c.passes)/stageRate, stagePause*float64(c.parts)/float64(lenetWork.batch)
		if want += 3*bytes + pause; c.stages > 2 { // the last stage reads its inputs
			want += 2*bytes + pause // a stage in the middle has two neighbours
		}
		if math.Abs(k.each/want-1) > 1e-3 {
			t.Errorf("%+v: a row takes %g s, want %g", c, k.each, want)
		}
		again := whole
		again.Plan = in.Plan
		in.Past = []disdel.Record{again}
		if k, _ := know(in, disdel.TaskTrain); math.Abs(k.each/alone.each-1) > 1e-3 {
			t.Errorf("%+v: after a job in these stages a row takes %g s, want %g", c, k.each, alone.each)
		}
	}
}
