package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// speeds are what a job's epochs so far say about the time of 1,000 rows by the number of workers. An epoch with
// another number is a probe, whose work counts all the same. Epochs are compared by their rows, so that a probe needs
// no size of its own (Coach's probes do twice the work with twice the workers).
type speeds struct {
	bounds   Bounds
	memories memories
	mean     map[int]float64 // time of 1,000 rows by workers, as a Millis; newer ones weigh more
	variance map[int]float64 // of these means, divided by that of one measurement
	noise    timeNoise       // of one measurement
	now      int             // workers of the newest epoch
	rows     float64         // of the newest epoch
	price    float64         // GB-s of a worker per unit of time in the newest epoch; 0: unknown
	several  bool            // epochs have several rounds, and fewer with more workers
	between  float64         // part of the newest epoch's time in which no worker computed

	repeat  string  // why the same is measured again; "": it is not
	doubted float64 // time of the epoch that is measured again
	off     int     // epochs in a row that were far from earlier measurements

	spent float64 // time of all epochs
	lost  float64 // time of probes beyond that of the best number

	coldest float64 // longest start of a container
}

// The constants of speeds.
const (
	speedsNewest = 0.4 // weight of the newest time in the mean of its number
	speedsDrift  = 1.2 // times the mean, or its inverse: speedsInARow such times mean that the platform changed
	speedsInARow = 3
	speedsProbes = 0.1  // of the job's time that probes may lose
	speedsReach  = 2    // times the largest number measured: the law does not hold beyond
	speedsGain   = 0.03 // of the time: a gain that makes a probe worth it

	speedsBetween = 0.5 // of an epoch's time without computing: more makes fewer rounds worth more workers
)

// speedsOf considers the rounds of earlier jobs, and then of this one.
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

