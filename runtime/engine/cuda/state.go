package cuda

import (
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// State implements engine.Engine: the arrays lie in PyTorch's order, and are read and written by ranges.
func (e *Engine) State() []engine.Array {
	var out []engine.Array
	for i := range e.params {
		p := &e.params[i]
		role := engine.Weight
		if !p.Trainable {
			role = engine.Statistic
		}
		out = append(out, engine.NewArray(p.Name, p.Shape, role, view{e, p.value}))
	}
	if !e.spec.Training {
		return out
	}
	out = append(out, engine.NewArray(engine.StepCount, []int{1}, engine.Moment, count{e}))
	for m, kind := range momentNames(e.spec.Optimizer) {
		for i := range e.params {
			if p := &e.params[i]; p.Trainable {
				out = append(out, engine.NewArray(p.Name+"."+kind, p.Shape, engine.Moment, view{e, p.moments[m]}))
			}
		}
	}
	return out
}

// momentNames are what PyTorch calls the moments of an optimiser.
func momentNames(o disdel.Optimizer) []string {
	switch o.Moments() {
	case 2:
		return []string{"exp_avg", "exp_avg_sq"}
	case 1:
		return []string{"momentum"}
	default:
		return nil
	}
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
	if err := v.e.dev.Write(v.at.At(at), bytesOf(src)); err != nil {
		_ = v.e.fail("write state", err)
	}
}

// count reads and writes the number of steps.
type count struct{ e *Engine }

// ReadAt implements engine.Values.
func (c count) ReadAt(dst []float32, _ int) {
	if len(dst) > 0 {
		dst[0] = float32(c.e.steps)
	}
}

// WriteAt implements engine.Values. An average of several counts need not be whole.
func (c count) WriteAt(src []float32, _ int) {
	if len(src) > 0 {
		c.e.steps = int(math.Round(float64(src[0])))
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
