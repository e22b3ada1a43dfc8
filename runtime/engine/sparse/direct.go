package sparse

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// direct tells whether a step of so many rows can move each weight as often as rows have an entry for it: plain
// gradients of a logistic regression, whose slopes are at most 1. Sums are then taken on the weights themselves, not in
// a gradient beside them, which is most of what a step does otherwise. A bound for the gradient's length, and decay of
// touched weights, need the gradient.
func (e *Engine) direct(rows int) bool {
	o := e.layout.spec.Optimizer.SGD
	return o != nil && o.Momentum == 0 && o.WeightDecay == 0 && e.layout.spec.ClipNorm == 0 && e.probability &&
		e.rate <= float64(rows) // so that no product of a finite entry and its slope is infinite
}

// stepDirect is Step where direct says so. All slopes are taken before any weight is moved.
func (e *Engine) stepDirect(b *dataset.Batch) (disdel.Metrics, error) {
	rows := b.Input.Rows
	loss := e.slopes(b) / float64(rows)
	if !finite(loss) {
		return disdel.Metrics{}, &disdel.Error{
			Kind: disdel.Diverged, Op: "train", Msg: fmt.Sprintf("the loss is %v", loss),
			Hint: "lower the learning rate, or check the data's scale",
		}
	}
	e.steps++
	scale, all := -e.rate/float64(rows), 0.0
	for r, slope := range e.out[:rows] {
		all += float64(slope)
		e.out[r] = float32(scale * float64(slope))
	}
	entries := kernel.Entries{Start: b.Input.Start, Index: b.Input.Index, Values: b.Input.Values}
	e.exact.AddEntries(&entries, e.out[:rows], e.tables[0].value)
	e.tables[1].value[0] += float32(scale * all)
	return disdel.Metrics{Rows: rows, Loss: loss}, nil
}

// logRows is of how many rows one logarithm is taken: each adds a factor of 1 to 2 to what it is taken of.
const logRows = 512

// slopes writes every row's slope into out, and returns the sum of their losses.
func (e *Engine) slopes(b *dataset.Batch) (loss float64) {
	in, targets := &b.Input, b.Target.Values
	intercept := float64(e.tables[1].value[0])
	product := 1.0
	for from := 0; from < in.Rows; from += rowsAtOnce {
		for i, sum := range e.sumsOf(in, from) {
			r := from + i
			z, y := intercept+sum, float64(targets[r])
			tail := math.Exp(-math.Abs(z))
			e.out[r] = float32(sigmoid(z, tail) - y)
			loss += max(z, 0) - y*z
			if product *= 1 + tail; r%logRows == logRows-1 {
				loss, product = loss+math.Log(product), 1
			}
		}
	}
	return loss + math.Log(product)
}
