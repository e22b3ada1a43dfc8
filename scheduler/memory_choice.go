package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler/schedule"
)

// memories tell how the memory of train actions changes a job's times, as seen in this job and earlier ones. It
// matters on platforms that give processors in proportion to memory. Two memories are compared by epochs with equal
// numbers of workers. In the first epoch of a new memory every worker starts cold, so only the second one counts.
type memories struct {
	own disdel.Bytes // of the job's first epoch: the unit of other times
	// estimated says that own comes from the estimate: the job file gives no memory.
	estimated bool
	times     map[disdel.Bytes]map[int][]float64 // of 1,000 rows, by memory and workers
	tried     map[disdel.Bytes]int               // epochs of this job, by memory
	noise     timeNoise                          // of one measurement
	// slower is the time with a memory, divided by the time with own. More memory counts only if it is clearly faster.
	slower   map[disdel.Bytes]float64
	variance map[disdel.Bytes]float64 // of the logarithm of slower, over that of one measurement
}

// Constants of the choice of a memory.
const (
	memoryGain   = 0.05 // of the time: more memory must gain at least this
	memoryEpochs = 4    // that must be left: one cold, one that counts, and two that gain
	memoryTwice  = 2    // epochs of a memory, after which it is not tried again
)

func memoriesOf(in Input) memories {
	m := memories{own: in.Now.Memory, times: map[disdel.Bytes]map[int][]float64{}, tried: map[disdel.Bytes]int{}}
	limit := in.Bounds.Memory
	if len(in.Seen) > 0 {
		m.own, limit = in.Seen[0].Setting.Memory, cmp.Or(in.Seen[0].Limit, limit)
	}
	if m.own == 0 {
		m.own, m.estimated = limit, true
	}
	if m.own <= 0 {
		return m
	}
	for _, e := range epochs(in.Past) {
		m.take(e)
	}
	for _, e := range epochs(in.Seen) {
		m.tried[m.of(e)]++
		m.take(e)
	}
	m.measureNoise()
	m.slower, m.variance = map[disdel.Bytes]float64{m.own: 1}, map[disdel.Bytes]float64{}
	for memory, by := range m.times {
		if ratio, variance, ok := ratioOf(by, m.times[m.own]); ok && memory != m.own {
			m.slower[memory], m.variance[memory] = ratio, variance
		}
	}
	m.dropNoise()
	return m
}

// of returns the memory of an epoch. If the job's memory comes from the estimate, so does that of the epoch.
func (m *memories) of(e epoch) disdel.Bytes {
	switch {
	case e.memory > 0:
		return e.memory
	case m.estimated:
		return m.own
	default:
		return e.limit
	}
}

func (m *memories) take(e epoch) {
	memory, t := m.of(e), float64(e.each())
	if e.disturbed || memory <= 0 || t <= 0 {
		return
	}
	if m.times[memory] == nil {
		m.times[memory] = map[int][]float64{}
	}
	m.times[memory][e.workers] = append(m.times[memory][e.workers], t)
}

// measureNoise compares times that were measured twice with the same memory and workers.
func (m *memories) measureNoise() {
	for _, memory := range slices.Sorted(maps.Keys(m.times)) {
		for _, workers := range slices.Sorted(maps.Keys(m.times[memory])) {
			all := m.times[memory][workers]
			for i := 1; i < len(all); i++ {
				m.noise.see(all[i], math.Exp(meanLog(all[:i])), 1/float64(i))
			}
		}
	}
}

// ratioOf returns the time with one memory divided by the time with another: the geometric mean over the numbers of
// workers that both were measured with. variance is that of its logarithm, divided by that of one measurement.
func ratioOf(one, other map[int][]float64) (ratio, variance float64, ok bool) {
	sum, n := 0.0, 0.0
	for _, workers := range slices.Sorted(maps.Keys(one)) {
		if base := other[workers]; len(base) > 0 {
			sum += meanLog(one[workers]) - meanLog(base)
			variance += 1/float64(len(one[workers])) + 1/float64(len(base))
			n++
		}
	}
	if n == 0 {
		return 0, 0, false
	}
	return math.Exp(sum / n), variance / n / n, true
}

func meanLog(all []float64) float64 {
	sum := 0.0
	for _, t := range all {
		sum += math.Log(t)
	}
	return sum / float64(len(all))
}

// dropNoise treats more memory as equally fast unless it is clearly faster.
func (m *memories) dropNoise() {
	minimum, its := math.Inf(1), 0.0
	for _, memory := range m.known() {
		t, variance := m.slower[memory], m.variance[memory]
		if t > (1-memoryGain)*minimum || !m.noise.clear(t, minimum, variance, its) {
			m.slower[memory] = minimum
			continue
		}
		minimum, its = t, variance
	}
	own := m.slower[m.own]
	for memory := range m.slower {
		m.slower[memory] /= own
	}
}

// known returns the memories whose times are known, in ascending order.
func (m *memories) known() []disdel.Bytes { return slices.Sorted(maps.Keys(m.slower)) }

// ratio returns the time with the memory of a setting divided by the time with own. It is 1 if nothing is known about
// it.
func (m *memories) ratio(memory disdel.Bytes) float64 {
	if t, ok := m.slower[memory]; ok {
		return t
	}
	return 1
}

