package native

import (
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// norm is batch norm, with the ReLU behind it where the plan says so.
type norm struct{ elementwise }

func (norm) forward(l *layer, w *kernel.Worker, e *Engine) {
	switch {
	case l.v.Fused: // the layer before computes it
	case l.node.Frozen && !l.second: // PyTorch's eval mode
		w.NormEval(&l.norm, &l.state, l.running(), l.in[0].out, l.out)
	case l.second: // running statistics stay as they are
		w.NormAgain(&l.norm, &l.state, l.in[0].out, l.out)
	case e.training:
		w.NormForward(&l.norm, &l.state, e.statistics(l), l.in[0].out, l.out)
	default:
		w.NormEval(&l.norm, &l.state, l.running(), l.in[0].out, l.out)
	}
}

func (norm) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	if !l.v.Fused {
		w.NormScale(&l.norm, &l.state, l.running())
		w.Sync()
		w.RowsAffine(l.v.Image, e.rows, l.in[0].out, l.rowsOut(e), l.state.Scale, l.state.Offset, l.v.ReLU)
	}
}

func (norm) backward(l *layer, w *kernel.Worker, e *Engine) {
	if l.node.Frozen { // its running statistics are constants
		if l.v.ReLU {
			l.single(w, (*kernel.Worker).ReLUBack, l.grad)
		}
		w.NormEvalBack(&l.norm, &l.backState, l.running(), l.grad)
		return
	}
	for _, p := range []*param{l.weight, l.bias} {
		if p != nil && w.ID == 0 {
			clear(p.grad[l.v.Image.C:]) // what pads it; the rest is written
		}
	}
	gamma, beta := gradOf(l.weight), gradOf(l.bias)
	in := l.in[0]
	if !e.plan.Spec.Halves {
		w.NormBack(&l.norm, &l.backState, in.out, l.out, l.grad, gamma, beta)
		return
	}
	if l.v.ReLU {
		l.single(w, (*kernel.Worker).ReLUBack, l.grad)
	}
	if in.v.Short {
		w.NormBackHalves(&l.norm0, &l.backState, in.half, l.grad, gamma, beta, l.back[36*plan.Padded(l.v.Image.C):])
	} else {
		w.NormBack(&l.norm0, &l.backState, in.out, l.out, l.grad, gamma, beta)
	}
}

// normState cuts a batch norm's working memory into its arrays.
func (l *layer) normState(e *Engine, work []float32) kernel.NormState {
	c := plan.Padded(l.v.Image.C)
	var s kernel.NormState
	if l.weight != nil {
		s.Gamma = l.weight.value
	}
	if l.bias != nil {
		s.Beta = l.bias.value
	}
	if work != nil {
		s.Shift, s.Scale, s.Offset, s.Third, s.Sums = work[:c], work[c:2*c], work[2*c:3*c], work[3*c:4*c], work[4*c:]
	}
	switch {
	case l.v.Fused:
		s.Scale, s.Offset = l.shared[:c], l.shared[c:2*c]
	case l.shared != nil:
		s.Mean, s.Var = l.shared[:c], l.shared[c:2*c]
	}
	if len(l.shared) >= 4*c { // they are needed again
		s.Scale, s.Offset = l.shared[2*c:3*c], l.shared[3*c:4*c]
	}
	s.Mask = e.mask
	return s
}

// running are a batch norm's running statistics.
func (l *layer) running() [2][]float32 { return [2][]float32{l.mean.value, l.variance.value} }

// scaleNorms works out what batch norms multiply and add that convolutions compute, once after weights were set.
func (e *Engine) scaleNorms(w *kernel.Worker) {
	if !e.stale {
		return
	}
	for i := range e.layers {
		if l := &e.layers[i]; l.v.Fused && l.node.Op == model.OpBatchNorm {
			w.NormScale(&l.norm, &l.state, l.running())
		}
	}
}
