package estimator

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel"
)

// timedMachine runs workloads on two processors that other programs' threads want too: what the kernel then leaves of
// them, and what varies from job to job and from activation to activation.
type timedMachine struct {
	random *rand.Rand
	id     int
}

func (m *timedMachine) run(w workload, busy float64) disdel.Record {
	w.processors = 2
	plan := w.plan()
	plan.Platform.Busy = busy
	// The kernel is not as fair as the model has it: a power of the slowdown, another one for each job.
	share := math.Pow(slowdown(plan, disdel.TaskTrain), 0.8+0.3*m.random.Float64())
	share *= max(1, float64(w.workers)/2)
	job := share * math.Exp(0.12*m.random.NormFloat64())
	m.id++
	r := w.run(m.id, func() float64 { return job * math.Exp(0.05*m.random.NormFloat64()) })
	r.Plan.Platform.Processors, r.Plan.Platform.Busy = 2, busy
	return r
}

func (m *timedMachine) input(w workload, busy float64, past []disdel.Record) TimingInput {
	w.processors = 2
	in := w.input(past...)
	in.Plan.Platform.Busy = busy
	return in
}

// Nine of ten jobs are within their intervals, half of them beside other programs, of several shapes in any order, with
// any number of jobs before them; and the intervals of jobs with much of a past say something.
func TestForecastsHoldBesideOtherPrograms(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	inside, all := 0, 0
	var wide []float64
	for range 12 {
		m := &timedMachine{random: random}
		past := []disdel.Record{m.run(lenetWork, 0)}
		for i := range 24 {
			w := lenetWork
			w.workers = []int{1, 2, 2, 2, 4}[random.IntN(5)]
			w.epoch = []int{2, 5, 5, 10}[random.IntN(4)]
			busy := float64(random.IntN(2) * random.IntN(7))
			f := TimingOf(m.input(w, busy, past)).Forecast
			next := m.run(w, busy)
			all++
			inside += btoi(f.Duration.Low <= next.Phases.Total && next.Phases.Total <= f.Duration.High)
			if i > 12 {
				wide = append(wide, f.Duration.High.Seconds()/f.Duration.Low.Seconds())
			}
			past = append([]disdel.Record{next}, past...)
		}
	}
	share := float64(inside) / float64(all)
	t.Logf("%.0f %% of %d jobs within the interval, high over low %.2f at the median", 100*share, all, median(wide))
	if share < 0.87 || share > 0.985 {
		t.Errorf("%.0f %% of the jobs within the interval, want 90", 100*share)
	}
	if m := median(wide); m > 4 {
		t.Errorf("with a dozen jobs before them, intervals are still as wide as %.1f times their low end", m)
	}
}

// Workers that were measured, at whatever load, and workers between and beyond them lie on one curve: it falls until
// the processors are shared and goes one way from there, without the zigzag of figures that know nothing of each other.
func TestForecastsOfManyWorkersAreOneCurve(t *testing.T) {
	for seed := range uint64(20) {
		m := &timedMachine{random: rand.New(rand.NewPCG(seed, 7))}
		var past []disdel.Record
		for _, workers := range []int{2, 8, 4, 2} {
			w := lenetWork
			w.workers = workers
			past = append(past, m.run(w, float64(m.random.IntN(8))))
		}
		var curve []float64
		for workers := 1; workers <= 12; workers++ {
			w := lenetWork
			w.workers = workers
			f := TimingOf(m.input(w, 0, past)).Forecast
			curve = append(curve, f.Duration.Likely.Seconds())
			if want := workers == 2 || workers == 4 || workers == 8; f.Measured != want || f.Jobs != len(past) {
				t.Errorf("%d workers: %+v", workers, f)
			}
		}
		turns := 0
		for i := 2; i < len(curve); i++ {
			before, after := curve[i-1]/curve[i-2], curve[i]/curve[i-1]
			if max(before, after) > 1.08 && min(before, after) < 1/1.08 {
				turns++
			}
		}
		if turns > 1 {
			t.Errorf("seed %d: %d turns in %.1f", seed, turns, curve)
		}
	}
}

// One job of five rows says nothing of another network, nor of the same one with sixty thousand rows.
func TestATinyJobTellsNothingOfLargeOnes(t *testing.T) {
	tiny := lenetWork
	tiny.rows, tiny.workers, tiny.epoch, tiny.rate = 5, 1, 1, 500
	tiny.cold = 0.1
	r := tiny.run(1, steady)
	other := lenetWork
	other.network, other.macs = "other", 100*lenetWork.macs
	for _, w := range []workload{lenetWork, other} {
		if got := TimingOf(w.input(r)); got.Forecast != nil || got.Source != "platform maximum" {
			t.Errorf("%s: %s, %+v", w.network, got.Source, got.Forecast)
		}
	}
	if got := TimingOf(tiny.input(r)); got.Forecast == nil || got.Source != "history" {
		t.Errorf("the same again: %s", got.Source)
	}
}

