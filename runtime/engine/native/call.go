package native

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
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
	return e.checkTokens(op, in.Values)
}

// checkBatch refuses rows or classes that do not fit.
func (e *Engine) checkBatch(op string, b *dataset.Batch) error {
	if err := e.check(op, b.Input); err != nil {
		return err
	}
	return e.checkTargets(op, b)
}

// checkTargets refuses classes or numbers that do not fit.
func (e *Engine) checkTargets(op string, b *dataset.Batch) error {
	bad := func(format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf(format, args...)}
	}
	classes := b.Target.Classes
	switch {
	case e.plan.Spec.Text:
		return bad("the engine was made to continue texts")
	case b.Target.Values != nil:
		return e.checkNumbers(op, bad, b)
	case len(classes) != b.Input.Rows:
		return bad("%d labels for %d rows", len(classes), b.Input.Rows)
	case !ofClasses(e.spec.Loss):
		return bad("the loss %s takes numbers, and the rows have classes", e.spec.Loss)
	}
	for _, y := range classes {
		if y < 0 || int(y) >= e.g.Output().Len() {
			return bad("label %d of %d classes", y, e.g.Output().Len())
		}
	}
	return nil
}

// checkNumbers refuses numbers to predict that do not fit (Invalid) or are not finite (Diverged).
func (e *Engine) checkNumbers(op string, bad func(string, ...any) error, b *dataset.Batch) error {
	outputs, values := e.g.Output().Len(), b.Target.Values
	switch {
	case len(values) != b.Input.Rows*outputs:
		return bad("%d numbers to predict for %d rows of %d outputs", len(values), b.Input.Rows, outputs)
	case !ofNumbers(e.spec.Loss):
		return bad("the loss %s takes classes, and the rows have numbers to predict", e.spec.Loss)
	case e.g.Nodes[len(e.g.Nodes)-1].Op == model.OpSoftmax:
		return bad("the network ends in softmax, and predicts no numbers")
	case e.spec.Loss == BinaryCrossEntropy && e.head == len(e.g.Nodes)-1:
		return bad("binary cross-entropy of several labels needs a network that ends in sigmoid")
	}
	for i, v := range values {
		if e.spec.Loss == BinaryCrossEntropy && (v < 0 || v > 1) {
			return bad("label %d of row %d of the batch is %g, which is not 0 to 1", i%outputs, i/outputs, v)
		}
		if v-v != 0 {
			return &disdel.Error{
				Kind: disdel.Diverged, Op: op, Msg: fmt.Sprintf("target %d of row %d of the batch is %g", i%outputs, i/outputs, v),
				Hint: "check the data for NaN and infinities",
			}
		}
	}
	return nil
}

// prepare sets up a call on rows of x.
func (e *Engine) prepare(x []float32, target dataset.Target, rows int, training bool) {
	e.x, e.target, e.training = x, target, training
	e.settleMoments()
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
// Invalid for a batch that does not fit, and Diverged for an input or a loss that is not finite. After an error the
// weights are unchanged. If the loss was not finite, batch norms have counted the batch all the same.
func (e *Engine) Step(b dataset.Batch) (disdel.Metrics, error) {
	if err := e.checkBatch("train", &b); err != nil {
		return disdel.Metrics{}, err
	}
	if !e.spec.Training {
		return disdel.Metrics{}, &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: "the engine was made for inference"}
	}
	e.steps++
	e.odd.Store(false)
	e.passes(b.Input, b.Target)
	if err := e.pages.failure(); err != nil {
		return disdel.Metrics{}, err
	}
	if err := e.diverged(); err != nil {
		return disdel.Metrics{}, err
	}
	if b.Target.Values != nil || e.g.PredictsTokens() {
		e.correct = -1
	}
	return disdel.Metrics{Rows: b.Input.Rows, Loss: e.loss, Correct: e.correct}, nil
}

// diverged returns Diverged after a pass whose inputs or loss are not finite.
func (e *Engine) diverged() error {
	if e.odd.Load() {
		return &disdel.Error{
			Kind: disdel.Diverged, Op: "train", Msg: "an input of the batch is not finite",
			Hint: "check the data for NaN and infinities",
		}
	}
	if !finite(e.loss) {
		return &disdel.Error{
			Kind: disdel.Diverged, Op: "train", Msg: fmt.Sprintf("the loss is %v", e.loss),
			Hint: "lower the learning rate, set training.clipNorm, or check the data's scale",
		}
	}
	return nil
}

// passes computes a step: of the whole batch at once, or of one micro-batch after the other. It stops at an input or a
// loss that is not finite.
func (e *Engine) passes(in dataset.Matrix, target dataset.Target) {
	sample, size := e.g.Input().Len(), e.plan.Spec.BatchSize
	e.batch, e.all, e.loss = in.Rows, in.Values, 0
	e.count(in)
	e.weigh(target.Classes)
	for e.first = 0; e.first < in.Rows && !e.odd.Load() && finite(e.loss); e.first += size {
		n := min(size, in.Rows-e.first)
		e.prepare(in.Values[e.first*sample:][:n*sample], e.part(target, n), n, true)
		e.team.Run(e.job)
	}
	e.loss /= float64(max(1, e.counted))
	e.x, e.all, e.target, e.first = nil, nil, dataset.Target{}, 0
}

