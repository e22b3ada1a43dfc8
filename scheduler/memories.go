package scheduler

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler/schedule"
)

// memories are what other memories of a train action do to a job's times, as far as this job and earlier ones have
// shown: on a platform that gives processors in proportion to memory they do much, on another nothing. Nothing is
// known of a memory that no epoch had with a number of workers that another memory was measured with too, and nothing
// at all of a job whose memory is left to the estimate. A change of memory is no probe: every worker starts cold in it.
type memories struct {
	own    disdel.Bytes             // of the job's first epoch: times are told as with this one
	slower map[disdel.Bytes]float64 // time over that with own; more memory only counts where it is clearly faster
}

// memoryGain is how much less time more memory has to take to be worth anything.
const memoryGain = 0.05

// memoriesOf compares epochs with equal numbers of workers.
func memoriesOf(in Input) memories {
	m := memories{own: in.Now.Memory}
	if len(in.Seen) > 0 {
		m.own = in.Seen[0].Setting.Memory
	}
	if m.own <= 0 {
		return m
	}
	times := map[disdel.Bytes]map[int][]float64{} // by memory and workers
	for _, seen := range [][]disdel.Observation{in.Past, in.Seen} {
		for _, e := range epochs(seen) {
			if e.disturbed || e.memory <= 0 {
				continue
			}
			if times[e.memory] == nil {
				times[e.memory] = map[int][]float64{}
			}
			times[e.memory][e.workers] = append(times[e.memory][e.workers], float64(e.each()))
		}
	}
	m.slower = map[disdel.Bytes]float64{m.own: 1}
	for memory, by := range times {
		if ratio, ok := ratioOf(by, times[m.own]); ok && memory != m.own {
			m.slower[memory] = ratio
		}
	}
	m.plainly()
	return m
}

// ratioOf is the time with one memory over that with another: the geometric mean over the numbers of workers that both
// were measured with, of the least times, since what disturbs makes times longer.
func ratioOf(one, other map[int][]float64) (ratio float64, ok bool) {
	sum, n := 0.0, 0
	for _, workers := range slices.Sorted(maps.Keys(one)) {
		if base := other[workers]; len(base) > 0 {
			sum += math.Log(slices.Min(one[workers]) / slices.Min(base))
			n++
		}
	}
	return math.Exp(sum / float64(max(1, n))), n > 0
}

// plainly has more memory be as fast as less where it is not clearly faster.
func (m *memories) plainly() {
	least := math.Inf(1)
	for _, memory := range slices.Sorted(maps.Keys(m.slower)) {
		if t := m.slower[memory]; t > (1-memoryGain)*least {
			m.slower[memory] = least
		}
		least = m.slower[memory]
	}
	own := m.slower[m.own]
	for memory := range m.slower {
		m.slower[memory] /= own
	}
}

// of is the time with a memory over that with own; 1 where nothing is known of it.
func (m *memories) of(memory disdel.Bytes) float64 {
	if t, ok := m.slower[memory]; ok {
		return t
	}
	return 1
}

// several tells whether there is anything to choose.
func (m *memories) several() bool { return len(m.slower) > 1 }

// into tells a world what is known, unit being own there.
func (m *memories) into(w *schedule.World, unit float64) {
	if !m.several() {
		return
	}
	for _, memory := range slices.Sorted(maps.Keys(m.slower)) {
		at := unit * float64(memory) / float64(m.own)
		w.Memories = append(w.Memories, schedule.Measured{Memory: at, Slower: m.slower[memory]})
	}
	w.LeastMemory, w.MostMemory = w.Memories[0].Memory, w.Memories[len(w.Memories)-1].Memory
	w.Step = w.LeastMemory / 8
}

// nearest is the memory that was measured and is nearest to what a world's choice has; 0: nothing is chosen.
func (m *memories) nearest(unit float64, c schedule.Choice) disdel.Bytes {
	if !m.several() || c.Memory <= 0 {
		return 0
	}
	want := math.Log(c.Memory / unit)
	off := func(memory disdel.Bytes) float64 {
		return math.Abs(math.Log(float64(memory)/float64(m.own)) - want)
	}
	return slices.MinFunc(slices.Sorted(maps.Keys(m.slower)),
		func(a, b disdel.Bytes) int { return cmp.Compare(off(a), off(b)) })
}
