package cuda

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// hand brings a batch to a slot; rows without a label have -1.
func (e *Engine) hand(op string, slot int, b dataset.Batch, turn driver.Turn) error {
	if e.lost != nil {
		return e.lost
	}
	for i := range e.labels {
		e.labels[i] = -1
	}
	copy(e.labels, b.Target.Classes)
	to := e.memory.slots[slot]
	err := e.dev.Write(e.place(to.input), bytesOf(b.Input.Values), turn)
	if err == nil {
		err = e.dev.Write(e.place(to.labels), bytesOf(e.labels), turn)
	}
	if err != nil {
		return e.fail(op, err)
	}
	return nil
}

// start tells the kernels of a call on the slot's batch, and has a program run.
func (e *Engine) start(op string, p driver.Program, rows int) error {
	if e.lost != nil {
		return e.lost
	}
	err := e.dev.Write(e.place(e.memory.control), e.arguments(rows), driver.InOrder)
	if err == nil {
		err = e.dev.Run(p)
	}
	if err != nil {
		return e.fail(op, err)
	}
	return nil
}

// finish waits for a call and reads what it answers.
func (e *Engine) finish(op string) error {
	answer := make([]byte, resultLen)
	if err := e.dev.Read(answer, e.place(e.memory.result)); err != nil {
		return e.fail(op, err)
	}
	return binary.Read(bytes.NewReader(answer), binary.LittleEndian, &e.answer)
}

// infers has a batch computed without a step, in the slot that no batch is staged in.
func (e *Engine) infers(op string, b dataset.Batch) error {
	if err := e.hand(op, e.slot, b, driver.InOrder); err != nil {
		return err
	}
	if err := e.start(op, e.infer, b.Input.Rows); err != nil {
		return err
	}
	return e.finish(op)
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
	if err := e.Stage(b); err != nil {
		return disdel.Metrics{}, err
	}
	return e.StepStaged(nil)
}

// Ahead implements engine.Engine.
func (e *Engine) Ahead() engine.Ahead { return e }

// Passes implements engine.Engine: it computes whole networks.
func (*Engine) Passes() engine.Passes { return nil }

// Listener implements engine.Engine.
func (*Engine) Listener() engine.Listener { return nil }

// Stage implements engine.Ahead: the batch goes to the slot that no call is of, through pinned memory.
func (e *Engine) Stage(b dataset.Batch) error {
	if err := e.checkBatch("train", b); err != nil {
		return err
	}
	if !e.spec.Training {
		return &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: "the engine was made for inference"}
	}
	if err := e.hand("train", 1-e.slot, b, driver.Ahead); err != nil {
		return err
	}
	e.staged = b.Input.Rows
	return nil
}

// StepStaged implements engine.Ahead.
func (e *Engine) StepStaged(during func() error) (disdel.Metrics, error) {
	rows := e.staged
	if rows == 0 {
		return disdel.Metrics{}, &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: "no batch was staged"}
	}
	e.slot, e.staged = 1-e.slot, 0
	e.steps++
	if err := e.start("train", e.train, rows); err != nil {
		return disdel.Metrics{}, err
	}
	var failed error
	if during != nil {
		failed = during()
	}
	if err := e.finish("train"); err != nil {
		return disdel.Metrics{}, err
	}
	m, err := e.metrics("train", rows)
	return m, cmp.Or(err, failed)
}

// Evaluate implements engine.Engine.
func (e *Engine) Evaluate(b dataset.Batch) (disdel.Metrics, error) {
	if err := e.checkBatch("evaluate", b); err != nil {
		return disdel.Metrics{}, err
	}
	if err := e.infers("evaluate", b); err != nil {
		return disdel.Metrics{}, err
	}
	m, err := e.metrics("evaluate", b.Input.Rows)
	if err != nil {
		return m, err
	}
	out, err := e.outputs("evaluate", b.Input.Rows)
	m.Classes, m.Top5 = engine.Largest(out, e.g.Output().Len()), disdel.CountTop5(out, b.Target.Classes)
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

// metrics are what a call of so many rows answered.
func (e *Engine) metrics(op string, rows int) (disdel.Metrics, error) {
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
	return disdel.Metrics{Rows: rows, Loss: a.Loss, Correct: int(a.Correct)}, nil
}

// Predict implements engine.Engine.
func (e *Engine) Predict(b dataset.Batch) (dataset.Matrix, error) {
	if err := e.check("predict", b.Input); err != nil {
		return dataset.Matrix{}, err
	}
	b.Target.Classes = nil
	if err := e.infers("predict", b); err != nil {
		return dataset.Matrix{}, err
	}
	out, err := e.outputs("predict", b.Input.Rows)
	if err != nil {
		return dataset.Matrix{}, err
	}
	return dataset.Matrix{Rows: b.Input.Rows, Columns: e.g.Output().Len(), Values: out}, nil
}

// hints are what to do about a fault.
var hints = map[driver.Cause]string{
	driver.NoDevice:     "disdel doctor gpu says what is missing",
	driver.NoMemory:     "lower training.batchSize, or let fewer actions share the GPU",
	driver.NoHostMemory: "raise the memory limit of the action, or what its machine lets a process lock (ulimit -l)",
	driver.DeviceLost:   "the next attempt gets a fresh container; dmesg of the machine may say why (Xid)",
}

// faulty says what could not be done on a device. The kind is the fault's.
func faulty(op string, err error) error {
	var f *driver.Fault
	if !errors.As(err, &f) {
		return &disdel.Error{Kind: disdel.Internal, Op: op, Err: err}
	}
	out := &disdel.Error{Kind: f.Cause.Kind(), Op: op, Err: err, Hint: hints[f.Cause]}
	switch f.Cause {
	case driver.NoMemory:
		out.Code = disdel.CodeDeviceMemory
	case driver.NoDevice:
		out.Code = disdel.CodeNoDevice
	}
	return out
}
