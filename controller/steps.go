package controller

import (
	"math"

	"github.com/disdel/disdel"
)

// stepsOf is what the steps of a round came to, in the mean of the workers that tell: nil where none does. Stretches
// are put together by their last steps; a worker that was tried again tells only of the steps since then.
func stepsOf(workers []*disdel.StepCourse) *disdel.StepCourse {
	var out disdel.StepCourse
	told := 0
	for _, c := range workers {
		if c == nil {
			continue
		}
		told++
		out.Median += c.Median
		out.High += c.High
		for _, s := range c.Stretches {
			out.Stretches = addStretch(out.Stretches, s)
		}
	}
	if told == 0 {
		return nil
	}
	out.Median, out.High = out.Median/float64(told), out.High/float64(told)
	before := 0
	for i := range out.Stretches {
		s := &out.Stretches[i]
		meanOf(s)
		s.Steps, before = s.Last-before, s.Last
	}
	return &out
}

// addStretch adds a worker's stretch to that of the others up to the same step, as a sum weighted by its steps and its
// rows.
func addStretch(all []disdel.StepStretch, s disdel.StepStretch) []disdel.StepStretch {
	at := 0
	for at < len(all) && all[at].Last < s.Last {
		at++
	}
	if at == len(all) || all[at].Last != s.Last {
		all = append(all, disdel.StepStretch{})
		copy(all[at+1:], all[at:])
		all[at] = disdel.StepStretch{Last: s.Last}
	}
	into, steps := &all[at], float64(s.Steps)
	into.Steps += s.Steps
	into.Rows += s.Rows
	into.Loss += s.Loss * float64(s.Rows)
	into.Values += s.Values * steps
	into.Bytes += s.Bytes * steps
	into.Add(s.StepTimes, steps)
	if s.End.After(into.End) {
		into.End = s.End
	}
	return all
}

// meanOf makes means of what addStretch has added up.
func meanOf(s *disdel.StepStretch) {
	n := float64(max(1, s.Steps))
	times := disdel.StepTimes{}
	times.Add(s.StepTimes, 1/n)
	for _, part := range []*float64{
		&times.Fetch, &times.Compute, &times.Select, &times.Write, &times.Wait, &times.Read, &times.Apply,
	} {
		*part = math.Round(*part*perMs) / perMs
	}
	s.StepTimes, s.Values, s.Bytes = times, math.Round(s.Values/n), math.Round(s.Bytes/n)
	s.Loss /= float64(max(1, s.Rows))
}

// perMs is to what parts of a ms times are kept: digits that say nothing take room in a record.
const perMs = 1e4
