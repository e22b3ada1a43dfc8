package estimator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/golden"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// sameAsBefore compares lines with a transcript of testdata/drawn: who changes a figure sees which ones change.
func sameAsBefore(t *testing.T, name string, lines []string) {
	t.Helper()
	file, got := "testdata/drawn/"+name, strings.Join(lines, "\n")+"\n"
	golden.Same(t, file, got, *update)
}

// drawnWorkload is a workload of few values, so that some of two draws are equal and others are at a bound.
func drawnWorkload(draw *rand.Rand) workload {
	w := lenetWork
	w.network = oneOf(draw, "lenet5", "lenet5", "lenet5", "mlp")
	w.workers, w.epoch = oneOf(draw, 1, 2, 2, 3, 5), oneOf(draw, 1, 2, 5, 5)
	w.batch, w.rows = oneOf(draw, 32, 64, 64), oneOf(draw, 60, 3000, 60_000, 60_000)
	w.memory = disdel.MB * oneOf[disdel.Bytes](draw, 256, 256, 320, 321, 1024)
	w.macs = oneOf[int64](draw, 0, 50_000, 416_520, 416_520, 40_000_000)
	w.threads, w.processors = oneOf(draw, 0, 1, 1, 2, 4), oneOf(draw, 0, 2, 2, 3)
	w.cold, w.warm, w.rate = oneOf(draw, 0.1, 1, 4), oneOf(draw, 0.05, 0.2), oneOf(draw, 300.0, 3000, 3000, 30_000)
	return w
}

// drawPlan changes what workloads have in common: levels, shards, stages and the platform's limits.
func drawPlan(draw *rand.Rand, p *disdel.Plan) {
	p.Platform.Busy = oneOf(draw, 0, 0, leastBusy, 0.9, 1, 3)
	p.Platform.PerMinute = oneOf(draw, 0, 0, 5, 60)
	p.Platform.MinTimeout, p.Platform.MaxTimeout = sec(oneOf(draw, 0.1, 8)), sec(oneOf(draw, 5.0, 12, 60, 300, 300))
	p.Parallel, p.HeldOut = oneOf(draw, 0, 1, p.Workers), oneOf(draw, 0, 1, 10_000)
	p.Epochs = oneOf(draw, 0, 1, 1, 2)
	switch workers := p.Levels[0].Clusters[0]; draw.IntN(5) {
	case 0:
		p.Levels = []disdel.Level{
			{Height: 1, Clusters: [][]int{workers[:1], workers[1:]}}, {Height: 2, Clusters: [][]int{{0, 1}}},
		}
	case 1:
		p.Shards = nil
	case 2:
		p.Batches = oneOf(draw, 1, 7)
	case 3:
		p.Stages = make([]disdel.PlannedStage, p.Workers)
		for i := range p.Stages[1:] {
			p.Stages[i].Passes = oneOf[disdel.Bytes](draw, 1000, 50_000, 500_000)
		}
	}
	p.StepMemory.MicroBatch = oneOf(draw, 0, 0, 8, 64, 100)
	for i := range p.Actions {
		e := &p.Actions[i].Estimate
		e.Extra, e.Model = oneOf(draw, 0, 0, 0.5), oneOf(draw, 0, disdel.MB, 20*disdel.MB)
		e.Parameters, e.Update = e.Model/2, e.Model
	}
}

