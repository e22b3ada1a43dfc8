package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// Coach buys workers by their marginal utility, as the thesis of that name: while 1 % more workers save at least 0.1 %
// of the time. It does not buy numbers that exceed the job's budget. It fits the law T(w) = fixed + work / w + each w.
// Two measured numbers of workers determine the law up to twice the larger one. The best number of the published
// surface follows from the fit's starting guess. Epochs are probes: their work is part of the job, and together they
// may lose a tenth of its time. The published joint choice among jobs is the Allocator's here.
type Coach struct{}

// coachPrice is the share of the time that 1 % more workers must save: Coach minimises T(w) w^coachPrice.
const coachPrice = 0.1

// Name implements Policy.
func (Coach) Name() string { return "coach" }

// Meaning implements Policy.
func (Coach) Meaning() string {
	return "adds and takes away as many as the next one is worth, by a law of the times measured so far"
}

// Decide implements Policy.
func (Coach) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	s := speedsOf(in)
	c := s.choose(in, func(all []timed) timed {
		return slices.MinFunc(s.worthwhile(s.payable(in, all)), by(func(t timed) float64 {
			return t.time * math.Pow(float64(t.workers), coachPrice)
		}))
	})
	return c.decision(out)
}

// decision is a policy's decision for a choice.
func (c choice) decision(out disdel.Decision) disdel.Decision {
	out.Next.Workers, out.Why = c.workers, c.why
	if c.expect > 0 {
		out.Expect = &disdel.Expectation{PerThousand: disdel.Millis(c.expect)}
	}
	return out
}

// by orders numbers of workers by a figure, the smaller number first if it is equal.
func by(figure func(timed) float64) func(a, b timed) int {
	return func(a, b timed) int {
		return cmp.Or(cmp.Compare(figure(a), figure(b)), a.workers-b.workers)
	}
}

// payable are the candidates with which the rest of the job stays within its budget, or the cheapest one if there are
// none.
func (s *speeds) payable(in Input, all []timed) []timed {
	remaining := in.Goal.Cost
	if remaining <= 0 || s.price <= 0 || in.Goal.Epochs <= 0 {
		return all
	}
	cost := func(t timed) float64 {
		return in.Goal.Epochs * s.rows / 1000 * t.time * float64(t.workers) * s.price
	}
	within := slices.DeleteFunc(slices.Clone(all), func(t timed) bool { return cost(t) > remaining })
	if len(within) == 0 {
		return []timed{slices.MinFunc(all, by(cost))}
	}
	return within
}

// CoachPublished is Coach's rule as its code has it, for comparison with Coach, with one axis, since there are no
// parameter servers here. Its probes are one and two workers. Then it fits epochs per second as f(w) = c - a (w -
// w0)^2, none of the three below 0, to all epochs. The fit starts from the one before, or from ones. Workers are added
// while f grows. Two probes determine a level and a difference but not the maximum of f: that depends on the start of
// the fit, so its value for three or more workers is not measured. Ours differs in the fit's steps, which are scipy's
// there.
type CoachPublished struct{}

// Name implements Policy.
func (CoachPublished) Name() string { return "coach-published" }

// Meaning implements Policy.
func (CoachPublished) Meaning() string { return "is the rule that Coach published" }

// Decide implements Policy.
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
	out.Why = fmt.Sprintf("%.3g - %.3g (w - %.3g)^2 epochs a second: %s", hill[0], hill[1], hill[2], workersText(n))
	return out
}

// surface is c, a and w0 of f(w) = c - a (w - w0)^2.
type surface [3]float64

func (f surface) at(workers int) float64 {
	d := float64(workers) - f[2]
	return f[0] - f[1]*d*d
}

// speed is epochs per second.
func speed(e epoch) float64 { return 1 / max(1e-9, e.duration.Seconds()) }

func (f surface) off(all []epoch) (sum float64) {
	for _, e := range all {
		d := f.at(e.workers) - speed(e)
		sum += d * d
	}
	return sum
}

// fitted continues a fit with steps of Levenberg and Marquardt, cut off at 0.
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
