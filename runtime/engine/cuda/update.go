package cuda

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
)

// learns tells that a step moves an array: it has a gradient, since something that it computes gets to the loss.
func (e *Engine) learns(p *param) bool {
	return p.Trainable && p.grad != 0 && e.plan.Nodes[p.Node].Grad.Len > 0
}

// list is the arrays that a step moves, in the order of the network, as the kernels read it.
func (e *Engine) list() []byte {
	var out bytes.Buffer
	for i := range e.params {
		p := &e.params[i]
		if !e.learns(p) {
			continue
		}
		s := kernel.Segment{Value: p.value, Gradient: p.grad, First: p.moments[0], Second: p.moments[1], N: int64(p.Len())}
		_ = binary.Write(&out, binary.LittleEndian, s) // to memory, of numbers alone
	}
	return out.Bytes()
}

// segmentsOf are the entries of a layer in the list; they lie side by side.
func (e *Engine) segmentsOf(node int) kernel.Segments {
	s, before := kernel.Segments{}, 0
	for i := range e.params {
		p := &e.params[i]
		switch {
		case !e.learns(p):
		case p.Node < node:
			before++
		case p.Node == node:
			s.Count++
			s.Longest = max(s.Longest, p.Len())
		}
	}
	s.At = e.place(e.memory.segments + kernel.SegmentLen*disdel.Bytes(before))
	return s
}

// segments are all entries of the list.
func (e *Engine) segments() kernel.Segments {
	all := kernel.Segments{At: e.place(e.memory.segments)}
	for i := range e.layers {
		s := e.layers[i].segments
		all.Count += s.Count
		all.Longest = max(all.Longest, s.Longest)
	}
	return all
}

// lacksOptimizer returns Invalid for an optimiser that has no kernel here.
func lacksOptimizer(o disdel.Optimizer) error {
	if o.RMSprop == nil && o.Adagrad == nil && o.LAMB == nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine", Msg: "the GPU backend has no optimiser " + o.Name(),
		Hint: "train on the processor: training.backend: native; or use adam",
	}
}

// optimizer is the kernels' form of the optimiser. told has what changes from step to step.
func (e *Engine) optimizer() kernel.Update {
	u := kernel.Update{Kernel: "sgd", Control: e.place(e.memory.control), Result: e.place(e.memory.result)}
	switch o := e.spec.Optimizer; {
	case o.SGD != nil:
		u.Decay, u.Momentum, u.Nesterov = o.SGD.WeightDecay, o.SGD.Momentum, o.SGD.Nesterov
	case o.Adam != nil:
		u.Kernel, u.Decay = "adam", o.Adam.WeightDecay
		a := o.Adam.WithDefaults()
		u.Beta1, u.Beta2, u.Epsilon = a.Beta1, a.Beta2, a.Epsilon
	case o.AdamW != nil: // its decay is control's
		u.Kernel = "adam"
		a := o.AdamW.WithDefaults()
		u.Beta1, u.Beta2, u.Epsilon = a.Beta1, a.Beta2, a.Epsilon
	case o.Lion != nil:
		u.Kernel = "lion"
		l := o.Lion.WithDefaults()
		u.Beta1, u.Beta2 = l.Beta1, l.Beta2
	}
	return u
}

// arguments is the control block of a call on the slot's batch, followed by an empty result.
func (e *Engine) arguments(rows int) []byte {
	c := kernel.Control{
		Seed: uint64(e.spec.Seed), Rate: float32(-e.rate), Keep: 1, Step: int32(e.steps), Rows: int32(rows),
		Input: e.place(e.memory.slots[e.slot].input), Labels: e.place(e.memory.slots[e.slot].labels),
	}
	switch o := e.spec.Optimizer; {
	case o.Adam != nil, o.AdamW != nil:
		step := float64(max(e.steps, 1))
		c.AdamRate = float32(-e.rate / (1 - math.Pow(e.update.Beta1, step)))
		c.AdamRoot = float32(1 / math.Sqrt(1-math.Pow(e.update.Beta2, step)))
	}
	if o := e.spec.Optimizer; o.AdamW != nil || o.Lion != nil {
		c.Keep = float32(1 - e.rate*o.WeightDecay())
	}
	out := make([]byte, e.memory.result-e.memory.control+resultLen)
	_, _ = binary.Encode(out, binary.LittleEndian, c) // into room for it
	_, _ = binary.Encode(out[e.memory.result-e.memory.control:], binary.LittleEndian, kernel.Result{Scale: 1})
	return out
}