// drawActivation changes how an activation ended, and what it measured.
func drawActivation(draw *rand.Rand, a *disdel.Activation) {
	switch draw.IntN(16) {
	case 0:
		a.Outcome = oneOf(draw, disdel.OutcomeTimeout, disdel.OutcomePaused, disdel.OutcomeLost)
		a.Rows /= oneOf(draw, 1, 2, 100_000)
	case 1:
		a.Recovered = disdel.NoRecord
	case 2:
		a.Phases = map[string]disdel.Millis{"load": sec(0.01), "fetch": sec(0.2), "compute": sec(leastCompute), "push": sec(0.1)}
	case 3:
		a.Phases, a.InitTime = nil, sec(oneOf(draw, 0, 0.05, 100))
	case 4:
		a.Rows = 0
	case 5:
		a.Duration, a.Start, a.End = 0, time.Time{}, time.Time{}
	case 6:
		a.Start = a.Start.Add(-time.Second)
		a.Member = oneOf(draw, 0, 1, 9)
	case 7:
		a.Outcome, a.Duration = disdel.OutcomeTimeout, sec(9)
		for i := range oneOf(draw, 1, 3) {
			a.Beats = append(a.Beats, disdel.Beat{At: sec(float64(2 + i)), Batch: 10 + 7*i, Batches: 200})
		}
	}
	if draw.IntN(3) == 0 {
		a.Slowdown = oneOf(draw, 0.5, 1, 1.4, 3)
	}
}

// drawnRecord is an earlier job of a drawn workload: it ran well, or in some unusual way.
func drawnRecord(draw *rand.Rand, id int, like workload) disdel.Record {
	w := like
	if draw.IntN(3) == 0 {
		w = drawnWorkload(draw)
	}
	w.rate *= 0.8 + 0.4*draw.Float64()
	r := w.run(id, func() float64 { return 0.9 + 0.2*draw.Float64() })
	drawPlan(draw, &r.Plan)
	if draw.IntN(2) == 0 { // another plan of the same shape
		r.Plan.Stages, r.Plan.Batches, r.Plan.Shards = nil, 0, w.plan().Shards
	}
	for i := range r.Activations {
		drawActivation(draw, &r.Activations[i])
	}
	losses := LossCurve{Floor: 0.1, Rate: 0.5 + draw.Float64(), Start: 1}
	for i := range r.Rounds {
		r.Rounds[i].Round = i
		if loss := losses.At(float64(i + 1)); draw.IntN(8) > 0 {
			accuracy := 1 - loss
			r.Rounds[i].Loss, r.Rounds[i].Accuracy = &loss, &accuracy
		}
	}
	switch draw.IntN(12) {
	case 0:
		r.Resumes = 1
	case 1:
		r.Status = disdel.StatusFailed
	case 2:
		r.Rounds = r.Rounds[:len(r.Rounds)/2]
	case 3:
		r.Data.Checksum = "other"
	case 4:
		r.Data.Sample = []int{3, 32, 32}
	case 5:
		r.Job.Training.Backend = "gorgonia"
	case 6:
		r.Job.Distribution.Sync = disdel.SyncEnd
	case 7:
		r.Phases.Total = 0
	case 8:
		r.Plan.Legs = 2
	case 9:
		r.Job.Training.ClipNorm = 1
	}
	return r
}

// drawnTiming is a job to plan, after no, one or several others.
func drawnTiming(draw *rand.Rand) TimingInput {
	w := drawnWorkload(draw)
	in := w.input()
	drawPlan(draw, &in.Plan)
	for id := range oneOf(draw, 0, 1, 1, 2, 4, 8) {
		in.Past = append(in.Past, drawnRecord(draw, id, w))
	}
	t := &in.Job.Training
	t.ValidateEvery = oneOf(draw, 0, 1, 2, 100)
	if draw.IntN(2) == 0 {
		t.Goal = &disdel.Goal{Loss: oneOf(draw, 0.3, 0.45, 0.05)}
	} else if draw.IntN(4) == 0 {
		t.EarlyStop = &disdel.EarlyStop{Patience: 2}
	}
	in.Job.Resources.Timeout = oneOf(draw, 0, 0, 0, disdel.Duration(7*time.Second), disdel.Duration(time.Hour))
	in.Job.Resources.MaxCost = oneOf(draw, 0, 5.0, 200)
	if draw.IntN(4) == 0 {
		in.Rate = &Rate{RowsPerSecond: oneOf(draw, 0, 1000.0), StartUp: sec(0.7)}
	}
	if draw.IntN(4) == 0 {
		in.Least = map[disdel.Task]LeastTimeout{disdel.TaskTrain: {sec(oneOf(draw, 6.0, 20)), "job-x"}}
	}
	return in
}

