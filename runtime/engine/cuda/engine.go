package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Engine computes with one network. It is for one goroutine.
type Engine struct {
	g      *model.Graph
	spec   engine.Spec
	memory *memory
	plan   *plan.Plan
	dev    driver.Device
	base   driver.Pointer // of the device memory
	lost   error          // why nothing works any more

	layers []layer
	params []param
	head   int // the node whose output the loss takes
	update kernel.Update

	train, infer driver.Program
	rate         float64
	steps        int // since the moments were reset
	labels       []int32
	answer       kernel.Result
}

// newEngine takes the memory, which is all zero afterwards, and has the device made ready for steps.
func newEngine(s engine.Spec, m *memory, d driver.Device) (*Engine, error) {
	e := &Engine{
		g: s.Graph, spec: s, memory: m, plan: m.plan, dev: d, rate: s.Optimizer.Rate(), labels: make([]int32, m.plan.Lanes),
	}
	var err error
	if e.base, err = d.Alloc(m.end); err != nil {
		return nil, faulty("make engine", err)
	}
	e.build()
	if err := e.prepare(); err != nil {
		return nil, faulty("make engine", err)
	}
	return e, nil
}

// Kernels is "cuda": what the same kernels come to differs from device to device.
func (e *Engine) Kernels() string { return "cuda" }

// build makes the layers and what they have of the memory.
func (e *Engine) build() {
	e.head = len(e.g.Nodes) - 1
	if n := e.g.Nodes[e.head]; n.Op == model.OpSoftmax {
		e.head = n.Inputs[0]
	}
	for _, p := range e.plan.Params {
		e.params = append(e.params, param{
			Param: p.Param, value: e.region(p.Value), grad: e.region(p.Grad),
			moments: [2]driver.Pointer{e.region(p.Moments[0]), e.region(p.Moments[1])},
		})
	}
	e.layers = make([]layer, len(e.g.Nodes))
	for i := range e.layers {
		e.layers[i] = e.layer(i)
	}
	e.update = e.optimizer()
}

// prepare clears the memory, writes the list of weights, and has the device take the launches of both kinds of call.
func (e *Engine) prepare() error {
	clearing, err := e.dev.Prepare([]driver.Launch{kernel.Pointwise(kernel.Clear, e.base, 0, 0, int(e.memory.end/4))})
	if err != nil {
		return err
	}
	if err := e.dev.Run(clearing); err != nil {
		return err
	}
	if err := e.dev.Write(e.place(e.memory.segments), e.list()); err != nil {
		return err
	}
	if e.infer, err = e.dev.Prepare(e.launches(false)); err != nil || !e.spec.Training {
		return err
	}
	e.train, err = e.dev.Prepare(e.launches(true))
	return err
}

// launches are those of a call: forward, the loss, and of a step backward, each layer's weights moved as soon as their
// gradient is there, unless the gradient is clipped, which takes all of it.
func (e *Engine) launches(training bool) []driver.Launch {
	in := &e.layers[0]
	out := []driver.Launch{kernel.Importing{
		Image: in.v.Image, Border: in.v.Border, Control: e.place(e.memory.control), Result: e.place(e.memory.result),
	}.Do(in.out, e.place(e.memory.input))}
	for i := 1; i < len(e.layers); i++ {
		out = append(out, e.layers[i].forward(e, training)...)
	}
	out = append(out, e.loss(training)...)
	if !training {
		return out
	}
	moves := e.spec.Optimizer.Name() != ""
	for i := e.head; i > 0; i-- {
		l := &e.layers[i]
		if l.grad == 0 {
			continue
		}
		out = append(out, l.backward(e)...)
		if moves && e.spec.ClipNorm <= 0 && l.segments.Count > 0 {
			out = append(out, e.update.Do(l.segments))
		}
	}
	if all := e.segments(); moves && e.spec.ClipNorm > 0 && all.Count > 0 {
		out = append(out, kernel.Clip(all, e.spec.ClipNorm, e.place(e.memory.result), e.place(e.memory.sums))...)
		out = append(out, e.update.Do(all))
	}
	return out
}

// loss are the launches that compute the loss and, of a step, the gradient that backward starts from, else the outputs.
func (e *Engine) loss(training bool) []driver.Launch {
	head, m := &e.layers[e.head], e.memory
	l := kernel.Loss{
		Image: head.v.Image, Kind: losses[e.spec.Loss], Softmax: e.g.Nodes[len(e.g.Nodes)-1].Op == model.OpSoftmax,
		Labels: e.place(m.labels), Losses: e.place(m.losses), Right: e.place(m.right),
		Control: e.place(m.control), Result: e.place(m.result),
	}
	if training {
		return l.Do(head.out, head.grad, 0)
	}
	return l.Do(head.out, 0, e.place(m.output))
}

// Footprint implements engine.Engine.
func (e *Engine) Footprint() engine.Footprint { return e.memory.footprint() }

// SetRate implements engine.Engine.
func (e *Engine) SetRate(rate float64) { e.rate = rate }

// SetSeed implements engine.Engine.
func (e *Engine) SetSeed(seed int64) { e.spec.Seed = seed }