// see adds an epoch of this job.
func (s *speeds) see(e epoch) {
	t := float64(e.each()) / s.memories.ratio(s.memories.of(e))
	s.coldest = max(s.coldest, float64(e.cold))
	s.now, s.rows, s.spent = e.workers, float64(e.rows), s.spent+float64(e.duration)
	if e.cost > 0 {
		s.price = e.cost / float64(e.duration) / float64(max(1, e.workers))
		if memory := s.memories.of(e); memory > 0 && s.memories.own > 0 {
			s.price *= float64(s.memories.own) / float64(memory)
		}
	}
	s.several, s.between = s.several || e.rounds > 1, 0
	if e.compute > 0 {
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
			doubt = fmt.Sprintf("%s for 1,000 rows with %s, %s with %d", disdel.Millis(t).Text(), workersText(e.workers),
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
	for w := range s.mean { // probably all changed alike
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

// numbers returns the measured numbers of workers in ascending order.
func (s *speeds) numbers() []int { return slices.Sorted(maps.Keys(s.mean)) }

// fastest returns the measured number with the least time, the smaller of equals.
func (s *speeds) fastest() (workers int, t float64, ok bool) {
	for _, w := range s.numbers() {
		if m := s.mean[w]; !ok || m < t {
			workers, t, ok = w, m, true
		}
	}
	return workers, t, ok
}

// candidates returns the numbers of workers whose time of 1,000 rows is known, by measurement or by the law.
func (s *speeds) candidates() []timed {
	measured := inOrder(s.mean)
	shared := speedConditions{Processors: s.bounds.Processors, Rounds: s.several}
	law, ok := fitSpeed(s.worthwhile(measured), shared)
	if !ok {
		return measured
	}
	return s.byLaw(measured, law, shared)
}

// byLaw returns the numbers from the bounds' least up to the law's reach, with measured times or those by the law.
func (s *speeds) byLaw(measured []timed, law speedLaw, conditions speedConditions) (out []timed) {
	maximum := min(s.bounds.Most, speedsReach*measured[len(measured)-1].workers)
	for w := s.bounds.Least; w <= maximum; w++ {
		t, known := s.mean[w]
		if !known {
			t = law.at(w, conditions)
		}
		out = append(out, timed{w, t})
	}
	return out
}

// worthwhile raises the times of numbers of workers that are not clearly faster than a smaller, measured number: they
// get its time. So no policy pays for a gain that may be noise. all is in the order of the workers.
func (s *speeds) worthwhile(all []timed) []timed {
	out := slices.Clone(all)
	var minimum timed // of those that were measured, with fewer workers
	for i, t := range out {
		_, measured := s.mean[t.workers]
		variance := cmp.Or(s.variance[t.workers], 1) // that of one measurement if the time is by the law
		if minimum.workers > 0 && t.time < minimum.time &&
			!s.noise.clear(t.time, minimum.time, variance, s.variance[minimum.workers]) {
			out[i].time = minimum.time
		}
		if measured && (minimum.workers == 0 || out[i].time < minimum.time) {
			minimum = out[i]
		}
	}
	return out
}

// mayProbe tells whether probes have lost less than their share of the job's time.
func (s *speeds) mayProbe(in Input) bool {
	all := s.spent
	if remaining := in.Goal.Epochs; remaining > 0 {
		if remaining < 2 {
			return false // what is learned would be of no use
		}
		all += remaining * s.spent / float64(max(1, len(epochs(in.Seen))))
	}
	return s.lost <= speedsProbes*all
}

// choice is a number of workers, its expected time, and the reason.
type choice struct {
	workers int
	expect  float64 // time of 1,000 rows; 0: unknown
	why     string
}

// choose takes the policy's best candidate. A number that was not measured is chosen only for a clear gain, and while
// probes may lose time.
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
		return s.goes(known, fmt.Sprintf("; %s would gain %.1f %%", workersText(want.workers), 100*max(0, gain)))
	default:
		return s.goes(want, "; by the law of those")
	}
}

// measured returns the candidates that were measured.
func (s *speeds) measured(all []timed) []timed {
	var out []timed
	for _, t := range all {
		if _, ok := s.mean[t.workers]; ok {
			out = append(out, t)
		}
	}
	return out
}

// goes explains a choice with the measured times.
func (s *speeds) goes(to timed, more string) choice {
	var times []string
	for _, w := range s.numbers() {
		times = append(times, fmt.Sprintf("%s with %d", disdel.Millis(s.mean[w]).Text(), w))
	}
	why := fmt.Sprintf("1,000 rows take %s%s: %s", strings.Join(times, ", "), more, workersText(to.workers))
	return choice{to.workers, to.time, why}
}

// second returns the second number to measure: twice the first, or half of it at the maximum or if there are no
// processors for more. More workers than processors still save rounds: if most of the time passes between rounds,
// twice as many are tried anyway.
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

// speedLaw is the time of 1,000 rows with w workers: T(w) = Fixed + Work / w + Each * w. Fixed is the part of every
// round (starts, the reference), Work is what workers share, Each is what one more of them costs all (updates to
// reduce). None is below 0. Coach's published surface, c - a (w - w0)^2, has an optimum that two measured numbers do
// not determine; this law is linear in its parameters.
type speedLaw struct{ fixed, work, each float64 }

// SpeedConditions are the conditions of a job that change the terms of its law.
type speedConditions struct {
	// Processors are those of all workers; 0: unknown. At most so many workers share the work. Workers beyond them wait
	// for each other in a part of every round's fixed time.
	Processors int
	// Rounds says that an epoch has several rounds: with twice the workers there are half as many.
	Rounds bool
}

// lawCrowd is the part of a round's fixed time that workers beyond the processors increase: what an action computes
// besides the training (start, shard, weights). It was chosen on two processors from the six jobs of bench-policies;
// measured times with more workers than processors take precedence.
const lawCrowd = 1 / 3.0

// terms returns the factors of the law's three parameters for a number of workers.
func (s speedConditions) terms(workers int) [3]float64 {
	w := float64(max(1, workers))
	atOnce := w
	if s.Processors > 0 {
		atOnce = min(w, float64(s.Processors))
	}
	fixed, each := 1+lawCrowd*(w/atOnce-1), w
	if s.Rounds {
		fixed, each = fixed/w, 1
	}
	return [3]float64{fixed, 1 / atOnce, each}
}

// at returns the law's time with so many workers.
func (l speedLaw) at(workers int, s speedConditions) float64 {
	row := s.terms(workers)
	return l.fixed*row[0] + l.work*row[1] + l.each*row[2]
}

// timed is a number of workers and the time of 1,000 rows with it.
type timed struct {
	workers int
	time    float64
}

// lawParts are the sets of terms to fit, in order of preference if they fit equally well. With two measured numbers
// they are work and each, whose best number is finite. If as many workers as processors were measured, fixed precedes
// each: the best number is known to be no larger. With several rounds an epoch, more workers certainly save rounds.
var (
	lawParts         = [][]int{{1}, {1, 2}, {0, 1}, {0}, {0, 2}, {2}, {0, 1, 2}}
	lawPartsOfFull   = [][]int{{1}, {0, 1}, {1, 2}, {0}, {0, 2}, {2}, {0, 1, 2}}
	lawPartsOfRounds = [][]int{{0}, {0, 2}, {0, 1}, {1, 2}, {2}, {0, 1, 2}}
)

func (s speedConditions) partsFor(at []timed) [][]int {
	switch {
	case s.Rounds:
		return lawPartsOfRounds
	case s.Processors > 0 && slices.ContainsFunc(at, func(t timed) bool { return t.workers >= s.Processors }):
		return lawPartsOfFull
	default:
		return lawParts
	}
}

// fitSpeed returns the law with the least squares of relative errors; ok is false for fewer than two numbers of
// workers.
func fitSpeed(at []timed, s speedConditions) (law speedLaw, ok bool) {
	numbers := distinct(at)
	if numbers < 2 {
		return speedLaw{}, false
	}
	best := math.Inf(1)
	for _, parts := range s.partsFor(at) {
		if len(parts) > numbers {
			continue
		}
		l, fits := solveLaw(at, s, parts)
		if e := lawError(l, at, s); fits && e < best-1e-12 {
			law, best, ok = l, e, true
		}
	}
	return law, ok
}

// FitLaw fits the law T(w) = fixed + work / w + each w of an epoch's time, in s, by the number of workers. With one
// number all of it is work; ok is false if there is none.
func FitLaw(seconds map[int]float64) (fixed, work, each float64, ok bool) {
	at := inOrder(seconds)
	if len(at) == 1 {
		return 0, at[0].time * float64(at[0].workers), 0, true
	}
	law, ok := fitSpeed(at, speedConditions{})
	return law.fixed, law.work, law.each, ok
}

// inOrder sorts times by their numbers of workers.
func inOrder(seconds map[int]float64) (out []timed) {
	for _, w := range slices.Sorted(maps.Keys(seconds)) {
		out = append(out, timed{w, seconds[w]})
	}
	return out
}

func distinct(at []timed) int {
	seen := map[int]bool{}
	for _, t := range at {
		seen[t.workers] = true
	}
	return len(seen)
}

func lawError(l speedLaw, at []timed, s speedConditions) (sum float64) {
	for _, t := range at {
		e := l.at(t.workers, s)/t.time - 1
		sum += e * e
	}
	return sum
}

// solveLaw finds the given terms by their normal equations. ok is false if one would be below 0, or if the points do
// not determine them.
func solveLaw(at []timed, s speedConditions, parts []int) (speedLaw, bool) {
	n := len(parts)
	a := make([][]float64, n) // with the right-hand side as the last column
	for i := range a {
		a[i] = make([]float64, n+1)
	}
	for _, t := range at {
		row := s.terms(t.workers)
		for i := range row {
			row[i] /= t.time
		}
		for i, p := range parts {
			for j, q := range parts {
				a[i][j] += row[p] * row[q]
			}
			a[i][n] += row[p]
		}
	}
	x, ok := solve(a)
	if !ok || slices.ContainsFunc(x, func(v float64) bool { return v < 0 || math.IsNaN(v) }) {
		return speedLaw{}, false
	}
	var terms [3]float64
	for i, p := range parts {
		terms[p] = x[i]
	}
	return speedLaw{terms[0], terms[1], terms[2]}, true
}

// solve is Gauss' elimination with pivots. ok is false if one equation follows from the others.
func solve(a [][]float64) ([]float64, bool) {
	n := len(a)
	for c := range n {
		largest := 0.0
		for r := range n {
			largest = max(largest, math.Abs(a[r][c]))
		}
		pivot := c
		for r := c + 1; r < n; r++ {
			if math.Abs(a[r][c]) > math.Abs(a[pivot][c]) {
				pivot = r
			}
		}
		a[c], a[pivot] = a[pivot], a[c]
		if math.Abs(a[c][c]) <= 1e-12*largest {
			return nil, false
		}
		for r := range n {
			if r == c {
				continue
			}
			by := a[r][c] / a[c][c]
			for k := c; k <= n; k++ {
				a[r][k] -= by * a[c][k]
			}
		}
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = a[i][n] / a[i][i]
	}
	return x, true
}

// timeNoise measures how much times of the same number of workers vary. Policies that choose workers by times use it
// to tell whether a gain is real: nobody should pay for more workers because of noise.
type timeNoise struct {
	squares float64 // of logarithms of times, each off the mean of its number
	count   float64
}

// The constants of timeNoise.
const (
	noisePrior = 0.04 // standard deviation of the logarithm of a time before any number was measured twice
	noiseCount = 2    // measurements that the prior counts as
	noiseSure  = 2.5  // standard deviations of a real gain: the best of several numbers is also the luckiest
	noiseMost  = 0.4  // of a logarithm: a larger distance has another cause
)

// see adds a measured time. mean is that of earlier times with the same workers. variance is the variance of this
// mean, divided by the variance of one measurement.
func (n *timeNoise) see(t, mean, variance float64) {
	if t <= 0 || mean <= 0 {
		return
	}
	off := min(noiseMost, math.Abs(math.Log(t/mean)))
	n.squares, n.count = n.squares+off*off/(1+variance), n.count+1
}

// clear tells whether t is below than by more than the noise. The variances are those of the two times, divided by
// the variance of one measurement.
func (n *timeNoise) clear(t, than, variance, thanVariance float64) bool {
	return math.Log(than/t) > noiseSure*n.deviation()*math.Sqrt(variance+thanVariance)
}

// deviation is the standard deviation of the logarithm of one measured time.
func (n *timeNoise) deviation() float64 {
	return math.Sqrt((n.squares + noiseCount*noisePrior*noisePrior) / (n.count + noiseCount))
}

// meanVariance is the variance of a running mean after one more measurement of a weight, divided by that of one
// measurement.
func meanVariance(before, weight float64) float64 {
	return (1-weight)*(1-weight)*before + weight*weight
}
