package aggregator

import (
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// Feedback is a worker's error feedback (Seide et al. 2014; Karimireddy et al. 2019). What a format rounds away or does
// not send is added to the next round's update. It sends differences to the round's reference, because only small
// numbers may be rounded so coarsely. It decodes each encoded column and keeps the rest. It is for one goroutine.
type Feedback struct {
	wire     disdel.Wire
	codec    codec
	residual disdel.Weights
	column   int
}

// NewFeedback starts from the previous round's residual, which it takes over, or from none. It returns Invalid for a
// format that sends no differences, and for invalid options.
func NewFeedback(f Format, residual disdel.Weights) (*Feedback, error) {
	if err := f.check(); err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "start error feedback", Err: err}
	}
	return feedback(f, residual), nil
}

// feedback is NewFeedback for any format. A lossless format leaves no residual.
func feedback(f Format, residual disdel.Weights) *Feedback {
	return &Feedback{wire: f.Wire, codec: codecs[wireNumber(f.Wire)].open(f), residual: residual, column: columnValues}
}

// Residual is what the rounds so far lost, by the weights' names. It is Feedback's own memory.
func (f *Feedback) Residual() disdel.Weights { return f.residual }

// Encoded is an encoded update. It may be pushed several times.
type Encoded struct {
	wire    disdel.Wire
	layout  layout
	columns [][]byte
}

// Bytes is its size without the envelope.
func (e *Encoded) Bytes() disdel.Bytes {
	n := 0
	for _, c := range e.columns {
		n += len(c)
	}
	return disdel.Bytes(n)
}

// Encode encodes weights minus reference plus the residual, and keeps what that loses. It changes neither weights nor
// reference. It returns Invalid for different shapes and Diverged for values that are not finite; then the residual is
// unchanged.
func (f *Feedback) Encode(weights, reference disdel.Weights) (*Encoded, error) {
	e := &Encoded{wire: f.wire, layout: newLayout(weights, f.column)}
	if err := f.fits(e.layout, weights, reference); err != nil {
		return nil, err
	}
	if err := f.finite(weights, reference); err != nil {
		return nil, err
	}
	for i, t := range weights {
		for k, v := range t.Data {
			f.residual[i].Data[k] += v - reference[i].Data[k]
		}
	}
	w := updateWriter{feedback: f, layout: e.layout, weights: weights}
	longest := w.layout.longest()
	w.values, w.kept = make([]float32, 0, longest), make([]float32, longest)
	for k := range e.layout.columns() {
		column, err := w.write(k)
		if err != nil {
			return nil, &disdel.Error{Kind: disdel.Internal, Op: "encode update", Err: err}
		}
		e.columns = append(e.columns, column)
	}
	return e, nil
}

// updateWriter encodes an update column by column.
type updateWriter struct {
	feedback     *Feedback
	layout       layout
	weights      disdel.Weights
	values       []float32 // values of a column to send
	kept         []float32 // the values after encoding
	weightValues []float32 // weights of the column, if the codec needs them
	bytes        []byte    // buffer for a column of unknown length
}

// write encodes column k and subtracts what it carries from the residual.
func (w *updateWriter) write(k int) ([]byte, error) {
	f := w.feedback
	w.values = w.layout.gather(w.values, f.residual, k)
	out := encodeInput{runs: w.layout.runs(k), values: w.values, weights: func() []float32 {
		if w.weightValues == nil {
			w.weightValues = make([]float32, 0, w.layout.longest())
		}
		w.weightValues = w.layout.gather(w.weightValues, w.weights, k)
		return w.weightValues
	}}
	column := w.encode(out)
	kept := w.kept[:len(w.values)]
	if err := f.codec.decode(kept, out.runs, column); err != nil {
		return nil, err
	}
	f.take(w.layout, k, kept)
	return column, nil
}

// encode returns a column without spare capacity.
func (w *updateWriter) encode(out encodeInput) []byte {
	minimum, maximum := w.feedback.codec.size(out.runs)
	if minimum == maximum {
		return w.feedback.codec.encode(make([]byte, 0, maximum), out)
	}
	if cap(w.bytes) < maximum {
		w.bytes = make([]byte, 0, maximum)
	}
	return slices.Clone(w.feedback.codec.encode(w.bytes[:0], out))
}

// fits checks the shapes, and creates a residual if there is none.
func (f *Feedback) fits(l layout, weights, reference disdel.Weights) error {
	if len(f.residual) == 0 {
		f.residual = l.weightsOver(make([]float32, l.values()))
	}
	for _, other := range []disdel.Weights{reference, f.residual} {
		err := l.checkShapes(other)
		if err == nil {
			err = l.checkData(other)
		}
		if err != nil {
			return &disdel.Error{Kind: disdel.Invalid, Op: "encode update", Err: err}
		}
	}
	if err := l.checkData(weights); err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "encode update", Err: err}
	}
	return nil
}

// maxDifference is the largest difference that every format can send: rounding up must not reach infinity.
const maxDifference = math.MaxFloat32 / 2

func (f *Feedback) finite(weights, reference disdel.Weights) error {
	for i, t := range weights {
		for k, v := range t.Data {
			if d := f.residual[i].Data[k] + (v - reference[i].Data[k]); !(d < maxDifference && d > -maxDifference) {
				return &disdel.Error{
					Kind: disdel.Diverged, Op: "encode update", Msg: fmt.Sprintf("value %d of %s is not finite", k, t.Name),
					Hint: "lower the learning rate",
				}
			}
		}
	}
	return nil
}

// take subtracts the sent values of column k from the residual.
func (f *Feedback) take(l layout, k int, carried []float32) {
	from, to := l.columnRange(k)
	for i := range l.tensors {
		a, b := max(from, l.starts[i]), min(to, l.starts[i+1])
		for v := a; v < b; v++ {
			f.residual[i].Data[v-l.starts[i]] -= carried[v-from]
		}
	}
}
