package estimator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel"
)

// drawnLoad is other programs' load beside a job: it is there throughout, or begins or ends in mid-job.
type drawnLoad struct {
	threads float64
	begins  bool
	ends    bool
	change  float64 // the share of the job's activations before its begin or end
}

func drawLoad(lot *rand.Rand, i int) (l drawnLoad) {
	if i%2 == 0 {
		return l
	}
	l.threads, l.change = float64(1+lot.IntN(6)), lot.Float64()
	l.begins, l.ends = i/2%4 == 2, i/2%4 == 3
	return l
}

// beside runs a workload beside a load on two processors. Its activations measure how long they wait for these, unless
// the kernel does not tell.
func (m *timedMachine) beside(w workload, load drawnLoad, tells bool) disdel.Record {
	w.processors = 2
	plan := w.plan()
	plan.Platform.Busy = load.threads
	power := 0.8 + 0.3*m.random.Float64()
	job, own := math.Exp(0.1*m.random.NormFloat64()), max(1, float64(w.workers)/2)
	change := int(load.change * float64(w.epoch*(w.workers+2)))
	var waited []float64
	m.id++
	r := w.run(m.id, func() float64 {
		now := 1.0
		if n := len(waited); !load.begins && !load.ends || load.begins == (n >= change) {
			now = math.Pow(slowdown(plan, disdel.TaskTrain), power)
		}
		waited = append(waited, now*own*math.Exp(0.05*m.random.NormFloat64()))
		return now * own * job * math.Exp(0.05*m.random.NormFloat64())
	})
	for i := range r.Activations {
		if tells {
			r.Activations[i].Slowdown = max(1, waited[i])
		}
	}
	r.Plan.Platform.Processors, r.Plan.Platform.Busy = 2, m.seen(load)
	return r
}

// seen is the load that is there when a job is planned.
func (m *timedMachine) seen(load drawnLoad) float64 {
	if load.begins {
		return 0
	}
	return load.threads * (0.9 + 0.2*m.random.Float64())
}

// kindsOfJobs are networks with the shape that the first job of each has.
func kindsOfJobs(lot *rand.Rand) (all []workload) {
	for i := range 6 {
		w := lenetWork
		w.network, w.workers, w.epoch = fmt.Sprint("network", i), 1+lot.IntN(3), 1+lot.IntN(3)
		w.rate *= 0.5 + 4*lot.Float64()
		all = append(all, w)
	}
	return all
}

func (w workload) changed(lot *rand.Rand) workload {
	switch lot.IntN(6) {
	case 0:
		w.workers = 1 + lot.IntN(4)
	case 1:
		w.batch = 32 << lot.IntN(3)
	case 2:
		w.epoch = 1 + lot.IntN(5)
	}
	return w
}

// The test draws sixty jobs of six kinds, half of them beside other programs whose load begins or ends at any time.
// Nine in ten are within their intervals. The upper end of an interval is at most 2.5 times its lower end in the
// median.
func TestTimeIntervalsHoldUnderDrawnLoad(t *testing.T) {
	inside, all := 0, 0
	var wide []float64
	for seed := range uint64(20) {
		lot := rand.New(rand.NewPCG(seed, 11))
		m, kinds := &timedMachine{random: lot}, kindsOfJobs(lot)
		var past []disdel.Record
		for _, w := range kinds {
			past = append(past, m.beside(w, drawnLoad{}, true))
		}
		for i := range 60 {
			w, load := kinds[lot.IntN(len(kinds))].changed(lot), drawLoad(lot, i)
			next := m.beside(w, load, true)
			f := TimingOf(m.input(w, next.Plan.Platform.Busy, past)).Forecast
			all++
			inside += btoi(f.Duration.Low <= next.Phases.Total && next.Phases.Total <= f.Duration.High)
			wide = append(wide, f.Duration.High.Seconds()/f.Duration.Low.Seconds())
			past = append([]disdel.Record{next}, past...)
		}
	}
	share := float64(inside) / float64(all)
	t.Logf("%.1f %% of %d jobs within the interval, high over low %.2f at the median", 100*share, all, median(wide))
	if share < 0.87 || share > 0.96 {
		t.Errorf("%.1f %% of the jobs within the interval, want 90", 100*share)
	}
	if m := median(wide); m > 2.5 {
		t.Errorf("intervals are as wide as %.2f times their lower end in the median", m)
	}
}

