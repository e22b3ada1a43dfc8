package scheduler

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// drawnLaw is a job whose epochs have a fixed part, one that workers share and one for what they exchange.
type drawnLaw struct {
	speedLaw
	shared speedConditions
	noise  float64
	parts  bool // epochs tell their parts
	lot    *rand.Rand
}

// drawLaw draws the parts of a time over two orders of magnitude, processors that are known or not, and the noise.
func drawLaw(seed uint64) drawnLaw {
	lot := rand.New(rand.NewPCG(seed, 31))
	part := func() float64 { return math.Pow(10, 2*lot.Float64()-1) }
	d := drawnLaw{speedLaw: speedLaw{part(), part(), part() / 5}, noise: 0.01 + 0.07*lot.Float64(), lot: lot}
	d.parts = lot.IntN(2) == 0
	if lot.IntN(2) == 0 {
		d.shared.Processors = 1 + lot.IntN(8)
	}
	return d
}

func (d drawnLaw) epoch(workers, count int) disdel.Observation {
	luck := func(s float64) disdel.Millis { return disdel.Millis(1e9 * s * math.Exp(d.noise*d.lot.NormFloat64())) }
	terms := d.shared.terms(workers)
	fixed, work, each := luck(d.fixed*terms[0]), luck(d.work*terms[1]), luck(d.each*terms[2])
	o := disdel.Observation{
		Setting: disdel.Setting{Workers: workers}, Rows: 1000, Duration: fixed + work + each, Epoch: float64(count),
	}
	if d.parts {
		o.Compute, o.Exchange = work+each, each
	}
	return o
}

// input has epochs of each of the numbers.
func (d drawnLaw) input(epochs int, numbers ...int) Input {
	in := Input{
		Bounds: Bounds{Least: 1, Most: 16, Batches: 64, Processors: d.shared.Processors}, Goal: Goal{Epochs: 10},
	}
	for _, w := range numbers {
		for range epochs {
			in.Past = append(in.Past, d.epoch(w, len(in.Past)+1))
		}
	}
	return in
}

func anyNumber(int) bool { return true }

// For drawn fixed and exchange costs, the number that pays is not much slower than any measured number. Of numbers that
// are as fast, it is the smaller one.
func TestTheNumberThatPaysIsAsFastAsTheBest(t *testing.T) {
	const draws = 400
	slower, dearer, told := 0, 0, 0
	for seed := range uint64(draws) {
		d := drawLaw(seed)
		numbers := []int{1, 2, 3, 4, 6, 8, 12, 16}
		d.lot.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
		numbers = numbers[:1+d.lot.IntN(4)]
		s, ok := scalingOf(d.input(1+d.lot.IntN(4), numbers...), anyNumber)
		if !ok {
			if d.parts || len(numbers) > 1 {
				t.Errorf("seed %d: nothing is said of %v", seed, numbers)
			}
			continue
		}
		told++
		best, fewest := math.Inf(1), 99
		for _, w := range numbers {
			best = min(best, d.at(w, d.shared))
		}
		for _, w := range numbers {
			if d.at(w, d.shared) <= best {
				fewest = min(fewest, w)
			}
		}
		got := d.at(s.pays.workers, d.shared)
		if got > best*(1+3*noiseSure*d.noise)*autoSlower {
			slower++
			t.Logf("seed %d: %d workers of %v, %.2f times the best", seed, s.pays.workers, numbers, got/best)
		}
		if s.pays.workers > fewest && got > best {
			dearer++
		}
	}
	t.Logf("of %d: %d slower than the best that was measured, %d with more workers and slower", told, slower, dearer)
	if slower > told/20 || dearer > told/20 {
		t.Errorf("of %d: %d are slower, %d dearer", told, slower, dearer)
	}
}

// Where exchange takes most of the time, one worker pays, though nobody has tried it.
func TestOneWorkerPaysWhereExchangeTakesTheTime(t *testing.T) {
	one, draws := 0, 200
	for seed := range uint64(draws) {
		d := drawLaw(seed)
		w := 3 + d.lot.IntN(10)
		d.parts = true
		alone := d.fixed + d.work + d.each
		d.each = alone * (2 + 8*d.lot.Float64()) / float64(w) // of a worker, so that these take at least twice as long
		s, ok := scalingOf(d.input(2, w), anyNumber)
		if best := d.bestOf(16); ok && d.at(s.pays.workers, d.shared) <= 1.3*d.at(best, d.shared) {
			one++
		} else {
			t.Logf("seed %d: %d workers, %d measured, %d best", seed, s.pays.workers, w, best)
		}
	}
	if one < draws*95/100 {
		t.Errorf("%d of %d are told a number that is nearly as fast as the best", one, draws)
	}
}