// several tells whether there is anything to choose.
func (m *memories) several() bool { return len(m.slower) > 1 }

// setting returns how a setting names a memory: 0 is by the estimate.
func (m *memories) setting(memory disdel.Bytes) disdel.Bytes {
	if m.estimated && memory == m.own {
		return 0
	}
	return memory
}

// another returns the next memory to measure: twice the largest known one if that was clearly faster, or half of the
// smallest one if that was no slower. It returns 0 if no memory is worth an epoch.
func (m *memories) another(b Bounds, workers int) disdel.Bytes {
	known := m.known()
	if len(known) == 0 {
		return 0
	}
	maximum, largest := cmp.Or(b.HighestMemory, math.MaxInt64), known[len(known)-1]
	if b.Pool > 0 {
		maximum = min(maximum, b.Pool/disdel.Bytes(max(1, workers)))
	}
	faster := largest == m.own || m.slower[largest] < m.slower[known[len(known)-2]]
	if twice := 2 * largest; faster && twice <= maximum && m.tried[twice] < memoryTwice {
		return twice
	}
	smallest := known[0]
	asFast := smallest == m.own || m.slower[smallest] <= m.slower[known[1]]
	half := smallest / 2 / disdel.MB * disdel.MB
	if !m.estimated && asFast && half > 0 && half >= max(b.LeastMemory, b.Estimate) && m.tried[half] < memoryTwice {
		return half
	}
	return 0
}

// better returns a memory that is known to be better than another one: as fast and smaller, or far faster if the job
// has no budget.
func (m *memories) better(than disdel.Bytes, budget bool) (memory disdel.Bytes, ok bool) {
	for _, other := range m.known() {
		smaller := other < than && m.slower[other] <= m.slower[than]
		faster := !budget && speedsDrift*m.slower[other] < m.slower[than]
		if (smaller || faster) && (!ok || m.slower[other] < m.slower[memory]) {
			memory, ok = other, true
		}
	}
	return memory, ok
}

// addTo adds the known memories to a world, in which own is unit.
func (m *memories) addTo(w *schedule.World, unit float64) {
	if !m.several() {
		return
	}
	for _, memory := range m.known() {
		at := unit * float64(memory) / float64(m.own)
		w.Memories = append(w.Memories, schedule.Measured{Memory: at, Slower: m.slower[memory]})
	}
	w.LeastMemory, w.MostMemory = w.Memories[0].Memory, w.Memories[len(w.Memories)-1].Memory
	w.Step = w.LeastMemory / 8
}

// nearest returns the measured memory that is nearest to the choice of a simulated world. ok is false if it chose
// none.
func (m *memories) nearest(unit float64, c schedule.Choice) (memory disdel.Bytes, ok bool) {
	if !m.several() || c.Memory <= 0 {
		return 0, false
	}
	want := math.Log(c.Memory / unit)
	off := func(memory disdel.Bytes) float64 {
		return math.Abs(math.Log(float64(memory)/float64(m.own)) - want)
	}
	return slices.MinFunc(m.known(), func(a, b disdel.Bytes) int { return cmp.Compare(off(a), off(b)) }), true
}

// tryMemory decides to measure another memory, with the best number of workers so far. If ok is false, why gives the
// reason if there is one.
func (s *speeds) tryMemory(in Input) (d disdel.Decision, why string, ok bool) {
	if len(in.Seen) == 0 || s.repeat != "" || len(s.mean) < 2 && s.bounds.Least < s.bounds.Most {
		return d, "", false
	}
	alike := slices.DeleteFunc(s.measured(s.candidates()), func(t timed) bool {
		return len(s.memories.times[s.memories.own][t.workers]) == 0
	})
	if len(alike) == 0 {
		return d, "", false
	}
	best := slices.MinFunc(s.worthwhile(s.payable(in, alike)), by(func(t timed) float64 { return t.time }))
	memory := s.memories.another(in.Bounds, best.workers)
	if memory == 0 {
		return d, "", false
	}
	if why := s.keepsMemory(in, best, memory); why != "" {
		return d, fmt.Sprintf("%v each was not tried: %s", memory, why), false
	}
	d = unchanged(in)
	d.Next.Workers, d.Next.Memory = best.workers, memory
	d.Why = fmt.Sprintf("%s of %v are measured, to compare with %v each", workersText(best.workers), memory,
		s.memories.own)
	if best.workers == 1 {
		d.Why = fmt.Sprintf("1 worker of %v is measured, to compare with %v", memory, s.memories.own)
	}
	return d, "", true
}

// keepsMemory returns why another memory is not tried, "" if it may be.
func (s *speeds) keepsMemory(in Input, best timed, memory disdel.Bytes) string {
	remaining := in.Goal.Epochs
	if remaining < memoryEpochs {
		return "too few epochs are left"
	}
	all := s.spent + remaining*s.rows/1000*best.time
	if s.lost+s.coldest > speedsProbes*all {
		return "probes have lost what they may"
	}
	epoch := s.rows / 1000 * best.time * float64(best.workers) * s.price // GB-s with own
	more := memoryTwice * epoch * (float64(memory)/float64(s.memories.own) - 1)
	if in.Goal.Cost > 0 && more > speedsProbes*in.Goal.Cost {
		return "it would cost more of the budget than probes may"
	}
	return ""
}
