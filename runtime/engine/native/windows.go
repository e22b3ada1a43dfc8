package native

import (
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// windowAttention is an attention within the windows of an image.
type windowAttention struct{ byLanes }

func (l *layer) windowAttention(scratch []float32) kernel.Attention {
	n, in := l.node, l.in[0].sequence()
	a := kernel.Attention{
		Sequence: in, Heads: n.Heads, KVHeads: n.Heads, Width: n.Out[0] / n.Heads, Kept: l.shared, Scratch: scratch,
		Windows: kernel.Windows{
			Windows: model.WindowsOf(n, in.H, in.W), Out: l.v.Image, Table: l.weight.value[:l.weight.Len()],
		},
	}
	if n.Cosine {
		a.Windows.Scale = l.scale.value[:n.Heads]
	}
	return a
}

func (windowAttention) forward(l *layer, w *kernel.Worker, _ *Engine) {
	a := l.windowAttention(l.work)
	w.Attention(&a, l.in[0].out, l.out)
	w.Sync()
}

// backward computes the gradients of the weights where nothing needs that of the input.
func (k windowAttention) backward(l *layer, w *kernel.Worker, _ *Engine) {
	if flow := l.v.GradIn[0]; l.trains() && flow != plan.FlowFirst && flow != plan.FlowAdd {
		k.back(l, w, nil)
	}
}

func (k windowAttention) passGradient(l *layer, w *kernel.Worker, i int, add bool) {
	k.back(l, w, cleared(w, l.in[i].grad, add))
}

func (windowAttention) back(l *layer, w *kernel.Worker, grad []float32) {
	a := l.windowAttention(l.back)
	w.AttentionBack(&a, l.in[0].out, l.out, l.grad, grad)
	w.Sync()
	if l.trains() {
		l.clearGradients(w)
		w.WindowSums(&a, l.weight.grad, gradOf(l.scale))
		w.Sync()
	}
}

// spaceToDepth makes one pixel of each block of an image.
type spaceToDepth struct {
	gathering
	byLanes
}

func (spaceToDepth) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.SpaceToDepth(l.v.Image, l.node.Kernel.H, l.node.Kernel.W, l.in[0].out, l.out)
	w.Sync()
}

func (spaceToDepth) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	w.SpaceToDepthBack(l.v.Image, l.node.Kernel.H, l.node.Kernel.W, l.grad, l.in[k].grad, add)
	w.Sync()
}
