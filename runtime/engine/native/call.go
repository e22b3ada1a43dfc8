package native

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// check refuses rows that do not fit.
func (e *Engine) check(op string, in dataset.Matrix) error {
	if sample := e.g.Input().Len(); in.Rows < 1 || in.Rows > e.spec.BatchSize || len(in.Values) != in.Rows*sample {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: op,
			Msg: fmt.Sprintf("%d values for %d rows of %d, at most %d rows a batch", len(in.Values), in.Rows, sample,
				e.spec.BatchSize),
		}
	}
	return nil
}

// checkBatch refuses rows or classes that do not fit.
func (e *Engine) checkBatch(op string, b *dataset.Batch) error {
	if err := e.check(op, b.Input); err != nil {
		return err
	}
	classes := b.Target.Classes
	if len(classes) != b.Input.Rows {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: op,
			Msg: fmt.Sprintf("%d labels for %d rows", len(classes), b.Input.Rows),
		}
	}
	for _, y := range classes {
		if y < 0 || int(y) >= e.g.Output().Len() {
			return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("label %d of %d classes", y, e.g.Output().Len())}
		}
	}
	return nil
}

// prepare sets up a call on rows of x.
func (e *Engine) prepare(x []float32, labels []int32, rows int, training bool) {
	e.x, e.labels, e.training = x, labels, training
	if rows == e.rows {
		return
	}
	e.rows = rows
	for l := range e.mask {
		e.mask[l] = 0
		if l < rows {
			e.mask[l] = 1
		}
	}
	for i := range e.layers {
		e.layers[i].setRows(rows)
		e.backs[i].setRows(rows)
	}
}

// Step trains on one batch and returns the mean loss of the rows before the step. It allocates nothing. It returns
// Invalid for a batch that does not fit and Diverged for an input or a loss that is not finite; then no weight was
// changed, but batch norms have counted the batch where its loss is what was not finite.
func (e *Engine) Step(b dataset.Batch) (disdel.Metrics, error) {
	if err := e.checkBatch("train", &b); err != nil {
		return disdel.Metrics{}, err
	}
	if !e.spec.Training {
		return disdel.Metrics{}, &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: "the engine was made for inference"}
	}
	e.steps++
	e.odd.Store(false)
	e.passes(b.Input, b.Target.Classes)
	if e.odd.Load() {
		return disdel.Metrics{}, &disdel.Error{
			Kind: disdel.Diverged, Op: "train", Msg: "an input of the batch is not finite",
			Hint: "check the data for NaN and infinities",
		}
	}
	if !finite(e.loss) {
		return disdel.Metrics{}, &disdel.Error{
			Kind: disdel.Diverged, Op: "train", Msg: fmt.Sprintf("the loss is %v", e.loss),
			Hint: "lower the learning rate, set training.clipNorm, or check the data's scale",
		}
	}
	return disdel.Metrics{Rows: b.Input.Rows, Loss: e.loss, Correct: e.correct}, nil
}

// passes computes a step: of the whole batch at once, or of one micro-batch after the other. It stops at an input or a
// loss that is not finite.
func (e *Engine) passes(in dataset.Matrix, labels []int32) {
	sample, size := e.g.Input().Len(), e.plan.Spec.BatchSize
	e.batch, e.all, e.loss = in.Rows, in.Values, 0
	for e.first = 0; e.first < in.Rows && !e.odd.Load() && finite(e.loss); e.first += size {
		n := min(size, in.Rows-e.first)
		e.prepare(in.Values[e.first*sample:][:n*sample], labels[e.first:][:n], n, true)
		e.team.Run(e.job)
	}
	e.loss /= float64(in.Rows)
	e.x, e.all, e.labels, e.first = nil, nil, nil, 0
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// checkInputs looks for values that are not finite, which tanh, sigmoid and relu6 would hide from the loss. A finite
// sum of squares proves at the speed of memory that all values are finite; otherwise they may only be large.
func (e *Engine) checkInputs(w *kernel.Worker, x []float32) {
	from, to := len(x)*w.ID/w.N/lanes*lanes, len(x)*(w.ID+1)/w.N/lanes*lanes
	if w.ID == w.N-1 {
		to = len(x)
	}
	whole := from + (to-from)/lanes*lanes
	if sum := w.SquareSum(x[from:whole]); !finite(sum) && !allFinite(x[from:whole]) || !allFinite(x[whole:to]) {
		e.odd.Store(true)
	}
}

// lanes is a multiple of the vector length of every path.
const lanes = 16

func allFinite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// Predict returns the network's output for rows: probabilities where it ends in softmax.
func (e *Engine) Predict(b dataset.Batch) (dataset.Matrix, error) {
	if err := e.check("predict", b.Input); err != nil {
		return dataset.Matrix{}, err
	}
	e.pieces(b.Input, nil)
	outputs := e.g.Output().Len()
	out := append([]float32(nil), e.out[:b.Input.Rows*outputs]...)
	return dataset.Matrix{Rows: b.Input.Rows, Columns: outputs, Values: out}, nil
}

// Evaluate returns the mean loss of the rows and how many have their largest output at the label. It returns Invalid as
// Step does, and Diverged for a loss that is not finite.
func (e *Engine) Evaluate(b dataset.Batch) (disdel.Metrics, error) {
	if err := e.checkBatch("evaluate", &b); err != nil {
		return disdel.Metrics{}, err
	}
	labels := b.Target.Classes
	e.pieces(b.Input, labels)
	classes, correct, loss := e.g.Output().Len(), 0, 0.0
	e.said = e.said[:0]
	for i, y := range labels {
		loss += e.losses[i]
		class := largest(e.out[i*classes : (i+1)*classes])
		if e.said = append(e.said, int32(class)); class == int(y) {
			correct++
		}
	}
	if loss /= float64(b.Input.Rows); !finite(loss) {
		return disdel.Metrics{},
			&disdel.Error{Kind: disdel.Diverged, Op: "evaluate", Msg: fmt.Sprintf("the loss is %v", loss)}
	}
	return disdel.Metrics{Rows: b.Input.Rows, Loss: loss, Correct: correct, Classes: e.said}, nil
}

// pieces computes the outputs of rows, in pieces of the plan's batch size.
func (e *Engine) pieces(in dataset.Matrix, labels []int32) {
	sample, step := e.g.Input().Len(), e.plan.Spec.BatchSize
	for e.first = 0; e.first < in.Rows; e.first += step {
		n, part := min(step, in.Rows-e.first), labels
		if labels != nil {
			part = labels[e.first:][:n]
		}
		e.prepare(in.Values[e.first*sample:][:n*sample], part, n, false)
		e.team.Run(e.infer)
		e.stale = false
	}
	e.x, e.labels, e.first = nil, nil, 0
}

func largest(row []float32) int {
	best := 0
	for k, v := range row {
		if v > row[best] {
			best = k
		}
	}
	return best
}
