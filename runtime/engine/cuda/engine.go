package cuda

import (
	"math"
	"slices"

	"github.com/disdel/disdel"
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
	slot         int // the batch that the last call was of
	staged       int // rows of the batch in the other slot; 0: none is there
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

// Kernels is "cuda", with "blas" where a library computes products of this network, and with a precision that is not
// float32. What the same kernels come to differs from device to device.
func (e *Engine) Kernels() string {
	name := "cuda"
	if e.memory.library && slices.ContainsFunc(e.layers, func(l layer) bool { return l.plain(e, false) }) {
		name += "-blas"
	}
	if p := e.memory.precision; p != kernel.Float32 {
		name += "-" + p.String()
	}
	return name
}

// build makes the layers and what they have of the memory.
func (e *Engine) build() {
	e.head = len(e.g.Nodes) - 1
	if e.plan.Spec.ByLoss(e.g, e.head) {
		e.head = e.g.Nodes[e.head].Inputs[0]
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

// prepare clears the memory, writes the list of weights, and has the device take the launches of both kinds of call. It
// waits until that is done: the first batch is written ahead of whatever is not.
func (e *Engine) prepare() error {
	clearing, err := e.dev.Prepare([]driver.Launch{kernel.Pointwise(kernel.Clear, e.base, 0, 0, int(e.memory.end/4))})
	if err != nil {
		return err
	}
	if err := e.dev.Run(clearing); err != nil {
		return err
	}
	if err := e.dev.Write(e.place(e.memory.segments), e.list(), driver.InOrder); err != nil {
		return err
	}
	if e.infer, err = e.dev.Prepare(e.launches(false)); err != nil {
		return err
	}
	if e.spec.Training {
		if e.train, err = e.dev.Prepare(e.launches(true)); err != nil {
			return err
		}
	}
	return e.dev.Read(make([]byte, resultLen), e.place(e.memory.result))
}

// launches are those of a call: forward, the loss, and of a step backward, each layer's weights moved as soon as their
// gradient is there, unless the gradient is clipped, which takes all of it.
func (e *Engine) launches(training bool) []driver.Launch {
	in := &e.layers[0]
	out := []driver.Launch{kernel.Importing{
		Image: in.v.Image, Border: in.v.Border, Control: e.place(e.memory.control), Result: e.place(e.memory.result),
	}.Do(in.out)}
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
	head, m, last := &e.layers[e.head], e.memory, e.g.Nodes[len(e.g.Nodes)-1].Op
	l := kernel.Loss{
		Image: head.v.Image, Kind: losses[e.spec.Loss], Softmax: last == model.OpSoftmax,
		Sigmoid: last == model.OpSigmoid && e.head < len(e.g.Nodes)-1,
		Losses:  e.place(m.losses), Right: e.place(m.right), Control: e.place(m.control), Result: e.place(m.result),
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

// State implements engine.Engine: the arrays lie in PyTorch's order, and are read and written by ranges.
func (e *Engine) State() []engine.Array {
	return engine.StateOf(&e.spec, &e.steps, func(i, moment int) engine.Values {
		if moment < 0 {
			return view{e, e.params[i].value}
		}
		return view{e, e.params[i].moments[moment]}
	})
}

// view reads and writes an array in device memory.
type view struct {
	e  *Engine
	at driver.Pointer
}

// ReadAt implements engine.Values. What a device that is lost cannot give is not a number, so that nobody takes it for
// a weight; the engine's next call says why.
func (v view) ReadAt(dst []float32, at int) {
	if len(dst) == 0 {
		return
	}
	if v.e.lost == nil {
		err := v.e.dev.Read(bytesOf(dst), v.at.At(at))
		if err == nil {
			return
		}
		_ = v.e.fail("read state", err)
	}
	for i := range dst {
		dst[i] = float32(math.NaN())
	}
}

// WriteAt implements engine.Values.
func (v view) WriteAt(src []float32, at int) {
	if len(src) == 0 || v.e.lost != nil {
		return
	}
	if err := v.e.dev.Write(v.at.At(at), bytesOf(src), driver.InOrder); err != nil {
		_ = v.e.fail("write state", err)
	}
}

// chunk is how many values are drawn or repeated on the host before they are written.
const chunk = 16 << 10

// fill writes n values that next gives, in their order.
func (e *Engine) fill(at driver.Pointer, n int, next func() float32) {
	values := make([]float32, min(n, chunk))
	for from := 0; from < n; from += len(values) {
		part := values[:min(len(values), n-from)]
		for i := range part {
			part[i] = next()
		}
		view{e, at}.WriteAt(part, from)
	}
}

// Init implements engine.Engine, without a second copy of the weights in memory.
func (e *Engine) Init(init disdel.Init) error {
	draws := engine.NewDraws(e.g, init)
	for i := range e.params {
		e.fill(e.params[i].value, e.params[i].Len(), draws.Of(e.params[i].Param))
	}
	return e.lost
}

// Reset implements engine.Engine.
func (e *Engine) Reset(r engine.Role) error {
	switch r {
	case engine.Moment:
		e.steps = 0
		for i := range e.params {
			for _, m := range e.params[i].moments {
				if m != 0 {
					e.fill(m, e.params[i].Len(), func() float32 { return 0 })
				}
			}
		}
	case engine.Statistic:
		for i := range e.params {
			if p := &e.params[i]; !p.Trainable {
				start := engine.StartOf(e.g, p.Param)
				e.fill(p.value, p.Len(), func() float32 { return start })
			}
		}
	case engine.Weight:
		return &disdel.Error{Kind: disdel.Invalid, Op: "reset state", Msg: "weights have no start but Init's"}
	}
	return e.lost
}