// Of 240 drawn jobs each gets the timeouts, the legs and the forecast that it got in earlier versions. Of the first
// 40 the reasons are the same, too.
func TestDrawnJobsKeepTheirForecasts(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 20261129))
	var lines []string
	for n := range 240 {
		in := drawnTiming(draw)
		out := TimingOf(in)
		lines = append(lines, fmt.Sprintf("%d: %s, %d legs, timeouts %v %v %v", n, out.Source, out.Legs,
			out.Timeouts[disdel.TaskTrain], out.Timeouts[disdel.TaskAggregate], out.Timeouts[disdel.TaskEvaluate]))
		if f := out.Forecast; f != nil {
			lines = append(lines, forecastLine(f), fmt.Sprintf("  quiet %.5g, %s, %d samples of %d jobs, measured %v; %s",
				f.Quiet, f.Source, f.Samples, f.Jobs, f.Measured, f.Note), goalLine(f.Goal))
		}
		if n < 40 {
			for _, r := range out.Reasons {
				lines = append(lines, "    "+r)
			}
		}
	}
	sameAsBefore(t, "forecasts.txt", lines)
}

func forecastLine(f *disdel.Forecast) string {
	return fmt.Sprintf("  %s s; %s GB-s; %s by use", figures(secondsOf(f.Duration)), figures(f.Cost), figures(f.Used))
}

func goalLine(g *disdel.GoalForecast) string {
	if g == nil {
		return "  no goal"
	}
	return fmt.Sprintf("  goal %s: %d of %d, may never %v: %s epochs; %s s; %s GB-s; %s by use", g.Goal, g.Reached, g.Jobs,
		g.MayNever, figures(g.Epochs), figures(secondsOf(g.Duration)), figures(g.Cost), figures(g.Used))
}

func secondsOf(d disdel.Interval[disdel.Millis]) disdel.Interval[float64] {
	return disdel.Interval[float64]{Low: d.Low.Seconds(), Likely: d.Likely.Seconds(), High: d.High.Seconds()}
}

// figures are five digits of an interval: processors may round the others differently.
func figures(v disdel.Interval[float64]) string {
	return fmt.Sprintf("%.5g %.5g %.5g", v.Low, v.Likely, v.High)
}

// Of 150 drawn jobs that run, the rest is forecast as in earlier versions: by their rounds, activations and goals.
func TestDrawnRunningJobsKeepTheirForecasts(t *testing.T) {
	draw := rand.New(rand.NewPCG(2, 20261129))
	var lines []string
	for n := range 150 {
		in := drawnTiming(draw)
		r := drawnRecord(draw, 100, drawnWorkload(draw))
		r.Plan.Forecast = TimingOf(in).Forecast
		r.Plan.Rounds = len(r.Rounds) + oneOf(draw, -1, 0, 1, 5)
		r.Job.Training.Goal, r.Job.Training.Epochs = in.Job.Training.Goal, len(r.Rounds)+oneOf(draw, 0, 1, 5)
		for i := range r.Rounds {
			r.Rounds[i].Duration = sec(oneOf(draw, 0, 4, 5.0, 6))
		}
		for i := range r.Activations {
			r.Activations[i].Limits.Memory += disdel.MB * oneOf[disdel.Bytes](draw, 0, 0, 0, 64, -64)
		}
		elapsed := sec(oneOf(draw, 0, 3.0, 30, 400))
		f := Remaining(r.Plan, r.Rounds, r.Activations, elapsed)
		if f == nil {
			lines = append(lines, fmt.Sprintf("%d: nothing is known", n))
			continue
		}
		var past []disdel.Observation
		for _, p := range in.Past {
			for i, round := range p.Rounds {
				past = append(past, disdel.Observation{Epoch: float64(i + 1), HeldOut: round.Loss, Accuracy: round.Accuracy})
			}
		}
		lines = append(lines, fmt.Sprintf("%d: %s, %d samples", n, f.Source, f.Samples), forecastLine(f),
			"  by use so far "+figures(RemainingUse(&r, f)), goalLine(RemainingGoal(&r, f, past)))
	}
	sameAsBefore(t, "running.txt", lines)
}