// bestOf is the fastest number of workers up to a bound, in truth.
func (d drawnLaw) bestOf(most int) int {
	best := 1
	for w := 2; w <= most; w++ {
		if d.at(w, d.shared) < d.at(best, d.shared) {
			best = w
		}
	}
	return best
}

// Where nothing but noise tells times apart, the fewest workers pay.
func TestNoiseMakesNoNumberPay(t *testing.T) {
	more, draws := 0, 400
	for seed := range uint64(draws) {
		d := drawLaw(seed)
		d.work, d.each = 0.001*d.fixed, 0
		if s, ok := scalingOf(d.input(1+d.lot.IntN(3), 1, 2, 4), anyNumber); !ok || s.pays.workers > 1 {
			more++
		}
	}
	if more > draws/20 {
		t.Errorf("%d of %d are told to take more workers, which are no faster", more, draws)
	}
}

// One function says what estimate prints, what a default job begins with and what policy auto begins with.
func TestEstimateDefaultAndAutoAgree(t *testing.T) {
	for seed := range uint64(40) {
		d := drawLaw(seed)
		d.shared.Processors = 0
		in := planInput(t)
		in.Platform.Pool, in.Data.Train = 0, 60000
		for _, w := range []int{1, 2, 4}[d.lot.IntN(2):] {
			in.History = append(in.History, ranBy(in, d, w))
		}
		s := ScalingOf(in)
		p, err := NewPlan(in)
		if err != nil || s == nil {
			t.Fatal(err, s)
		}
		in.Job.Distribution.Policy = "auto"
		auto, err := NewPlan(in)
		if err != nil {
			t.Fatal(err)
		}
		if p.Workers != s.Workers || auto.Workers != s.Workers {
			t.Errorf("seed %d: estimate %d, default %d, auto %d", seed, s.Workers, p.Workers, auto.Workers)
		}
	}
}

// ranBy is a job of three epochs, whose activations tell what they computed and exchanged.
func ranBy(in PlanInput, d drawnLaw, workers int) disdel.Record {
	r := ran(in, workers, 1, 1, 1)
	r.Job.Distribution.Workers = workers
	rows := float64(in.Data.Train) / 1000
	for i := range r.Rounds {
		o := d.epoch(workers, i+1)
		r.Rounds[i].Duration = disdel.Millis(rows*float64(o.Duration)) + disdel.Millis(time.Second)
		for k := range r.Activations {
			if a := &r.Activations[k]; a.Round == i && a.Task == disdel.TaskTrain {
				a.Cold = false
				a.Phases = map[string]disdel.Millis{
					"compute": disdel.Millis(rows * float64(o.Compute)), "exchange": disdel.Millis(rows * float64(o.Exchange)),
				}
			}
		}
	}
	return r
}

// A job whose only epoch started cold tells something, too: six workers that exchange every step took 13 times as long
// as one computes.
func TestAJobOfOneEpochTells(t *testing.T) {
	d := drawnLaw{speedLaw: speedLaw{0.02, 0.7, 1.5}, noise: 0.01, parts: true, lot: rand.New(rand.NewPCG(1, 1))}
	in := d.input(1, 6)
	in.Past[0].Cold = disdel.Millis(500 * time.Millisecond)
	in.Past[0].Duration += in.Past[0].Cold
	s, ok := scalingOf(in, anyNumber)
	if !ok || s.pays.workers != 1 {
		t.Fatalf("%v: %+v", ok, s.pays)
	}
	all := s.report().Epochs
	if got, six := all[0], all[5]; got.Measured || !six.Measured || six.Exchange < 8*six.Duration/10 ||
		six.Exchange > six.Duration {
		t.Errorf("%+v, %+v", got, six)
	}
	if text := s.chosen().why; !strings.Contains(text, "1 worker") {
		t.Error(text)
	}
}
