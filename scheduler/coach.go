package scheduler

import (
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// Coach buys workers by their marginal utility, as the thesis of that name has it: while one per cent more of them
// saves at least a tenth of a per cent of the time. Where the job has a budget, numbers that would not come to the end
// within it are not bought. It goes by the law T(w) = fixed + work / w + each w, which two measured numbers of workers
// determine up to twice the larger; the published surface takes its best number from the fit's starting guess. Epochs
// are its probes: their work is part of the job, and together they may lose a tenth of its time. The published joint
// choice among jobs is the Allocator's here.
type Coach struct{}

// coachPrice is how much shorter the time has to be for more workers, both as shares: of T(w) w^coachPrice the smallest
// is taken.
const coachPrice = 0.1

// Name is the word of job files.
func (Coach) Name() string { return "coach" }

// Meaning is what explain says.
func (Coach) Meaning() string {
	return "adds and takes away as many as the next one is worth, by a law of the times measured so far"
}

// Decide fits the law to the epochs so far and takes the number with the largest utility.
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

// decision is what a policy answers for a choice.
func (c choice) decision(out disdel.Decision) disdel.Decision {
	out.Next.Workers, out.Why = c.workers, c.why
	if c.expect > 0 {
		out.Expect = &disdel.Expectation{PerThousand: disdel.Millis(c.expect)}
	}
	return out
}

// by orders numbers of workers by a figure, the smaller number first where it is equal.
func by(figure func(timed) float64) func(a, b timed) int {
	return func(a, b timed) int {
		switch x, y := figure(a), figure(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		default:
			return a.workers - b.workers
		}
	}
}

// payable are those of the candidates with which the rest of the job stays within its budget; if there are none, the
// one that costs the least.
func (s *speeds) payable(in Input, all []timed) []timed {
	left := in.Goal.Cost
	if left <= 0 || s.price <= 0 || in.Goal.Epochs <= 0 {
		return all
	}
	cost := func(t timed) float64 {
		return in.Goal.Epochs * s.rows / 1000 * t.time * float64(t.workers) * s.price
	}
	within := slices.DeleteFunc(slices.Clone(all), func(t timed) bool { return cost(t) > left })
	if len(within) == 0 {
		return []timed{slices.MinFunc(all, by(cost))}
	}
	return within
}
