package native

import "github.com/disdel/disdel/runtime/engine/native/kernel"

// sum adds its inputs, the first of which may be the output already.
type sum struct {
	elementwise
	gathering
}

func (sum) forward(l *layer, w *kernel.Worker, _ *Engine) {
	a := l.in[0].out
	for k, in := range l.in[1:] {
		if l.v.ReLU && k == len(l.in)-2 {
			w.AddReLU(l.out, a, in.out)
		} else {
			w.Add(l.out, a, in.out)
		}
		a = l.out
	}
	if len(l.in) == 1 && !l.v.InPlace {
		w.Copy(l.out, a)
	}
	w.Sync()
}

func (s sum) forwardRows(l *layer, w *kernel.Worker, e *Engine) { s.forward(l, w, e) }

// multiply is the product of its inputs. The second may have one pixel, with which all pixels are multiplied.
type multiply struct{ gathering }

// gated is how the layer's values lie, which are rows of pixels.
func (l *layer) gated() kernel.Gated {
	im, gate := l.v.Image, l.in[1].v.Image
	g := kernel.Gated{Pixel: im.Pixel(), Pixels: im.H * im.W}
	if im.Depth > 0 {
		g.Pixel = im.Depth
	}
	if gate.H*gate.W == g.Pixels {
		g.Pixel, g.Pixels = g.Pixel*g.Pixels, 1
	}
	return g
}

func (multiply) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.Multiply(l.gated(), l.out, l.in[0].out, l.in[1].out, false)
	w.Sync()
}

func (multiply) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	w.Multiply(l.gated(), l.rowsOut(e), l.in[0].out, l.in[1].out, false)
	w.Sync()
}

func (multiply) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	if k == 0 {
		w.Multiply(l.gated(), l.in[0].grad, l.grad, l.in[1].out, add)
	} else {
		w.GateBack(l.gated(), l.in[1].grad, l.grad, l.in[0].out, add)
	}
	w.Sync()
}

// concat joins its inputs along channels.
type concat struct{ gathering }

func (concat) forward(l *layer, w *kernel.Worker, _ *Engine) {
	first := 0
	for _, in := range l.in {
		w.Join(l.out, l.v.Image.C, in.out, in.v.Image, first)
		first += in.v.Image.C
	}
	w.Sync()
}

func (concat) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	first := 0
	for _, in := range l.in {
		w.RowsJoin(l.rowsOut(e), l.v.Image, in.out, in.v.Image, e.rows, first)
		first += in.v.Image.C
	}
	w.Sync()
}

func (concat) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	first := 0
	for _, before := range l.in[:k] {
		first += before.v.Image.C
	}
	w.Split(l.in[k].grad, l.in[k].v.Image, l.grad, l.v.Image.C, first, add)
	w.Sync()
}

// channels takes some of its input's channels, perhaps shuffled.
type channels struct{ gathering }

func (l *layer) picked() kernel.Picked {
	return kernel.Picked{In: l.in[0].v.Image, Out: l.v.Image, First: l.node.First, Groups: l.node.Groups}
}

func (channels) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.Pick(l.picked(), l.in[0].out, l.out)
	w.Sync()
}

func (channels) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	w.RowsPick(l.picked(), e.rows, l.in[0].out, l.out)
	w.Sync()
}

func (channels) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	w.PickBack(l.picked(), l.grad, cleared(w, l.in[k].grad, add))
	w.Sync()
}

// flatten makes a vector of an image; in place it only changes its name.
type flatten struct{ gathering }

func (flatten) forward(l *layer, w *kernel.Worker, _ *Engine) {
	if !l.v.InPlace {
		w.Flatten(l.out, l.in[0].out, l.in[0].v.Image)
		w.Sync()
	}
}

func (flatten) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	if !l.v.InPlace {
		w.RowsFlatten(l.rowsOut(e), l.v.Image, l.in[0].out, l.in[0].v.Image, e.rows, l.v.Permuted)
		w.Sync()
	}
}

func (flatten) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	if l.v.InPlace {
		pass(w, l.in[k].grad, l.grad, add)
		return
	}
	w.Unflatten(l.in[k].grad, l.grad, l.in[k].v.Image, add)
	w.Sync()
}

// downsample is option A's shortcut of ResNet.
type downsample struct{ gathering }

func (downsample) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.Subsample(l.out, l.v.Image, l.in[0].out, l.in[0].v.Image, l.node.Stride.H)
	w.Sync()
}

func (downsample) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	w.RowsSubsample(l.rowsOut(e), l.v.Image, l.in[0].out, l.in[0].v.Image, e.rows, l.node.Stride.H)
	w.Sync()
}

func (downsample) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	w.SubsampleBack(cleared(w, l.in[k].grad, add), l.in[k].v.Image, l.grad, l.v.Image, l.node.Stride.H)
	w.Sync()
}