// Other programs' load refuses no second job of a kind: a budget that paid its twin is enough.
func TestABusyMachineRefusesNoTwin(t *testing.T) {
	for seed := range uint64(200) {
		lot := rand.New(rand.NewPCG(seed, 12))
		m := &timedMachine{random: lot}
		w := lenetWork
		w.workers, w.epoch, w.rate = 1+lot.IntN(4), 1+lot.IntN(5), w.rate*(0.5+4*lot.Float64())
		twin := m.beside(w, drawnLoad{}, lot.IntN(2) == 0)
		f := TimingOf(m.input(w, 10*lot.Float64(), []disdel.Record{twin})).Forecast
		for _, goal := range []bool{false, true} {
			if least := f.LeastCost(goal); least > twin.MeteredCost() {
				t.Fatalf("seed %d: the job is held to %.3g GB-s, its twin cost %.3g", seed, least, twin.MeteredCost())
			}
		}
	}
}

// A forecast says that the machine is busy and by how much that slows the job down, or neither.
func TestAForecastSaysHowBusyTheMachineIs(t *testing.T) {
	m := &timedMachine{random: rand.New(rand.NewPCG(1, 13))}
	w := lenetWork
	past := []disdel.Record{m.beside(w, drawnLoad{}, true)}
	if note := TimingOf(m.input(w, 0, past)).Forecast.Note; note != "" {
		t.Errorf("on a quiet machine: %q", note)
	}
	for _, busy := range []float64{2, 4, 6, 12} {
		quiet, f := TimingOf(m.input(w, 0, past)).Forecast, TimingOf(m.input(w, busy, past)).Forecast
		var threads, processors int
		var slower float64
		_, err := fmt.Sscanf(f.Note, "the machine is busy: %d threads of other programs want its %d processors. The job "+
			"takes about %f times as long as without them", &threads, &processors, &slower)
		want := f.Duration.Likely.Seconds() / quiet.Duration.Likely.Seconds()
		if err != nil || threads != int(busy) || processors != 2 || math.Abs(slower/want-1) > 0.1 {
			t.Errorf("%q: %v, want %.1f times", f.Note, err, want)
		}
	}
}

// However slow earlier jobs say that a load made them, a forecast expects at most so many times what its plan says.
func TestALoadIsExpectedToWorsenByALittle(t *testing.T) {
	for _, slowdown := range []float64{1, 1.5, 3, 30, 1000} {
		var past []disdel.Record
		for i := range 2 * loadJobs {
			r := lenetWork.run(i, steady)
			for j := range r.Activations {
				r.Activations[j].Slowdown = slowdown
			}
			past = append(past, r)
		}
		got := loadOf(lenetWork.input(past...))
		most := slowdown > loadWorsen*loadWorsen
		if got.factor < 1 || got.factor > loadWorsen+1e-9 || most && got.factor < loadWorsen-1e-9 {
			t.Errorf("all measured %g times: %g times is likely", slowdown, got.factor)
		}
	}
}

// Jobs that were planned under another load say little: a busy machine's spread is that of its own load, both ways.
func TestABusyMachinesSpreadIsWider(t *testing.T) {
	m := &timedMachine{random: rand.New(rand.NewPCG(1, 13))}
	past := []disdel.Record{m.beside(lenetWork, drawnLoad{}, true)}
	before := loadForecast{}
	for _, busy := range []float64{6, 12, 24} {
		in := m.input(lenetWork, busy, past)
		at := math.Log(slowdown(in.Plan, disdel.TaskTrain))
		got := loadOf(in)
		if got.more <= before.more || got.less <= before.less {
			t.Errorf("%g threads: %+v, with fewer threads %+v", busy, got, before)
		}
		if more, less := quietMore+busyMore*at, quietLess+busyLess*at; math.Abs(got.more/more-1) > 0.04 ||
			math.Abs(got.less/less-1) > 0.04 {
			t.Errorf("%g threads: %+v, without earlier jobs %.3f and %.3f", busy, got, more, less)
		}
		before = got
	}
}