// A row of a tiny network takes time for other things than its multiply-accumulates. The measured jobs: digits through
// 1,184 of them (in 38 ms with the first step, or long), and through the 37 million of ResNet-18 in 13 ms a row.
func TestATinyNetworkForecastsADeepOne(t *testing.T) {
	deep := lenetWork
	deep.network, deep.macs, deep.rows, deep.rate, deep.epoch = "resnet18", 37_000_000, 1437, 77, 1
	for name, rate := range map[string]float64{"three epochs": 18_900, "two hundred epochs": 88_000} {
		tiny := lenetWork
		tiny.network, tiny.macs, tiny.rows, tiny.rate, tiny.epoch = "tiny", 1184, 1437, rate, 3
		if rate > 50_000 {
			tiny.rows *= 200
		}
		k, ok := know(deep.input(tiny.run(1, steady)), disdel.TaskTrain)
		if likely, want := k.each*float64(k.units), 719/deep.rate; !ok || likely < want/4 || likely > want*4 {
			t.Errorf("%s: a round computes for %.3g s, want %.3g", name, likely, want)
		}
		if k, ok = know(tiny.input(deep.run(1, steady)), disdel.TaskTrain); !ok || k.each < 1e-6 {
			t.Errorf("%s: a row of the tiny network takes %.3g s after the deep one", name, k.each)
		}
	}
}

// A timeout near an activation's start-up makes many legs, of which one starts cold: forecasts went to minutes for
// seconds.
func TestShortLegsAreNotAllColdStarts(t *testing.T) {
	w := lenetWork
	w.epoch, w.cold, w.warm, w.workers = 1, 0.6, 0.02, 1
	w.rows = 24_000 // 8 s
	in := w.input(w.run(1, steady))
	in.Job.Resources.Timeout = disdel.Duration(sec(0.5))
	got := TimingOf(in)
	if got.Legs < 18 || got.Legs > 32 || got.Forecast.Duration.Likely > sec(30) {
		t.Errorf("%d legs, %v", got.Legs, got.Forecast.Duration)
	}
}

// Jobs that ended early, were resumed, or left activations out of their record are no whole jobs of the plan's size.
func TestForecastsOfUnusualPasts(t *testing.T) {
	whole := lenetWork.run(1, steady)
	want := TimingOf(lenetWork.input(whole)).Forecast.Duration.Likely.Seconds()
	early := lenetWork.run(2, steady)
	early.Rounds = early.Rounds[:2]
	early.Activations = early.Activations[:8]
	early.Phases.Total = early.Rounds[0].Duration + early.Rounds[1].Duration + sec(0.5)
	resumed := lenetWork.run(3, steady)
	resumed.Resumes, resumed.Phases.Total = 1, 10*resumed.Phases.Total
	thin := lenetWork.run(4, steady)
	thin.Activations, thin.Omitted = thin.Activations[:4], len(thin.Activations)-4
	failed := lenetWork.run(5, steady)
	failed.Status, failed.Phases.Total = disdel.StatusFailed, sec(1)
	for name, r := range map[string]disdel.Record{"early": early, "resumed": resumed, "thin": thin, "failed": failed} {
		got := TimingOf(lenetWork.input(r, whole)).Forecast.Duration.Likely.Seconds()
		if math.Abs(got-want) > 0.1*want {
			t.Errorf("%s: %v s, want %v s", name, got, want)
		}
	}
}

// Where training may stop early, the least is one round.
func TestForecastsOfJobsThatMayStopEarly(t *testing.T) {
	in := lenetWork.input(lenetWork.run(1, steady))
	usual := TimingOf(in).Forecast
	in.Job.Training.EarlyStop = &disdel.EarlyStop{Metric: "loss", Target: new(0.1)}
	got := TimingOf(in).Forecast
	if got.Duration.Likely != usual.Duration.Likely || got.Duration.Low > usual.Duration.Low/4 {
		t.Errorf("%+v, without early stop %+v", got.Duration, usual.Duration)
	}
}

// A job takes the sum of its parts; only what its workers do is done once for each wave of them.
func TestAForecastIsTheSumOfItsParts(t *testing.T) {
	p := parts{waves: 2, started: 1, rows: 10, aggregate: 100, evaluate: 1000, between: 10_000, outside: 100_000}
	if got := p.total(); got != 111_122 {
		t.Errorf("%v s, want 111122 s", got)
	}
}