// drawnLosses are the losses of a job: by a law with noise, some of them equal, odd or missing.
func drawnLosses(draw *rand.Rand) []LossPoint {
	law := LossCurve{
		Floor: oneOf(draw, 0, 0.1, 0.5, -1), Rate: oneOf(draw, 0, 0.05, 0.5, 3), Start: oneOf(draw, 0, 0.5, 1),
	}
	points := curve(law.At, oneOf(draw, 3, 4, 5, 9, 20), oneOf(draw, 0, 0.01, 0.2), draw)
	for i := range points {
		switch draw.IntN(24) {
		case 0:
			points[i].Loss = oneOf(draw, math.NaN(), math.Inf(1), 0, -0.1)
		case 1:
			points[i].Loss *= oneOf(draw, 0.5, 2, 30)
		case 2:
			points[i].Epoch = oneOf(draw, -1, points[max(0, i-1)].Epoch)
		}
	}
	if draw.IntN(6) == 0 {
		slices.Reverse(points)
		for i := range points {
			points[i].Epoch = float64(i)
		}
	}
	return points
}

// Of 200 drawn courses of losses each reaches its target when it did in earlier versions.
func TestDrawnLossesKeepTheirConvergence(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 20261129))
	var lines []string
	for n := range 200 {
		points := drawnLosses(draw)
		target := oneOf(draw, -0.5, 0, 0.1, 0.12, 0.3, 0.6, 2)
		c, ok := Converge(points, target)
		lines = append(lines, fmt.Sprintf("%d: %v %s", n, ok, convergenceLine(c)))
		var past [][]LossPoint
		for range oneOf(draw, 2, 3, 5, 9) {
			past = append(past, drawnLosses(draw))
		}
		for range oneOf(draw, 0, 2, 4) {
			past = append(past, slices.Concat(points, []LossPoint{{float64(len(points) + 3), 0.05 + 0.2*draw.Float64()}}))
		}
		c, ok = ConvergeBySimilar(points, past, target)
		lines = append(lines, fmt.Sprintf("  by others: %v %s", ok, convergenceLine(c)))
	}
	sameAsBefore(t, "convergence.txt", lines)
}

// convergenceLine has the digits of a fit that do not depend on how a processor rounds.
func convergenceLine(c Convergence) string {
	three := func(v disdel.Interval[float64]) string { return fmt.Sprintf("%.4g %.4g %.4g", v.Low, v.Likely, v.High) }
	return fmt.Sprintf("%d points: %s epochs, floor %s, curve %.3g %.3g %.3g", c.Points, three(c.Epochs), three(c.Floor),
		c.Curve.Floor, c.Curve.Rate, c.Curve.Start)
}

