package engine

import (
	"math"

	"github.com/disdel/disdel"
)

// StateOf lists the arrays that Engine.State promises, for an engine of s. at is where parameter param of the graph's
// Params has its values, for a moment of -1, or, from 0 on, one of its moments; steps is the engine's count of them.
func StateOf(s *Spec, steps *int, at func(param, moment int) Values) []Array {
	var out []Array
	params := s.Graph.Params()
	for i, p := range params {
		role := Weight
		if !p.Trainable {
			role = Statistic
		}
		out = append(out, NewArray(p.Name, p.Shape, role, at(i, -1)))
	}
	if !s.Training {
		return out
	}
	out = append(out, NewArray(StepCount, []int{1}, Moment, StepValues(steps)))
	for m, name := range MomentNames(s.Optimizer) {
		for i, p := range params {
			if p.Trainable {
				out = append(out, NewArray(p.Name+"."+name, p.Shape, Moment, at(i, m)))
			}
		}
	}
	return out
}

// MomentNames are what PyTorch calls the moments of an optimiser.
func MomentNames(o disdel.Optimizer) []string {
	return [][]string{nil, {"momentum"}, {"exp_avg", "exp_avg_sq"}}[o.Moments()]
}

// StepValues reads and writes an engine's count of steps.
func StepValues(steps *int) Values { return count{steps} }

type count struct{ steps *int }

// ReadAt implements Values.
func (c count) ReadAt(dst []float32, _ int) {
	if len(dst) > 0 {
		dst[0] = float32(*c.steps)
	}
}

// WriteAt implements Values. An average of several counts need not be whole.
func (c count) WriteAt(src []float32, _ int) {
	if len(src) > 0 {
		*c.steps = int(math.Round(float64(src[0])))
	}
}
