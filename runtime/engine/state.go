package engine

import "math"

// StateOf lists the arrays that Engine.State promises, for an engine of s. at gives access to the values of parameter
// param of the graph's Params: those of the weights for moment -1, else of that moment. steps is the engine's count of
// steps.
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
	for m, name := range s.Optimizer.MomentNames() {
		for i, p := range params {
			if p.Trainable {
				out = append(out, NewArray(p.Name+"."+name, p.Shape, Moment, at(i, m)))
			}
		}
	}
	return out
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
