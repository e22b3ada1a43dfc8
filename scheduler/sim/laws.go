package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Law gives the time of an epoch of 1,000 rows by the number of workers: policies that use times are compared on
// laws, without a cloud.
type Law struct {
	Name string
	// Seconds returns the time of an epoch, counted from 0, and its part for cold starts; news is how many workers are
	// new.
	Seconds func(workers, epoch, news int, lot *rand.Rand) (took, cold float64)
}

// Laws are six cases for policies: a merge that grows with the workers, two processors, cold starts, an epoch that
// something else slows down, a platform that becomes slower half way, and stragglers.
func Laws() []Law {
	amdahl := func(w int) float64 { return 100/float64(w) + float64(w) }
	cores := func(w int) float64 { return 100/float64(min(w, 2)) + 0.5*float64(w) }
	return []Law{
		{"merge", func(w, _, _ int, _ *rand.Rand) (float64, float64) { return amdahl(w), 0 }},
		{"cores", func(w, _, _ int, _ *rand.Rand) (float64, float64) { return cores(w), 0 }},
		{"cold", func(w, _, news int, _ *rand.Rand) (float64, float64) {
			if news > 0 {
				return amdahl(w) + 3, 3
			}
			return amdahl(w), 0
		}},
		{"spike", func(w, _, _ int, lot *rand.Rand) (float64, float64) {
			if lot.IntN(10) == 0 {
				return 2 * amdahl(w), 0
			}
			return amdahl(w), 0
		}},
		{"drift", func(w, epoch, _ int, _ *rand.Rand) (float64, float64) {
			if epoch >= 20 {
				return 1.5 * cores(w), 0
			}
			return cores(w), 0
		}},
		{"straggler", func(w, _, _ int, lot *rand.Rand) (float64, float64) {
			slowest := 0.0
			for range w {
				slowest = max(slowest, math.Exp(0.1*lot.NormFloat64()))
			}
			return 100/float64(w)*slowest + float64(w), 0
		}},
	}
}

// Played is the result of a job under a policy.
type Played struct {
	Seconds   float64
	Cost      float64 // workers times seconds
	Workers   []int   // of each epoch
	Reversals int     // changes from more to fewer workers or back
}

// Play runs so many epochs of the law under a policy, from start up to maximum workers.
func (l Law) Play(p scheduler.Policy, start, maximum, epochs int, seed uint64) Played {
	lot := rand.New(rand.NewPCG(seed, 16))
	in := scheduler.Input{Boundary: disdel.BoundaryEpoch, Now: disdel.Setting{Workers: start}}
	in.Bounds = scheduler.Bounds{Least: 1, Most: maximum, Batches: maximum, MostReason: "one batch a worker"}
	var out Played
	before, way := start, 0
	for e := range epochs {
		n := in.Now.Workers
		took, cold := l.Seconds(n, e, n-before, lot)
		out.Seconds, out.Cost = out.Seconds+took, out.Cost+took*float64(n)
		out.Workers = append(out.Workers, n)
		if n != before {
			if way*(n-before) < 0 {
				out.Reversals++
			}
			way = n - before
		}
		in.Seen = append(in.Seen, disdel.Observation{
			Round: e, Setting: in.Now, Rows: 1000, Epoch: float64(e + 1), Duration: seconds(took), Cold: seconds(cold),
			Cost: took * float64(n),
		})
		in.Goal.Epochs = float64(epochs - e - 1)
		before, in.Now = n, scheduler.DecideInBounds(p, in).Next
	}
	return out
}

func seconds(s float64) disdel.Millis { return disdel.Millis(s * float64(time.Second)) }

// BestFixed plays the fixed number of workers with the least time.
func (l Law) BestFixed(maximum, epochs int, seed uint64) Played {
	var best Played
	for n := 1; n <= maximum; n++ {
		if p := l.Play(scheduler.Static{}, n, maximum, epochs, seed); n == 1 || p.Seconds < best.Seconds {
			best = p
		}
	}
	return best
}
