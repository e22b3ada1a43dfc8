package scheduler

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// What memory does to times is known where two memories were measured with equal workers, and counts where it is plain.
func TestMemoryIsKnownByEqualWorkers(t *testing.T) {
	seen := func(workers int, memory disdel.Bytes, seconds float64, cold bool) disdel.Observation {
		o := disdel.Observation{
			Setting: disdel.Setting{Workers: workers, Memory: memory * disdel.MB}, Rows: 1000,
			Duration: disdel.Millis(seconds * 1e9), Epoch: 1,
		}
		if cold {
			o.Cold = 1
		}
		return o
	}
	for name, c := range map[string]struct {
		own  disdel.Bytes
		past []disdel.Observation
		want map[disdel.Bytes]float64
	}{
		"nothing": {512, nil, map[disdel.Bytes]float64{512: 1}},
		"it is by the estimate, which is not known": {
			0, []disdel.Observation{seen(2, 512, 9, false), seen(2, 256, 9, false)}, map[disdel.Bytes]float64{},
		},
		"twice as fast": {
			512,
			[]disdel.Observation{seen(2, 512, 10, false), seen(2, 1024, 5, false), seen(4, 1024, 9, false)},
			map[disdel.Bytes]float64{512: 1, 1024: 0.5},
		},
		"other workers": {
			512, []disdel.Observation{seen(2, 512, 10, false), seen(4, 1024, 5, false)}, map[disdel.Bytes]float64{512: 1},
		},
		"cold": {
			512, []disdel.Observation{seen(2, 512, 10, false), seen(2, 1024, 5, true)}, map[disdel.Bytes]float64{512: 1},
		},
		"no faster": {
			512,
			[]disdel.Observation{seen(2, 512, 10, false), seen(2, 1024, 9.8, false), seen(2, 256, 10.1, false)},
			map[disdel.Bytes]float64{256: 1, 512: 1, 1024: 1},
		},
		"two numbers": {
			512, []disdel.Observation{
				seen(2, 512, 10, false), seen(2, 256, 20, false), seen(4, 512, 8, false), seen(4, 256, 12, false),
			}, map[disdel.Bytes]float64{256: math.Sqrt(3), 512: 1},
		},
	} {
		m := memoriesOf(Input{Now: disdel.Setting{Workers: 2, Memory: c.own * disdel.MB}, Past: c.past})
		if len(m.slower) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, m.slower, c.want)
		}
		for memory, want := range c.want {
			if got := m.slower[memory*disdel.MB]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %v takes %g times as long, want %g", name, memory*disdel.MB, got, want)
			}
		}
	}
}

// memoryJob draws the epochs of a job whose memory is left to the estimate, on a platform where memory brings
// processors: twice the memory takes gain times as long, up to a whole processor.
type memoryJob struct {
	noisyJob
	gain  float64
	whole disdel.Bytes
}

const estimatedMemory = 256 * disdel.MB

func (m *memoryJob) epoch(now disdel.Setting, count int, cold bool) disdel.Observation {
	limit := now.Memory
	if limit == 0 {
		limit = estimatedMemory
	}
	o := m.noisyJob.epoch(now.Workers, count)
	times := math.Pow(m.gain, math.Log2(float64(min(limit, m.whole))/float64(estimatedMemory)))
	o.Duration = disdel.Millis(float64(o.Duration) * times)
	o.Setting, o.Limit = now, limit
	if cold {
		o.Cold = disdel.Millis(20e6)
		o.Duration += o.Cold
	}
	o.Cost = float64(now.Workers) * float64(limit) / float64(disdel.GB) * o.Duration.Seconds()
	return o
}

// played is a job of so many epochs under siren: its settings and reasons.
func (m *memoryJob) played(count int, budget float64) (all []disdel.Setting, why []string) {
	in := Input{
		Now: disdel.Setting{Workers: 2}, Seed: m.lot.Uint64(),
		Bounds: Bounds{
			Least: 1, Most: 4, Batches: 64, LeastMemory: 128 * disdel.MB, HighestMemory: 2 * disdel.GB, Pool: 16 * disdel.GB,
		},
		Goal: Goal{Epochs: float64(count), Cost: budget},
	}
	p, warm := &Siren{}, map[disdel.Bytes]bool{0: true}
	for i := range count {
		o := m.epoch(in.Now, i+1, !warm[in.Now.Memory])
		warm[in.Now.Memory] = true
		in.Bounds.Memory, in.Bounds.Estimate = o.Limit, 200*disdel.MB
		in.Seen, in.Boundary = append(in.Seen, o), disdel.BoundaryEpoch
		in.Goal.Epochs--
		if budget > 0 {
			in.Goal.Cost -= o.Cost
		}
		in.Seed++
		d := DecideInBounds(p, in)
		in.Now = d.Next
		all, why = append(all, d.Next), append(why, d.Why)
	}
	return all, why
}

// Siren chooses memory for a job file without memory and without a history. It takes more than the estimate only if
// that is faster, however the times scatter.
func TestSirenChoosesMemoryOfADefaultJob(t *testing.T) {
	const draws = 20
	right := map[bool]int{}
	for seed := range uint64(2 * draws) {
		lot, faster := rand.New(rand.NewPCG(seed, 5)), seed%2 == 0
		m := memoryJob{noisyJob: noisyJob{lot: lot, noise: 0.01 + 0.03*lot.Float64()}, gain: 1, whole: disdel.GB}
		m.law = func(w int) float64 { return 0.3 + 2/float64(w) }
		if faster {
			m.gain = 0.5 + 0.2*lot.Float64()
		}
		all, why := m.played(30, 0)
		last := all[len(all)-1]
		if faster && last.Memory >= disdel.GB || !faster && last.Memory == 0 {
			right[faster]++
		} else {
			t.Logf("seed %d, %.2f: %+v\n%s", seed, m.gain, last, strings.Join(why, "\n"))
		}
	}
	if right[true] < draws*9/10 || right[false] < draws*9/10 {
		t.Errorf("of %d: %d take the memory that is faster, %d keep the estimate's", draws, right[true], right[false])
	}
}

// A budget is kept, and what is tried of memory costs no more than a part of it.
func TestSirenTriesMemoryWithinABudget(t *testing.T) {
	m := memoryJob{noisyJob: noisyJob{lot: rand.New(rand.NewPCG(3, 3)), noise: 0.02}, gain: 0.5, whole: disdel.GB}
	m.law = func(w int) float64 { return 0.3 + 2/float64(w) }
	all, why := m.played(20, 200)
	if last := all[len(all)-1]; last.Memory < 512*disdel.MB {
		t.Errorf("%+v: %s", last, strings.Join(why, "\n"))
	}
	all, why = m.played(20, 12)
	for i, s := range all {
		if s.Memory > 2*estimatedMemory {
			t.Errorf("epoch %d: %+v: %s", i, s, why[i])
		}
	}
}

// A short job keeps its memory, and says why.
func TestSirenSaysWhyMemoryStays(t *testing.T) {
	m := memoryJob{noisyJob: noisyJob{lot: rand.New(rand.NewPCG(4, 4)), noise: 0.02}, gain: 0.5, whole: disdel.GB}
	m.law = func(w int) float64 { return 0.3 + 2/float64(w) }
	all, why := m.played(4, 0)
	for i := range all {
		if all[i].Memory != 0 {
			t.Errorf("epoch %d: %+v", i, all[i])
		}
	}
	if text := strings.Join(why, "\n"); !strings.Contains(text, "512 MB each was not tried: too few epochs are left") {
		t.Error(text)
	}
}
