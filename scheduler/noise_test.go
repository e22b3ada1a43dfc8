package scheduler

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel"
)

// noisyJob draws the epochs of a job whose times follow a law of the workers, times a noise that is drawn.
type noisyJob struct {
	law   func(workers int) float64 // s for 1,000 rows
	noise float64                   // deviation of the logarithm of a time
	lot   *rand.Rand
}

func (n *noisyJob) epoch(workers, count int) disdel.Observation {
	took := n.law(workers) * math.Exp(n.noise*n.lot.NormFloat64())
	return disdel.Observation{
		Setting: disdel.Setting{Workers: workers, Memory: 256 * disdel.MB}, Rows: 1000, Duration: disdel.Millis(took * 1e9),
		Cost: 0.25 * float64(workers) * took, Epoch: float64(count),
	}
}

// input is a job with the least number of workers, and the epochs of earlier jobs with each of some numbers.
func (n *noisyJob) input(numbers []int, each int) Input {
	in := Input{
		Now:    disdel.Setting{Workers: numbers[0], Memory: 256 * disdel.MB},
		Bounds: Bounds{Least: 1, Most: 16, Batches: 64}, Goal: Goal{Epochs: 20}, Seed: n.lot.Uint64(),
	}
	for _, w := range numbers {
		for range each {
			in.Past = append(in.Past, n.epoch(w, len(in.Past)+1))
		}
	}
	return in
}

// last plays so many epochs and returns the workers after the last of them.
func (n *noisyJob) last(p Policy, in Input, count int) int {
	for i := range count {
		in.Seen = append(in.Seen, n.epoch(in.Now.Workers, i+1))
		in.Boundary = disdel.BoundaryEpoch
		in.Goal.Epochs--
		in.Seed++
		in.Now = DecideInBounds(p, in).Next
	}
	return in.Now.Workers
}

// noisyPolicies are the policies that choose workers by the times of epochs; draws is how many jobs a test plays.
var noisyPolicies = []struct {
	name  string
	fresh func() Policy
	draws int
	least int // epochs after which its first probes are over
}{
	{"coach", func() Policy { return Coach{} }, 200, 1},
	{"auto", func() Policy { return Auto{} }, 200, 1},
	{"elastic", func() Policy { return Elastic{} }, 200, 4},
	{"path", func() Policy { return Path{} }, 200, 1},
	{"siren", func() Policy { return &Siren{} }, 20, 1},
}

// If more workers are no faster, differences between measured times are noise, and no policy pays for them.
func TestNoiseBuysNoWorkers(t *testing.T) {
	for _, p := range noisyPolicies {
		t.Run(p.name, func(t *testing.T) {
			dearer := 0
			for seed := range uint64(p.draws) {
				lot := rand.New(rand.NewPCG(seed, 7))
				worse := 0.05 * float64(seed%2) // of the time, with each worker more
				n := noisyJob{lot: lot, noise: 0.02 + 0.08*lot.Float64(), law: func(w int) float64 {
					return 0.2 * (1 + worse*float64(w-2))
				}}
				numbers := []int{2, 3, 4, 5}[:2+lot.IntN(3)]
				if n.last(p.fresh(), n.input(numbers, 1+lot.IntN(3)), p.least+lot.IntN(10)) > 2 {
					dearer++
				}
			}
			t.Logf("%d of %d jobs ended with more workers", dearer, p.draws)
			if dearer > p.draws/20 {
				t.Errorf("%d of %d jobs ended with more workers, none of which is faster", dearer, p.draws)
			}
		})
	}
}

// A gain of half the speed is no noise.
func TestAClearGainBuysWorkers(t *testing.T) {
	for _, p := range noisyPolicies {
		t.Run(p.name, func(t *testing.T) {
			more := 0
			for seed := range uint64(p.draws) {
				n := noisyJob{lot: rand.New(rand.NewPCG(seed, 8)), noise: 0.05, law: func(w int) float64 {
					return 0.3 / min(1.5, 1+0.5*float64(w-2)/2)
				}}
				if w := n.last(p.fresh(), n.input([]int{2, 4}, 2), 4+n.lot.IntN(6)); w > 2 {
					more++
				}
			}
			t.Logf("%d of %d jobs ended with more workers", more, p.draws)
			if more < p.draws*95/100 {
				t.Errorf("%d of %d jobs ended with more workers, with which they are 1.5 times as fast", more, p.draws)
			}
		})
	}
}

// The times that coach bought three workers by on a busy machine: 0.21, 0.21, 0.23 and 0.19 s.
func TestFourNoisyTimesAreOne(t *testing.T) {
	times := map[int]float64{2: 0.21, 3: 0.21, 4: 0.23, 5: 0.19}
	for _, p := range noisyPolicies {
		n := noisyJob{lot: rand.New(rand.NewPCG(1, 1)), law: func(w int) float64 { return times[min(max(2, w), 5)] }}
		if got := n.last(p.fresh(), n.input([]int{2, 3, 4, 5}, 1), p.least); got > 2 {
			t.Errorf("%s goes on with %d workers", p.name, got)
		}
	}
}

