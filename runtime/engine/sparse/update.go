package sparse

import (
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// squaredNorm is the squared length of the gradient, all tables together.
func (e *Engine) squaredNorm() (sum float64) {
	for i := range e.tables {
		t := &e.tables[i]
		if t.width == 1 {
			sum += t.markedNorm()
			continue
		}
		sum += e.exact.SquareSum(t.grad[:t.n*t.width])
	}
	return sum
}

// markedNorm is the squared length of a table's gradient of width 1, in four sums that do not wait for each other.
func (t *table) markedNorm() float64 {
	square := func(i int) float64 {
		_, g := t.mark(i)
		return float64(g) * float64(g)
	}
	var a, b, c, d float64
	i := 0
	for ; i+4 <= t.n; i += 4 {
		a, b, c, d = a+square(i), b+square(i+1), c+square(i+2), d+square(i+3)
	}
	for ; i < t.n; i++ {
		a += square(i)
	}
	return (a + b) + (c + d)
}

// update moves the weights that the step has touched by their gradients, of which norm is the squared length. A row's
// velocity changes where the row has a gradient; Adam's count of steps is the engine's, not a row's own, as PyTorch's
// SparseAdam has it.
func (e *Engine) update(norm float64) {
	scale := 1.0
	if limit := e.layout.spec.ClipNorm; limit > 0 && norm > limit*limit {
		scale = limit / math.Sqrt(norm)
	}
	u := kernel.Update{Optimizer: e.layout.spec.Optimizer, Rate: e.rate, Scale: scale, Step: e.steps}
	for i := range e.tables {
		rows := e.tables[i].moved()
		e.exact.Update(&u, &rows)
	}
}

// Reset puts the arrays of a role back to what they are before the first step. There are no statistics. It returns
// Invalid for weights, which Init draws.
func (e *Engine) Reset(r engine.Role) error {
	switch r {
	case engine.Moment:
		e.steps = 0
		for i := range e.tables {
			clear(e.tables[i].moments[0])
			clear(e.tables[i].moments[1])
		}
	case engine.Weight:
		return &disdel.Error{Kind: disdel.Invalid, Op: "reset state", Msg: "weights have no start but Init's"}
	}
	return nil
}
