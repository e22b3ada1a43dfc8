package scheduler

import (
	"math"
	"slices"
)

// speedLaw is how long 1,000 rows take with so many workers: T(w) = Fixed + Work / w + Each * w. Fixed is what every
// round has (starts, the reference), Work what workers share, Each what one more of them costs all (updates that are
// reduced, processors that are shared). None is below 0. Coach's published surface, c - a (w - w0)^2, has a best number
// of its own that two measured numbers do not tell; this law is linear in what is looked for.
type speedLaw struct{ fixed, work, each float64 }

func (l speedLaw) at(workers int) float64 {
	w := float64(max(1, workers))
	return l.fixed + l.work/w + l.each*w
}

// timed is a number of workers and the time of 1,000 rows with it.
type timed struct {
	workers int
	time    float64
}

// lawParts are which of the law's terms are looked for together, in the order in which they are preferred where they
// fit equally well: with two measured numbers, work and each, whose best number is not infinite.
var lawParts = [][]int{{1}, {1, 2}, {0, 1}, {0}, {0, 2}, {2}, {0, 1, 2}}

// fitSpeed is the law with the least squares of relative errors; ok is false for fewer than two numbers of workers.
func fitSpeed(at []timed) (law speedLaw, ok bool) {
	numbers := distinct(at)
	if numbers < 2 {
		return speedLaw{}, false
	}
	best := math.Inf(1)
	for _, parts := range lawParts {
		if len(parts) > numbers {
			continue
		}
		l, fits := solveLaw(at, parts)
		if e := lawError(l, at); fits && e < best-1e-12 {
			law, best, ok = l, e, true
		}
	}
	return law, ok
}

// FitLaw is the law T(w) = fixed + work / w + each w of an epoch's time, s, by numbers of workers of which it is
// known. With one number alone all of it is work; ok is false where there is none.
func FitLaw(seconds map[int]float64) (fixed, work, each float64, ok bool) {
	var at []timed
	for w, t := range seconds {
		at = append(at, timed{w, t})
	}
	slices.SortFunc(at, func(a, b timed) int { return a.workers - b.workers })
	if len(at) == 1 {
		return 0, at[0].time * float64(at[0].workers), 0, true
	}
	law, ok := fitSpeed(at)
	return law.fixed, law.work, law.each, ok
}

func distinct(at []timed) int {
	seen := map[int]bool{}
	for _, t := range at {
		seen[t.workers] = true
	}
	return len(seen)
}

// lawRow is what the law's three terms are for a number of workers, over the time that was measured with it.
func lawRow(t timed) [3]float64 {
	w := float64(max(1, t.workers))
	return [3]float64{1 / t.time, 1 / w / t.time, w / t.time}
}

func lawError(l speedLaw, at []timed) (sum float64) {
	for _, t := range at {
		e := l.at(t.workers)/t.time - 1
		sum += e * e
	}
	return sum
}

// solveLaw finds some of the law's terms by their normal equations; it says false where one would be below 0, or where
// they do not follow from the points.
func solveLaw(at []timed, parts []int) (speedLaw, bool) {
	n := len(parts)
	a := make([][]float64, n) // with the right-hand side as the last column
	for i := range a {
		a[i] = make([]float64, n+1)
	}
	for _, t := range at {
		row := lawRow(t)
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