// The fewest workers of a running job miss its deadline by no more than noise, and more workers keep it by as little:
// that is no reason to pay for more.
func TestNoiseAtADeadlineBuysNoWorkers(t *testing.T) {
	const draws = 200
	dearer := 0
	for seed := range uint64(draws) {
		lot := rand.New(rand.NewPCG(seed, 10))
		n := noisyJob{lot: lot, noise: 0.02 + 0.06*lot.Float64(), law: func(int) float64 { return 0.2 }}
		in := n.input([]int{2, 3, 4, 5}[:2+lot.IntN(3)], 1+lot.IntN(3))
		each := 0.2 * (0.95 + 0.1*lot.Float64()) / autoSpare // s for an epoch
		for i := range 8 {
			in.Seen = append(in.Seen, n.epoch(in.Now.Workers, i+1))
			in.Boundary, in.Seed = disdel.BoundaryEpoch, in.Seed+1
			in.Goal.Epochs--
			in.Goal.Deadline = disdel.Millis(each * in.Goal.Epochs * 1e9)
			in.Now = DecideInBounds(Auto{}, in).Next
		}
		if in.Now.Workers > 2 {
			dearer++
		}
	}
	t.Logf("%d of %d jobs ended with more workers", dearer, draws)
	if dearer > draws/20 {
		t.Errorf("%d of %d jobs ended with more workers, none of which is faster", dearer, draws)
	}
}

// Siren does not keep a number of workers that is known to be far slower and dearer, whatever the network draws.
func TestSirenDrawsNothingKnownToBeWorse(t *testing.T) {
	for seed := range uint64(4) {
		lot := rand.New(rand.NewPCG(seed, 9))
		slower := 1.5 + 4*lot.Float64()
		n := noisyJob{lot: lot, noise: 0.03, law: func(w int) float64 { return 0.12 * math.Pow(slower, float64(w-2)) }}
		in, p := n.input([]int{2, 3}, 3), &Siren{}
		for i := range 19 {
			in.Seen = append(in.Seen, n.epoch(in.Now.Workers, i+1))
			in.Boundary, in.Seed = disdel.BoundaryEpoch, in.Seed+1
			in.Goal.Epochs--
			if in.Now = DecideInBounds(p, in).Next; in.Now.Workers > 2 {
				t.Fatalf("seed %d: %d workers after epoch %d, %.1f times slower than 2", seed, in.Now.Workers, i+1, slower)
			}
		}
	}
}

// Half of the measured times keep the deadline, with any number of workers. A job then begins with the fewest.
func TestAutoBuysNoDeadlineByNoise(t *testing.T) {
	late := 0
	for seed := range uint64(200) {
		n := noisyJob{lot: rand.New(rand.NewPCG(seed, 11)), noise: 0.05, law: func(int) float64 { return 0.2 }}
		in := n.input([]int{2, 3, 4, 5}, 2)
		in.Goal.Deadline = disdel.Millis(0.2 / autoSpare * in.Goal.Epochs * 1e9) // which half of the times keep
		in.Boundary = disdel.BoundaryStart
		if DecideInBounds(Auto{}, in).Next.Workers > 2 {
			late++
		}
	}
	if late > 10 {
		t.Errorf("%d of 200 jobs begin with more workers, which are no faster", late)
	}
}

// The noise of times with one memory and number of workers is what it is, not less for being measured often.
func TestTheNoiseOfRepeatedMeasurementsIsFound(t *testing.T) {
	for _, deviation := range []float64{0.02, 0.1} {
		job := noisyJob{
			law: func(int) float64 { return 10 }, noise: deviation, lot: rand.New(rand.NewPCG(7, 7)),
		}
		m := memoriesOf(job.input([]int{2}, 400))
		if got := m.noise.deviation(); got < 0.9*deviation || got > 1.1*deviation {
			t.Errorf("%.3f is measured, %.3f was drawn", got, deviation)
		}
	}
}

// The time that no worker computes in is a part of the newest epoch, if its workers told what they computed.
func TestTimeBetweenRoundsIsMeasured(t *testing.T) {
	for compute, want := range map[disdel.Millis]float64{0: 0, 250: 0.75, 1000: 0} {
		s := speedsOf(Input{
			Now:    disdel.Setting{Workers: 2, Memory: 256 * disdel.MB},
			Bounds: Bounds{Least: 1, Most: 16}, Goal: Goal{Epochs: 20},
			Seen: []disdel.Observation{{
				Setting: disdel.Setting{Workers: 2, Memory: 256 * disdel.MB}, Rows: 1000, Duration: 1000, Compute: compute,
				Epoch: 1,
			}},
		})
		if s.between != want {
			t.Errorf("%d of 1000 are computed: %.2f of the time is between rounds, not %.2f", compute, s.between, want)
		}
	}
}

// The least loss is that of the smoothed ones, and a rise does not change it.
func TestTheLeastLossStays(t *testing.T) {
	s := ScaleIn{Workers: 2}
	least := math.Inf(1)
	for i, loss := range []float64{3, 2, 2.5, 1, 4, 4, 4} {
		s.Step(StepSeen{Loss: loss, Own: 1, Others: 1})
		if least = min(least, s.losses[i]); s.minimum != least {
			t.Errorf("after step %d the least of %v is %v", i, s.losses, s.minimum)
		}
	}
	if last := s.losses[len(s.losses)-1]; last <= least {
		t.Errorf("the losses %v do not rise in the end", s.losses)
	}
}
