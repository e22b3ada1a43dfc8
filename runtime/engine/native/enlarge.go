package native

import (
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// enlarged is images with zeros around them, and images whose pixels are repeated.
type enlarged struct{ gathering }

func (l *layer) enlarged() *kernel.Enlarged {
	g := &kernel.Enlarged{In: l.in[0].v.Image, Out: l.v.Image, Top: l.node.Pad.Top, Left: l.node.Pad.Left, H: 1, W: 1}
	if l.node.Op == model.OpUpsample {
		g.H, g.W = l.node.Kernel.H, l.node.Kernel.W
	} else if s := l.node.Stride; s != (model.Sides{}) {
		g.H, g.W, g.Apart = s.H, s.W, true
	}
	return g
}

func (enlarged) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.Enlarge(l.enlarged(), l.in[0].out, l.out)
}

func (enlarged) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	l.eachRow(e, func(x, y []float32) { w.Enlarge(l.enlarged(), x, y) })
}

func (enlarged) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	w.EnlargeBack(l.enlarged(), l.grad, cleared(w, l.in[k].grad, add))
}

// prelu is a ReLU with learned slopes for values below 0.
type prelu struct{ elementwise }

// slopes are the node's, without what pads them in memory.
func (l *layer) slopes() []float32 { return l.weight.value[:l.node.Groups] }

func (prelu) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.PReLU(l.v.Image, l.slopes(), l.in[0].out, l.out)
}

func (prelu) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	w.RowsPReLU(l.v.Image, e.rows, l.slopes(), l.in[0].out, l.out)
}

func (prelu) backward(l *layer, w *kernel.Worker, _ *Engine) {
	w.PReLUBack(l.v.Image, l.rows, l.slopes(), l.in[0].out, l.grad, l.weight.grad, l.back)
}
