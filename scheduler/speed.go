package scheduler

import (
	"maps"
	"math"
	"slices"
)

// speedLaw is how long 1,000 rows take with so many workers: T(w) = Fixed + Work / w + Each * w. Fixed is what every
// round has (starts, the reference), Work what workers share, Each what one more of them costs all (updates that are
// reduced). None is below 0. Coach's published surface, c - a (w - w0)^2, has a best number of its own that two
// measured numbers do not tell; this law is linear in what is looked for.
type speedLaw struct{ fixed, work, each float64 }

// SpeedConditions are what of a job the terms of its law depend on.
type SpeedConditions struct {
	// Processors are those of all workers; 0: not known. No more workers share the work than that, and of what every
	// round has workers beyond them wait for each other with a part.
	Processors int
	// Rounds says that an epoch is several rounds of some batches a worker each: with twice the workers there are half
	// as many of them.
	Rounds bool
}

// lawCrowd is the part of a round's fixed time that workers beyond the processors add to, each with its share: what an
// action computes besides the training (start, shard, weights). It was chosen on two processors, looking at the six
// jobs of bench-policies; where more workers than processors were measured, their times go before it.
const lawCrowd = 1 / 3.0

// terms are what a law's three are multiplied by for a number of workers.
func (s SpeedConditions) terms(workers int) [3]float64 {
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

// at is the law's time with so many workers.
func (l speedLaw) at(workers int, s SpeedConditions) float64 {
	row := s.terms(workers)
	return l.fixed*row[0] + l.work*row[1] + l.each*row[2]
}

// timed is a number of workers and the time of 1,000 rows with it.
type timed struct {
	workers int
	time    float64
}

// lawParts are which of the law's terms are looked for together, in the order in which they are preferred where they
// fit equally well: with two measured numbers, work and each, whose best number is not infinite. Where as many workers
// were measured as there are processors, fixed goes before each: the best number is known to be no larger. With several
// rounds an epoch, fewer of them are what more workers gain for sure.
var (
	lawParts         = [][]int{{1}, {1, 2}, {0, 1}, {0}, {0, 2}, {2}, {0, 1, 2}}
	lawPartsOfFull   = [][]int{{1}, {0, 1}, {1, 2}, {0}, {0, 2}, {2}, {0, 1, 2}}
	lawPartsOfRounds = [][]int{{0}, {0, 2}, {0, 1}, {1, 2}, {2}, {0, 1, 2}}
)

// partsFor are those for some measured numbers.
func (s SpeedConditions) partsFor(at []timed) [][]int {
	switch {
	case s.Rounds:
		return lawPartsOfRounds
	case s.Processors > 0 && slices.ContainsFunc(at, func(t timed) bool { return t.workers >= s.Processors }):
		return lawPartsOfFull
	default:
		return lawParts
	}
}

// fitSpeed is the law with the least squares of relative errors; ok is false for fewer than two numbers of workers.
func fitSpeed(at []timed, s SpeedConditions) (law speedLaw, ok bool) {
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

// FitLaw is the law T(w) = fixed + work / w + each w of an epoch's time, s, by numbers of workers of which it is
// known. With one number alone all of it is work; ok is false where there is none.
func FitLaw(seconds map[int]float64) (fixed, work, each float64, ok bool) {
	at := inOrder(seconds)
	if len(at) == 1 {
		return 0, at[0].time * float64(at[0].workers), 0, true
	}
	law, ok := fitSpeed(at, SpeedConditions{})
	return law.fixed, law.work, law.each, ok
}

// EpochTime is what an epoch takes with so many workers, s, by the law of policies, of the times by numbers of workers
// that are known. ok is false where fewer than two numbers are known.
func EpochTime(seconds map[int]float64, of SpeedConditions, workers int) (took float64, ok bool) {
	law, ok := fitSpeed(inOrder(seconds), of)
	return law.at(workers, of), ok
}

// inOrder are times by their numbers of workers.
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

func lawError(l speedLaw, at []timed, s SpeedConditions) (sum float64) {
	for _, t := range at {
		e := l.at(t.workers, s)/t.time - 1
		sum += e * e
	}
	return sum
}

// solveLaw finds some of the law's terms by their normal equations; it says false where one would be below 0, or where
// they do not follow from the points.
func solveLaw(at []timed, s SpeedConditions, parts []int) (speedLaw, bool) {
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

// solve is Gauss' elimination with pivots, of a few equations. It says false where one follows from the others.
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