// Close implements engine.Engine.
func (e *Engine) Close() error {
	if err := e.dev.Close(); err != nil {
		return faulty("close device", err)
	}
	return nil
}

// call writes a batch, has a program run, and reads what it answers.
func (e *Engine) call(op string, p driver.Program, b dataset.Batch) error {
	if e.lost != nil {
		return e.lost
	}
	for i := range e.labels {
		e.labels[i] = -1
	}
	copy(e.labels, b.Target.Classes)
	told, answer := e.told(b.Input.Rows), make([]byte, resultLen)
	for _, do := range []func() error{
		func() error { return e.dev.Write(e.place(e.memory.control), told) },
		func() error { return e.dev.Write(e.place(e.memory.input), bytesOf(b.Input.Values)) },
		func() error { return e.dev.Write(e.place(e.memory.labels), bytesOf(e.labels)) },
		func() error { return e.dev.Run(p) },
		func() error { return e.dev.Read(answer, e.place(e.memory.result)) },
	} {
		if err := do(); err != nil {
			return e.fail(op, err)
		}
	}
	return binary.Read(bytes.NewReader(answer), binary.LittleEndian, &e.answer)
}

// fail keeps what went wrong with the device: no later call may go by memory that a call has left half done.
func (e *Engine) fail(op string, err error) error {
	if e.lost == nil {
		e.lost = faulty(op, err)
	}
	return e.lost
}

// bytesOf are the bytes of values as they lie in memory, which on machines with such devices is as on the device.
func bytesOf[T float32 | int32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

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
func (e *Engine) checkBatch(op string, b dataset.Batch) error {
	if err := e.check(op, b.Input); err != nil {
		return err
	}
	if classes := b.Target.Classes; len(classes) != b.Input.Rows {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("%d labels for %d rows", len(classes), b.Input.Rows),
		}
	}
	for _, y := range b.Target.Classes {
		if y < 0 || int(y) >= e.g.Output().Len() {
			return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("label %d of %d classes", y, e.g.Output().Len())}
		}
	}
	return nil
}

// Step implements engine.Engine. Batch norms have counted a batch whose loss is not finite.
func (e *Engine) Step(b dataset.Batch) (disdel.Metrics, error) {
	if err := e.checkBatch("train", b); err != nil {
		return disdel.Metrics{}, err
	}
	if !e.spec.Training {
		return disdel.Metrics{}, &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: "the engine was made for inference"}
	}
	e.steps++
	if err := e.call("train", e.train, b); err != nil {
		return disdel.Metrics{}, err
	}
	return e.metrics("train", b)
}

// Evaluate implements engine.Engine.
func (e *Engine) Evaluate(b dataset.Batch) (disdel.Metrics, error) {
	if err := e.checkBatch("evaluate", b); err != nil {
		return disdel.Metrics{}, err
	}
	if err := e.call("evaluate", e.infer, b); err != nil {
		return disdel.Metrics{}, err
	}
	m, err := e.metrics("evaluate", b)
	if err != nil {
		return m, err
	}
	out, err := e.outputs("evaluate", b.Input.Rows)
	m.Classes = engine.Largest(out, e.g.Output().Len())
	return m, err
}

// outputs are those of the rows of the last inference, [rows classes].
func (e *Engine) outputs(op string, rows int) ([]float32, error) {
	out := make([]float32, rows*e.g.Output().Len())
	if err := e.dev.Read(bytesOf(out), e.place(e.memory.output)); err != nil {
		return nil, e.fail(op, err)
	}
	return out, nil
}

// metrics are what a call answered.
func (e *Engine) metrics(op string, b dataset.Batch) (disdel.Metrics, error) {
	a := &e.answer
	bad := func(hint, format string, args ...any) (disdel.Metrics, error) {
		return disdel.Metrics{}, &disdel.Error{Kind: disdel.Diverged, Op: op, Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	const lower = "lower the learning rate, set training.clipNorm, or check the data's scale"
	switch {
	case a.Odd != 0:
		return bad("check the data for NaN and infinities", "an input of the batch is not finite")
	case math.IsNaN(a.Loss) || math.IsInf(a.Loss, 0):
		return bad(lower, "the loss is %v", a.Loss)
	case a.Bad != 0:
		return bad(lower, "the gradient is not finite")
	}
	return disdel.Metrics{Rows: b.Input.Rows, Loss: a.Loss, Correct: int(a.Correct)}, nil
}

// Predict implements engine.Engine.
func (e *Engine) Predict(b dataset.Batch) (dataset.Matrix, error) {
	if err := e.check("predict", b.Input); err != nil {
		return dataset.Matrix{}, err
	}
	b.Target.Classes = nil
	if err := e.call("predict", e.infer, b); err != nil {
		return dataset.Matrix{}, err
	}
	out, err := e.outputs("predict", b.Input.Rows)
	if err != nil {
		return dataset.Matrix{}, err
	}
	return dataset.Matrix{Rows: b.Input.Rows, Columns: e.g.Output().Len(), Values: out}, nil
}
