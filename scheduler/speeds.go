package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// speeds are what a job's epochs so far say of how long 1,000 rows take with how many workers. An epoch of another
// number is a probe, whose work is none the less done: it is compared by its rows, so that no probe needs a size of its
// own (Coach's do not keep the work fixed: with twice the workers they do twice as much).
type speeds struct {
	bounds   Bounds
	memories memories
	mean     map[int]float64 // time of 1,000 rows by workers, as a Millis; newer ones weigh more
	variance map[int]float64 // of these means, over that of one measurement
	noise    timeNoise       // of one measurement
	now      int             // workers of the newest epoch
	rows     float64         // of it
	price    float64         // GB-s of a worker for that unit of time, as the newest epoch had it; 0: not known
	several  bool            // epochs are several rounds, which are fewer with more workers
	between  float64         // part of the newest epoch's time in which no worker computed

	repeat  string  // why the same is measured once more; "": it is not
	doubted float64 // time of the epoch that this is for
	off     int     // epochs in a row that were far from what was measured before

	spent float64 // time of all epochs
	lost  float64 // time of probes beyond what the best number would have taken

	coldest float64 // longest start of a container
}

// What speeds go by.
const (
	speedsNewest = 0.4 // of the newest time in the mean of its number
	speedsDrift  = 1.2 // times the mean, or its inverse: so often in a row, and the platform has become another
	speedsInARow = 3
	speedsProbes = 0.1  // of the job's time that probes may lose
	speedsReach  = 2    // times the largest number measured: beyond, the law says nothing
	speedsGain   = 0.03 // of the time, from which a number that was not measured is worth a probe

	speedsBetween = 0.5 // of an epoch's time without computing, from which fewer rounds are worth more workers
)

// speedsOf goes through the rounds of earlier jobs, and then of this one.
func speedsOf(in Input) *speeds {
	s := &speeds{
		bounds: in.Bounds, memories: memoriesOf(in), mean: map[int]float64{}, variance: map[int]float64{},
		now: in.Now.Workers,
	}
	for _, e := range epochs(in.Past) {
		s.several = s.several || e.rounds > 1
		if s.rows = float64(e.rows); !e.disturbed {
			s.take(e.workers, float64(e.each())/s.memories.ratio(s.memories.of(e)))
		}
	}
	for _, e := range epochs(in.Seen) {
		s.see(e)
	}
	return s
}

// see takes an epoch of this job.
func (s *speeds) see(e epoch) {
	t := float64(e.each()) / s.memories.ratio(s.memories.of(e))
	s.coldest = max(s.coldest, float64(e.cold))
	s.now, s.rows, s.spent = e.workers, float64(e.rows), s.spent+float64(e.duration)
	if e.cost > 0 && e.duration > 0 {
		s.price = e.cost / float64(e.duration) / float64(max(1, e.workers))
		if memory := s.memories.of(e); memory > 0 && s.memories.own > 0 {
			s.price *= float64(s.memories.own) / float64(memory)
		}
	}
	s.several, s.between = s.several || e.rounds > 1, 0
	if e.compute > 0 && e.duration > 0 {
		s.between = 1 - float64(e.compute)/float64(e.duration)
	}
	before, known := s.mean[e.workers]
	doubt := ""
	if e.disturbed {
		doubt = "a container started cold or a worker failed"
	}
	if w, best, ok := s.fastest(); ok && t > best {
		s.lost += (t - best) * float64(e.rows) / 1000
		if !known && e.workers > w && doubt == "" {
			doubt = fmt.Sprintf("%s for 1,000 rows with %s, %s with %d", disdel.Millis(t).Text(), crew(e.workers),
				disdel.Millis(best).Text(), w)
		}
	}
	if doubt != "" && s.repeat == "" {
		s.repeat, s.doubted = doubt, t
		return
	}
	if s.repeat != "" && !e.disturbed {
		t = min(t, s.doubted)
	}
	s.repeat = ""
	if !known || t <= speedsDrift*before && before <= speedsDrift*t {
		s.off = 0
		s.take(e.workers, t)
		return
	}
	if s.off++; s.off < speedsInARow {
		return
	}
	s.off = 0
	for w := range s.mean { // all alike, as far as anybody knows
		s.mean[w] *= t / before
	}
}

func (s *speeds) take(workers int, t float64) {
	variance := 1.0
	if before, ok := s.mean[workers]; ok {
		s.noise.see(t, before, s.variance[workers])
		t, variance = (1-speedsNewest)*before+speedsNewest*t, meanVariance(s.variance[workers], speedsNewest)
	}
	s.mean[workers], s.variance[workers] = t, variance
}

// numbers are those measured, in their order.
func (s *speeds) numbers() []int { return slices.Sorted(maps.Keys(s.mean)) }

// fastest is the measured number that took the least, the smaller of equals.
func (s *speeds) fastest() (workers int, t float64, ok bool) {
	for _, w := range s.numbers() {
		if m := s.mean[w]; !ok || m < t {
			workers, t, ok = w, m, true
		}
	}
	return workers, t, ok
}