// count counts the targets of a call: a row each, or of a language model its positions.
func (e *Engine) count(in dataset.Matrix) {
	if e.counted = in.Rows; e.g.PredictsTokens() && e.slice != nil {
		e.counted = e.targets(e.slice.tokens)
	} else if e.g.PredictsTokens() {
		e.counted = e.targets(in.Values)
	}
}

// part is the target of n rows of a call, from the row on that the call has come to.
func (e *Engine) part(target dataset.Target, n int) dataset.Target {
	if target.Classes != nil {
		target.Classes = target.Classes[e.first:][:n]
	}
	if outputs := e.g.Output().Len(); target.Values != nil {
		target.Values = target.Values[e.first*outputs:][:n*outputs]
	}
	return target
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// checkInputs looks for values that are not finite, which tanh, sigmoid and relu6 would hide from the loss. A finite
// sum of squares proves at the speed of memory that all values are finite; otherwise they may only be large.
func (e *Engine) checkInputs(w *kernel.Worker, x []float32) {
	from, to := len(x)*w.ID/w.N/lanes*lanes, len(x)*(w.ID+1)/w.N/lanes*lanes
	if w.ID == w.N-1 {
		to = len(x)
	}
	filled := from + (to-from)/lanes*lanes
	if sum := w.SquareSum(x[from:filled]); !finite(sum) && !allFinite(x[from:filled]) || !allFinite(x[filled:to]) {
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

// Predict returns the network's output for rows: probabilities where it ends in softmax. Of a language model they are
// the probabilities of the token behind each row; a row that comes alone may be shorter than in training.
func (e *Engine) Predict(b dataset.Batch) (dataset.Matrix, error) {
	if e.plan.Spec.Text {
		return e.continueText(b.Input)
	}
	b.Input = e.lengthen(b.Input)
	defer func() { e.length = 0 }()
	if err := e.check("predict", b.Input); err != nil {
		return dataset.Matrix{}, err
	}
	e.pieces(b.Input, dataset.Target{})
	n := outputs(e.g)
	out := append([]float32(nil), e.out[:b.Input.Rows*n]...)
	return dataset.Matrix{Rows: b.Input.Rows, Columns: n, Values: out}, nil
}

// Evaluate returns the mean loss of the rows, and how many have their largest output at the label or, where rows have
// numbers, the outputs. It returns Invalid as Step does, and Diverged for a loss that is not finite.
func (e *Engine) Evaluate(b dataset.Batch) (disdel.Metrics, error) {
	if err := e.checkBatch("evaluate", &b); err != nil {
		return disdel.Metrics{}, err
	}
	e.pieces(b.Input, b.Target)
	classes, correct, loss := e.g.Output().Len(), 0, 0.0
	e.predicted = e.predicted[:0]
	for _, v := range e.losses[:b.Input.Rows] {
		loss += v
	}
	if e.g.PredictsTokens() {
		return e.evaluated(b.Input)
	}
	for i, y := range b.Target.Classes {
		class := largest(e.out[i*classes : (i+1)*classes])
		if e.predicted = append(e.predicted, int32(class)); class == int(y) {
			correct++
		}
	}
	if loss /= float64(b.Input.Rows); !finite(loss) {
		return disdel.Metrics{},
			&disdel.Error{Kind: disdel.Diverged, Op: "evaluate", Msg: fmt.Sprintf("the loss is %v", loss)}
	}
	if b.Target.Values != nil {
		return disdel.Metrics{Rows: b.Input.Rows, Loss: loss, Correct: -1, Scores: e.out[:b.Input.Rows*classes]}, nil
	}
	return disdel.Metrics{
		Rows: b.Input.Rows, Loss: loss, Correct: correct, Classes: e.predicted,
		Top5: disdel.CountTop5(e.out[:b.Input.Rows*classes], b.Target.Classes),
	}, nil
}

// evaluated returns the mean loss over the targets of a language model's rows, and how many it predicts.
func (e *Engine) evaluated(in dataset.Matrix) (disdel.Metrics, error) {
	e.count(in)
	loss := 0.0
	for _, v := range e.losses[:in.Rows] {
		loss += v
	}
	if loss /= float64(max(1, e.counted)); !finite(loss) {
		return disdel.Metrics{},
			&disdel.Error{Kind: disdel.Diverged, Op: "evaluate", Msg: fmt.Sprintf("the loss is %v", loss)}
	}
	return disdel.Metrics{Rows: in.Rows, Loss: loss, Correct: e.correct, Targets: e.counted}, nil
}

// pieces computes the outputs of rows, in pieces of the plan's batch size.
func (e *Engine) pieces(in dataset.Matrix, target dataset.Target) {
	sample, step := e.g.Input().Len(), e.plan.Spec.BatchSize
	for e.first = 0; e.first < in.Rows; e.first += step {
		n := min(step, in.Rows-e.first)
		e.prepare(in.Values[e.first*sample:][:n*sample], e.part(target, n), n, false)
		e.team.Run(e.infer)
		e.stale = false
	}
	e.x, e.target, e.first = nil, dataset.Target{}, 0
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
