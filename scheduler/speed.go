package scheduler

import (
	"maps"
	"math"
	"slices"
)

// speedLaw is how long 1,000 rows take with so many workers: T(w) = Fixed + Work / w + Each * w. Fixed is what every
// round has (starts, the reference), Work what workers share, Each what one more of them costs all (updates that are
// reduced). None is below 0. Where it is known how many processors all workers have together, no more of them share
// the work than that. Coach's published surface, c - a (w - w0)^2, has a best number of its own that two measured
// numbers do not tell; this law is linear in what is looked for.
type speedLaw struct{ fixed, work, each float64 }

// at is the law's time with so many workers on so many processors; 0 processors: not known.
func (l speedLaw) at(workers, processors int) float64 {
	return l.fixed + l.work/atOnce(workers, processors) + l.each*float64(max(1, workers))
}

// atOnce is how many workers compute at the same time.
func atOnce(workers, processors int) float64 {
	if processors > 0 {
		workers = min(workers, processors)
	}
	return float64(max(1, workers))
}

// timed is a number of workers and the time of 1,000 rows with it.
type timed struct {
	workers int
	time    float64
}

// lawParts are which of the law's terms are looked for together, in the order in which they are preferred where they
// fit equally well: with two measured numbers, work and each, whose best number is not infinite. Where as many workers
// were measured as there are processors, fixed goes before each: the best number is known to be no larger.
var (
	lawParts       = [][]int{{1}, {1, 2}, {0, 1}, {0}, {0, 2}, {2}, {0, 1, 2}}
	lawPartsOfFull = [][]int{{1}, {0, 1}, {1, 2}, {0}, {0, 2}, {2}, {0, 1, 2}}
)

// fitSpeed is the law with the least squares of relative errors, of workers that share so many processors (0: not
// known); ok is false for fewer than two numbers of workers.
func fitSpeed(at []timed, processors int) (law speedLaw, ok bool) {
	numbers := distinct(at)
	if numbers < 2 {
		return speedLaw{}, false
	}
	all, best := lawParts, math.Inf(1)
	if processors > 0 && slices.ContainsFunc(at, func(t timed) bool { return t.workers >= processors }) {
		all = lawPartsOfFull
	}
	for _, parts := range all {
		if len(parts) > numbers {
			continue
		}
		l, fits := solveLaw(at, processors, parts)
		if e := lawError(l, at, processors); fits && e < best-1e-12 {
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
	law, ok := fitSpeed(at, 0)
	return law.fixed, law.work, law.each, ok
}

// EpochTime is what an epoch takes with so many workers, s, by the law of policies, of the times by numbers of workers
// that are known. processors are those that all workers share; 0: not known. ok is false where fewer than two numbers
// are known.
func EpochTime(seconds map[int]float64, processors, workers int) (took float64, ok bool) {
	law, ok := fitSpeed(inOrder(seconds), processors)
	return law.at(workers, processors), ok
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

// lawRow is what the law's three terms are for a number of workers, over the time that was measured with it.
func lawRow(t timed, processors int) [3]float64 {
	w := float64(max(1, t.workers))
	return [3]float64{1 / t.time, 1 / atOnce(t.workers, processors) / t.time, w / t.time}
}

func lawError(l speedLaw, at []timed, processors int) (sum float64) {
	for _, t := range at {
		e := l.at(t.workers, processors)/t.time - 1
		sum += e * e
	}
	return sum
}

// solveLaw finds some of the law's terms by their normal equations; it says false where one would be below 0, or where
// they do not follow from the points.
func solveLaw(at []timed, processors int, parts []int) (speedLaw, bool) {
	n := len(parts)
	a := make([][]float64, n) // with the right-hand side as the last column
	for i := range a {
		a[i] = make([]float64, n+1)
	}
	for _, t := range at {
		row := lawRow(t, processors)
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

// solve is Gauss' elimination with pivots, of a few equations.
func solve(a [][]float64) ([]float64, bool) {
	n := len(a)
	for c := range n {
		pivot := c
		for r := c + 1; r < n; r++ {
			if math.Abs(a[r][c]) > math.Abs(a[pivot][c]) {
				pivot = r
			}
		}
		a[c], a[pivot] = a[pivot], a[c]
		if math.Abs(a[c][c]) < 1e-300 {
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
