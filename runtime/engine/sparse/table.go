package sparse

import (
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/slab"
)

// table is rows of weights of which a step touches few. The gradients of those lie close together, in the order that
// they were touched first; slot leads from a row to its gradient. A slot counts only where touched leads back to the
// row, so that nothing has to be cleared between steps (Briggs and Torczon 1993).
//
// In a table of width 1 a row and its gradient lie side by side, in marks: who finds the one has the other in the same
// line of the cache, and a step of a regression is little else than that.
type table struct {
	rows, width int
	value       []float32    // [rows width]
	moments     [2][]float32 // the same; those that the optimiser has
	slot        []int32      // [rows]
	touched     []int32      // rows, of which the first n are of this step
	n           int
	grad        []float32 // [len(touched) width]
	marks       []int32   // of width 1, instead of touched and grad: a row, then the bits of its gradient
}

// newTable takes the table's part of a slab, from at on, and returns where the next part begins.
func newTable(s tableShape, moments int, mem *slab.Slab, at int) (t table, next int) {
	t = table{rows: s.rows, width: s.width}
	floats := func(n int) []float32 {
		at += n
		return mem.Values()[at-n : at : at]
	}
	ints := func(n int) []int32 {
		at += n
		return mem.Int32s(at-n, n)
	}
	t.value = floats(s.rows * s.width)
	if s.maximum == 0 {
		return t, at
	}
	for m := range moments {
		t.moments[m] = floats(s.rows * s.width)
	}
	t.slot = ints(s.rows)
	if s.width == 1 {
		t.marks = ints(2 * s.maximum)
		return t, at
	}
	t.touched, t.grad = ints(s.maximum), floats(s.maximum*s.width)
	return t, at
}

// mark is which row was touched i-th in a table of width 1, and its gradient.
func (t *table) mark(i int) (row int32, grad float32) {
	return t.marks[2*i], math.Float32frombits(uint32(t.marks[2*i+1]))
}

// place is where among the touched rows a row is. The gradient of one that was not is cleared by the caller. Tables of
// width 1 have add.
func (t *table) place(row int32) int32 {
	s := uint32(t.slot[row])
	if s < uint32(t.n) && t.touched[s] == row {
		return int32(s)
	}
	n := int32(t.n)
	t.slot[row], t.touched[n] = n, row
	t.n++
	return n
}

// moved are the touched rows, as an optimiser moves them.
func (t *table) moved() kernel.Touched {
	m := kernel.Touched{Width: t.width, Values: t.value, First: t.moments[0], Second: t.moments[1]}
	if t.width == 1 {
		m.Marks = t.marks[:2*t.n]
		return m
	}
	m.Rows, m.Gradients = t.touched[:t.n], t.grad[:t.n*t.width]
	return m
}

// view is an array of the state: some columns of a table, as engine.Values. The table's rows are the array's, in their
// order.
type view struct {
	values []float32 // of the table: weights or a moment
	stride int       // from a row to the next
	column int       // the first of the array's
	width  int       // of the array's
}

// ReadAt implements engine.Values.
func (v view) ReadAt(dst []float32, at int) {
	if v.width == 1 && v.stride > 1 { // a column: a call for each value would take longer than all else
		place := at*v.stride + v.column
		for i := range dst {
			dst[i] = v.values[place]
			place += v.stride
		}
		return
	}
	v.runs(len(dst), at, func(from int, run []float32) { copy(dst[from:], run) })
}

// WriteAt implements engine.Values.
func (v view) WriteAt(src []float32, at int) {
	if v.width == 1 && v.stride > 1 {
		place := at*v.stride + v.column
		for _, x := range src {
			v.values[place] = x
			place += v.stride
		}
		return
	}
	v.runs(len(src), at, func(from int, run []float32) { copy(run, src[from:]) })
}

// runs calls f for n values from at on, piece by piece: from is the index of a piece's first among them.
func (v view) runs(n, at int, f func(from int, run []float32)) {
	if v.stride == v.width { // all of it is one piece
		if n > 0 {
			f(0, v.values[at:at+n])
		}
		return
	}
	start, column := at/v.width*v.stride+v.column, at%v.width
	for from := 0; from < n; {
		k := min(v.width-column, n-from)
		f(from, v.values[start+column:start+column+k])
		from, start, column = from+k, start+v.stride, 0
	}
}

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
