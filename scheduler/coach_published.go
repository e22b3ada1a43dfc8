package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// CoachPublished is Coach's rule as its code has it, to be held against Coach, with one axis: there are no parameter
// servers here. Its probes are one and two workers; then it fits epochs a second as f(w) = c - a (w - w0)^2, none of
// the three below 0, to all epochs, from the fit before or from ones, and adds workers while f grows. Two probes
// determine a level and a difference, and not where f is largest: that comes from where the fit begins, so that what it
// says of three workers and more is not measured. Ours differs in the fit's steps, which are scipy's there.
type CoachPublished struct{}

// Name is the word of job files.
func (CoachPublished) Name() string { return "coach-published" }

// Meaning is what explain says.
func (CoachPublished) Meaning() string { return "is the rule that Coach published" }

// Decide fits anew after each epoch.
func (CoachPublished) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	switch in.Boundary {
	case disdel.BoundaryStart:
		out.Next.Workers, out.Why = 1, "the first probe: 1 worker"
		return out
	case disdel.BoundaryEpoch:
	default:
		return out
	}
	all := epochs(in.Seen)
	if len(all) < 2 {
		out.Next.Workers, out.Why = 2, "the second probe: 2 workers"
		return out
	}
	hill := surface{1, 1, 1}
	for i := range all {
		if i > 0 {
			hill = hill.fitted(all[:i+1])
		}
	}
	n := 1
	for n < in.Bounds.Most && hill.at(n+1) > hill.at(n) {
		n++
	}
	out.Next.Workers = n
	out.Why = fmt.Sprintf("%.3g - %.3g (w - %.3g)^2 epochs a second: %s", hill[0], hill[1], hill[2], crew(n))
	return out
}

// surface is c, a and w0 of f(w) = c - a (w - w0)^2.
type surface [3]float64

func (f surface) at(workers int) float64 {
	d := float64(workers) - f[2]
	return f[0] - f[1]*d*d
}

// speed is epochs a second.
func speed(e epoch) float64 { return 1 / max(1e-9, e.duration.Seconds()) }

func (f surface) off(all []epoch) (sum float64) {
	for _, e := range all {
		d := f.at(e.workers) - speed(e)
		sum += d * d
	}
	return sum
}

// fitted goes from one fit to the next: Levenberg and Marquardt's steps, cut off at 0.
func (f surface) fitted(all []epoch) surface {
	const steps = 200
	damping := 1e-3
	for range steps {
		next, ok := f.step(all, damping)
		if ok && next.off(all) < f.off(all) {
			f, damping = next, damping/3
		} else if damping *= 3; damping > 1e12 {
			break
		}
	}
	return f
}

func (f surface) step(all []epoch, damping float64) (surface, bool) {
	a := make([][]float64, len(f))
	for i := range a {
		a[i] = make([]float64, len(f)+1)
	}
	for _, e := range all {
		d := float64(e.workers) - f[2]
		slope := surface{1, -d * d, 2 * f[1] * d}
		r := f.at(e.workers) - speed(e)
		for i := range slope {
			for j := range slope {
				a[i][j] += slope[i] * slope[j]
			}
			a[i][len(f)] -= slope[i] * r
		}
	}
	for i := range a {
		a[i][i] += damping * (1 + a[i][i])
	}
	x, ok := solve(a)
	if !ok {
		return f, false
	}
	for i := range f {
		f[i] = max(0, f[i]+x[i])
	}
	return f, true
}
