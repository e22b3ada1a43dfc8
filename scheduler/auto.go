package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// Auto takes the fewest workers that do what the user asks for: the fewest that come to the end before the job's
// deadline, at the least cost, or, without a deadline, the fewest with which an epoch takes at most three per cent
// longer than with the best number that is known. It goes by jobs of the same kind that ran before, else by this one's
// first epochs: its probes, which may lose a tenth of its time. It begins with no more workers than there are
// processors.
type Auto struct{}

const (
	autoSlower = 1.03 // times the best: what fewer workers may cost in time
	autoSpare  = 0.9  // of the deadline: what is planned to fill it
)

// Name is the word of job files.
func (Auto) Name() string { return "auto" }

// Meaning is what explain says.
func (Auto) Meaning() string {
	return "takes the fewest that keep the deadline, or that are as fast as the best but for 3 %"
}

// Decide begins with what earlier jobs tell, and goes on by what this one's epochs do.
func (a Auto) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	s := speedsOf(in)
	best := func(all []timed) timed { return a.best(s, in, all) }
	switch {
	case in.Boundary == disdel.BoundaryEpoch:
		return s.choose(in, best).decision(out)
	case in.Boundary != disdel.BoundaryStart:
		return out
	}
	if s, ok := scalingOf(in, func(int) bool { return true }); ok {
		return s.chosen().decision(out)
	}
	if n := in.Bounds.Processors; n > 0 && out.Next.Workers > n {
		out.Next.Workers = n
		out.Why = fmt.Sprintf("as many as there are processors: %s", crew(n))
	}
	return out
}

// best is the fewest of those that do.
func (Auto) best(s *speeds, in Input, all []timed) timed {
	all = s.payable(in, all)
	left, epochs := float64(in.Goal.Deadline), in.Goal.Epochs
	if left > 0 && epochs > 0 && s.rows > 0 {
		each := autoSpare * left / epochs / s.rows * 1000 // that 1,000 rows may take
		intime := slices.DeleteFunc(s.worthwhile(all), func(t timed) bool { return t.time > each })
		if len(intime) > 0 {
			return slices.MinFunc(intime, by(func(t timed) float64 { return t.time * float64(t.workers) }))
		}
	}
	byTime := by(func(t timed) float64 { return t.time })
	enough := max(autoSlower*slices.MinFunc(all, byTime).time, slices.MinFunc(s.worthwhile(all), byTime).time)
	near := slices.DeleteFunc(slices.Clone(all), func(t timed) bool { return t.time > enough })
	return slices.MinFunc(near, func(a, b timed) int { return cmp.Compare(a.workers, b.workers) })
}

// told is the number of workers of a job whose file gives neither workers nor a policy. It is the number that pays by
// the times of earlier jobs of the kind, as Auto begins with it. It stays while the job runs, so that the same home and
// file give the same bits. told returns none if the only measured number pays, or if jobs share the processors.
func (b *planBuilder) told(limit disdel.Bytes) (none choice) {
	if !b.free() || b.Decided || b.Beside > 0 || len(b.History) == 0 {
		return none
	}
	s, ok := b.scaling(limit)
	if _, measured := s.mean[s.pays.workers]; !ok || measured && len(s.measured(s.all)) < 2 {
		return none
	}
	return s.chosen()
}
