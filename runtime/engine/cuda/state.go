package cuda

import (
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

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