// candidates are the numbers that something is known of, with the time of 1,000 rows: as measured, or by the law.
func (s *speeds) candidates() []timed {
	measured := inOrder(s.mean)
	shared := SpeedConditions{Processors: s.bounds.Processors, Rounds: s.several}
	law, ok := fitSpeed(s.worthwhile(measured), shared)
	if !ok {
		return measured
	}
	return s.byLaw(measured, law, shared)
}

// byLaw are the numbers from the bounds' least up to the law's reach, each with the time of 1,000 rows: as measured, or
// by the law.
func (s *speeds) byLaw(measured []timed, law speedLaw, of SpeedConditions) (out []timed) {
	most := min(s.bounds.Most, speedsReach*measured[len(measured)-1].workers)
	for w := s.bounds.Least; w <= most; w++ {
		t, known := s.mean[w]
		if !known {
			t = law.at(w, of)
		}
		out = append(out, timed{w, t})
	}
	return out
}

// worthwhile raises the times of numbers of workers that are not clearly faster than a smaller, measured number: they
// get its time. So no policy pays for a gain that may be noise. all is in the order of the workers.
func (s *speeds) worthwhile(all []timed) []timed {
	out := slices.Clone(all)
	var least timed // of those that were measured, with fewer workers
	for i, t := range out {
		_, measured := s.mean[t.workers]
		variance := cmp.Or(s.variance[t.workers], 1) // by the law, it is that of a measurement
		if least.workers > 0 && t.time < least.time &&
			!s.noise.clear(t.time, least.time, variance, s.variance[least.workers]) {
			out[i].time = least.time
		}
		if measured && (least.workers == 0 || out[i].time < least.time) {
			least = out[i]
		}
	}
	return out
}

// mayProbe tells whether probes have lost less than their share of what the job takes in all.
func (s *speeds) mayProbe(in Input) bool {
	all := s.spent
	if left := in.Goal.Epochs; left > 0 {
		if left < 2 {
			return false // what is learned would be of no use
		}
		all += left * s.spent / float64(max(1, len(epochs(in.Seen))))
	}
	return s.lost <= speedsProbes*all
}

// choice is a number of workers, what it is expected to take, and why it.
type choice struct {
	workers int
	expect  float64 // time of 1,000 rows; 0: not known
	why     string
}

// choose takes what a policy likes best of what is known, best being the one of the fewest points. What was not
// measured is chosen for a clear gain alone, and while probes may lose.
func (s *speeds) choose(in Input, best func([]timed) timed) choice {
	if s.repeat != "" {
		return choice{s.now, s.mean[s.now], s.repeat + ": the same is measured once more"}
	}
	all := s.candidates()
	if len(all) == 0 {
		return choice{workers: s.now}
	}
	if len(s.mean) == 1 && s.bounds.Least < s.bounds.Most {
		return s.second(in)
	}
	want := best(all)
	if _, measured := s.mean[want.workers]; measured {
		return s.goes(want, "")
	}
	known := best(s.measured(all))
	switch gain := 1 - want.time/known.time; {
	case !s.mayProbe(in):
		return s.goes(known, "; probes have lost what they may")
	case gain < speedsGain && want.workers >= known.workers:
		return s.goes(known, fmt.Sprintf("; %s would gain %.1f %%", crew(want.workers), 100*max(0, gain)))
	default:
		return s.goes(want, "; by the law of those")
	}
}

// measured are those of the candidates that were.
func (s *speeds) measured(all []timed) []timed {
	var out []timed
	for _, t := range all {
		if _, ok := s.mean[t.workers]; ok {
			out = append(out, t)
		}
	}
	return out
}

// goes says what was measured, and how the job goes on.
func (s *speeds) goes(to timed, more string) choice {
	var times []string
	for _, w := range s.numbers() {
		times = append(times, fmt.Sprintf("%s with %d", disdel.Millis(s.mean[w]).Text(), w))
	}
	why := fmt.Sprintf("1,000 rows take %s%s: %s", strings.Join(times, ", "), more, crew(to.workers))
	return choice{to.workers, to.time, why}
}

// second is the second number to be measured: twice the first, or half of it where there may be no more, or no more
// processors for them. Workers beyond the processors still save rounds: where most of the time passes between those,
// twice as many are tried all the same.
func (s *speeds) second(in Input) choice {
	one := timed{s.now, s.mean[s.now]}
	for w, t := range s.mean {
		one = timed{w, t}
	}
	next := min(2*one.workers, s.bounds.Most)
	full := s.bounds.Processors > 0 && one.workers >= s.bounds.Processors
	saves := s.several && s.between > speedsBetween
	if next == one.workers || full && !saves {
		next = max(one.workers/2, s.bounds.Least)
	}
	if next == one.workers || !s.mayProbe(in) {
		return s.goes(one, "")
	}
	return s.goes(timed{workers: next}, "; nothing else was measured")
}