// Of 150 drawn pasts each corrects the estimate of a job as it did in earlier versions, at drawn risks.
func TestDrawnPeaksKeepTheirLessons(t *testing.T) {
	draw := rand.New(rand.NewPCG(4, 20261129))
	in := lenetJob(t)
	plan := planned.Train(in)
	var lines []string
	for n := range 150 {
		var past []disdel.Record
		center := oneOf(draw, 0.3, 0.9, 1, 1.1, 1.5, 8)
		for range oneOf(draw, 1, 2, 3, 4, 5, 8, 30) {
			r := ran(oneOf(draw, "lenet5", "lenet5", "lenet1", "resnet18", ""),
				disdel.Bytes(float64(plan.Likely)*oneOf(draw, 1, 1, 1.005, 1.01, 1.3, 2, 3)),
				center*(1+0.1*draw.Float64()), center*oneOf(draw, 1, 1, 1.05, 4))
			drawPeaks(draw, &r)
			past = append(past, r)
		}
		e, err := New(backends.Standard(nil), MethodLearned, oneOf(draw, 0, 0.0001, 0.01, highestRisk), past)
		if err != nil {
			t.Fatal(err)
		}
		got := e.Train(in)
		lines = append(lines, fmt.Sprintf("%d: %s", n, line(t, got)), fmt.Sprintf("  %d samples, ratio %.5g; %s", got.Samples,
			got.Ratio, strings.Join(got.Notes, "; ")))
	}
	sameAsBefore(t, "lessons.txt", lines)
}

// drawPeaks changes what an earlier job's estimate and peaks are about.
func drawPeaks(draw *rand.Rand, r *disdel.Record) {
	e := &r.Plan.Actions[0].Estimate
	switch draw.IntN(10) {
	case 0:
		e.Ratio = oneOf(draw, 0.5, 1.1)
	case 1:
		e.Likely = 0
	case 2:
		e.Method = oneOf(draw, MethodPaper, disdel.MemoryGiven, MethodLearned)
	case 3:
		e.Parameters, e.Activations, e.Model = e.Likely/10, e.Likely/oneOf[disdel.Bytes](draw, 10, 11), e.Likely/3
	case 4:
		r.Activations[draw.IntN(len(r.Activations))].Outcome = disdel.OutcomeOutOfMemory
	case 5:
		r.Activations[draw.IntN(len(r.Activations))].Peak = 0
	case 6:
		r.Job.Training.Backend = oneOf(draw, "native", "gorgonia")
	case 7:
		r.Plan.Actions[0].Task = disdel.TaskEvaluate
	}
}

// Of 150 drawn limits each gets the workers and the error that it got in earlier versions, by both rules. Many estimates
// are exactly at the limit.
func TestDrawnLimitsKeepTheirContainers(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 20261129))
	var lines []string
	for n := range 150 {
		limit, maximum := disdel.MB*oneOf[disdel.Bytes](draw, 10, 20), oneOf(draw, 1, 2, 3, 7, 12)
		fixed, rows := disdel.MB*disdel.Bytes(5+draw.IntN(20)), disdel.MB*oneOf[disdel.Bytes](draw, 0, 20, 60, 400)
		batch := disdel.MB * oneOf[disdel.Bytes](draw, 0, 0, 10, 20)
		estimate := func(n int) disdel.Estimate {
			e := disdel.Estimate{Shard: rows / disdel.Bytes(n), Training: fixed + batch/disdel.Bytes(n)}
			e.Total = e.Training + e.Shard
			return e
		}
		for _, rule := range []func(disdel.Bytes, int, func(int) disdel.Estimate) (int, disdel.Estimate, []string, error){
			ContainerRule, SharedContainerRule,
		} {
			containers, e, steps, err := rule(limit, maximum, estimate)
			lines = append(lines, fmt.Sprintf("%d: %d of %v after %d steps; %v", n, containers, e.Total, len(steps), err))
		}
	}
	sameAsBefore(t, "containers.txt", lines)
}

// Layer by layer, each network's evaluation takes the memory that it took in earlier versions.
func TestDrawnEvaluationsByLayersKeepTheirMemory(t *testing.T) {
	draw := rand.New(rand.NewPCG(6, 20261129))
	var lines []string
	for _, g := range networks(t) {
		for range 3 {
			in := Input{Graph: g, SampleBytes: disdel.Bytes(g.Input().Len()), Optimizer: adam}
			drawInput(draw, &in)
			e, err := planned.EvaluateByLayers(in)
			lines = append(lines, fmt.Sprintf("%s: %v %s", g.Name, err, line(t, e)))
		}
	}
	sameAsBefore(t, "layers.txt", lines)
}
