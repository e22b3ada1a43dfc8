package native

import (
	"strings"

	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// layer is a node with its pieces of the slab.
type layer struct {
	op     model.Op
	node   *model.Node
	index  int
	v      plan.Node
	in     []*layer
	out    []float32
	grad   []float32 // of out; empty where nothing needs it
	params []*param

	weight, bias       *param // of convolutions, dense layers and batch norms; nil where there is none
	mean, variance     *param // running statistics
	work, back, shared []float32
	norm               kernel.Norm
	state, backState   kernel.NormState
	then               *kernel.After // what it computes of the layers behind it; nil: nothing
	halves
}

func (e *Engine) region(r plan.Region) []float32 {
	if r.Len == 0 {
		return nil
	}
	return e.mem.Values()[r.Offset : r.Offset+r.Len]
}

func (e *Engine) layer(i int) layer {
	v := e.plan.Nodes[i]
	l := layer{
		op: e.g.Nodes[i].Op, node: &e.g.Nodes[i], index: i, v: v, work: e.region(v.Work),
		back: e.region(v.BackWork), shared: e.region(v.Aux),
	}
	for _, k := range v.Inputs {
		l.in = append(l.in, &e.layers[k])
	}
	// A slab's region may be longer than the image, which is what element-wise kernels walk; the tail behind an image
	// belongs to nobody.
	if size := v.Border.Around(v.Image).Len(); v.Out.Len > 0 {
		l.out = e.region(v.Out)[:size]
	}
	if v.Grad.Len > 0 {
		l.grad = e.region(v.Grad)[:v.Image.Len()]
	}
	for k := range e.params {
		p := &e.params[k]
		if p.Node != i {
			continue
		}
		switch {
		case strings.HasSuffix(p.Name, ".weight"):
			l.weight = p
		case strings.HasSuffix(p.Name, ".bias"):
			l.bias = p
		case strings.HasSuffix(p.Name, ".running_mean"):
			l.mean = p
		case strings.HasSuffix(p.Name, ".running_var"):
			l.variance = p
		}
	}
	if l.op == model.OpBatchNorm {
		l.norm = kernel.Norm{Image: v.Image, Eps: l.node.Eps, Momentum: l.node.Momentum, ReLU: v.ReLU}
		l.state, l.backState = l.normState(e, l.work), l.normState(e, l.back)
	}
	l.halves = l.halvesOf(e)
	return l
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
	s.Mask = e.mask
	return s
}

func values(p *param) []float32 {
	if p == nil {
		return nil
	}
	return p.value
}

// top is where ReLU6 ends.
const top = 6

// forward computes the layer's output from its inputs'. When it returns all workers have.
func (l *layer) forward(w *kernel.Worker, e *Engine) {
	var x []float32
	if len(l.in) > 0 {
		x = l.in[0].out
	}
	switch l.op {
	case model.OpConv, model.OpDense:
		l.product(w, e, x)
	case model.OpBatchNorm:
		switch {
		case l.v.Fused:
		case e.training:
			w.NormForward(&l.norm, &l.state, l.running(), x, l.out)
		default:
			w.NormEval(&l.norm, &l.state, l.running(), x, l.out)
		}
	case model.OpReLU:
		if !l.v.Fused {
			w.ReLU(l.out, x)
			w.Sync()
		}
	case model.OpReLU6:
		if !l.v.Fused {
			w.Clamp(l.out, x, top)
			w.Sync()
		}
	case model.OpSigmoid:
		w.Sigmoid(l.out, x)
		w.Sync()
	case model.OpTanh:
		w.Tanh(l.out, x)
		w.Sync()
	case model.OpDropout:
		l.drop(w, e, l.out, x)
	case model.OpMaxPool:
		w.MaxPool(&l.v.Pool, x, l.out)
	case model.OpAvgPool:
		w.AvgPool(&l.v.Pool, x, l.out)
	case model.OpGlobalAvgPool, model.OpAdaptiveAvgPool:
		w.AdaptivePool(l.in[0].v.Image, l.v.Image.H, l.v.Image.W, x, l.out)
	case model.OpFlatten:
		if !l.v.InPlace {
			w.Flatten(l.out, x, l.in[0].v.Image)
			w.Sync()
		}
	case model.OpAdd:
		l.sum(w)
		w.Sync()
	case model.OpConcat:
		first := 0
		for _, in := range l.in {
			w.Join(l.out, l.v.Image.C, in.out, in.v.Image, first)
			first += in.v.Image.C
		}
		w.Sync()
	case model.OpDownsample:
		w.Subsample(l.out, l.v.Image, x, l.in[0].v.Image, l.node.Stride.H)
		w.Sync()
	}
}

// running are a batch norm's running statistics.
func (l *layer) running() [2][]float32 { return [2][]float32{l.mean.value, l.variance.value} }

// follow finds what a convolution or a dense layer computes of the layers behind it.
func (l *layer) follow(e *Engine) {
	if l.v.Norm == 0 && !l.v.Clamp {
		return
	}
	l.then = &kernel.After{}
	if l.v.Clamp {
		l.then.Top = top
	}
	if l.v.Norm > 0 {
		n := &e.layers[l.v.Norm]
		l.then.Scale, l.then.Offset, l.then.ReLU = n.state.Scale, n.state.Offset, n.v.ReLU
	}
}

func (l *layer) product(w *kernel.Worker, e *Engine, x []float32) {
	short := e.training && e.plan.Spec.Halves
	w.Then(l.then)
	switch {
	case l.v.Depthwise && short:
		w.DepthwiseForward(&l.v.Pool, x, l.roundedTaps(w, l.work[2*plan.Padded(l.v.Image.C):]), l.out)
	case short && l.v.Conv.Tile == 0:
		l.roundedParts(w, l.work, func(b0, b1 int) {
			w.ForwardPart(&l.v.Conv, b0, b1, x, l.work, values(l.bias), l.out)
		})
	case l.v.Depthwise:
		w.DepthwiseForward(&l.v.Pool, x, l.weight.value, l.out)
	case l.v.Conv.Tile > 0:
		w.WinogradForward(&l.v.Conv, x, l.weight.value, values(l.bias), l.out, l.work)
	default:
		w.Forward(&l.v.Conv, x, l.weight.value, values(l.bias), l.out)
	}
	w.Then(nil)
	if l.v.Depthwise && l.bias != nil {
		w.Bias(l.v.Image, l.out, l.bias.value, l.ones(w))
	}
}

// sum adds the inputs; the first may be the output already.
func (l *layer) sum(w *kernel.Worker) {
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
}

// drop zeroes a share of the values while training and scales the others, so that the mean stays. Which ones is a
// function of seed, step, layer and place: backward finds the same without a mask in memory.
func (l *layer) drop(w *kernel.Worker, e *Engine, dst, x []float32) {
	if !e.training || l.node.Rate == 0 {
		if &dst[0] != &x[0] {
			w.Copy(dst, x)
			w.Sync()
		}
		return
	}
	w.Dropout(dst, x, l.node.Rate, uint64(e.spec.Seed)^uint64(e.steps)<<20^uint64(l.index)<<52)
	w.Sync()
}

// backward turns the gradient of the output into those of the inputs and of the parameters. When it returns all workers
// have.
func (l *layer) backward(w *kernel.Worker, e *Engine) {
	x := l.in[0].out
	switch l.op {
	case model.OpConv, model.OpDense:
		l.productBack(w, e, x)
		return
	case model.OpBatchNorm:
		l.normBack(w, e, x)
	case model.OpReLU:
		if !l.v.Fused || l.in[0].op != model.OpBatchNorm {
			l.single(w, w.ReLUBack)
		}
	case model.OpReLU6:
		l.single(w, func(dst, dy, y []float32) { w.ClampBack(dst, dy, y, top) })
	case model.OpSigmoid:
		l.single(w, w.SigmoidBack)
	case model.OpTanh:
		l.single(w, w.TanhBack)
	case model.OpDropout:
		l.drop(w, e, l.grad, l.grad)
	}
	for k, flow := range l.v.GradIn {
		if flow == plan.FlowFirst || flow == plan.FlowAdd {
			l.hand(w, k, flow == plan.FlowAdd)
		}
	}
}

// hand gives the gradient to input k, whose buffer is not this layer's. When it returns all workers have.
func (l *layer) hand(w *kernel.Worker, k int, add bool) {
	in := l.in[k]
	scatter := func() {
		if !add {
			w.Clear(in.grad)
			w.Sync()
		}
	}
	switch l.op {
	case model.OpMaxPool:
		scatter()
		if in.v.Short {
			w.MaxPoolBackHalves(&l.v.Pool, in.half, l.half, l.grad, in.grad, l.back)
		} else {
			w.MaxPoolBack(&l.v.Pool, in.out, l.out, l.grad, in.grad)
		}
	case model.OpAvgPool:
		scatter()
		w.AvgPoolBack(&l.v.Pool, l.grad, in.grad)
	case model.OpGlobalAvgPool, model.OpAdaptiveAvgPool:
		scatter()
		w.AdaptivePoolBack(in.v.Image, l.v.Image.H, l.v.Image.W, l.grad, in.grad)
	case model.OpConcat:
		first := 0
		for _, before := range l.in[:k] {
			first += before.v.Image.C
		}
		w.Split(in.grad, in.v.Image, l.grad, l.v.Image.C, first, add)
		w.Sync()
	case model.OpDownsample:
		scatter()
		w.SubsampleBack(in.grad, in.v.Image, l.grad, l.v.Image, l.node.Stride.H)
		w.Sync()
	case model.OpFlatten:
		if l.v.InPlace {
			pass(w, in.grad, l.grad, add)
		} else {
			w.Unflatten(in.grad, l.grad, in.v.Image, add)
			w.Sync()
		}
	default: // element by element: the gradient is ready
		pass(w, in.grad, l.grad, add)
	}
}

func pass(w *kernel.Worker, dst, src []float32, add bool) {
	if add {
		w.Add(dst, dst, src)
	} else {
		w.Copy(dst, src)
	}
	w.Sync()
}

func gradOf(p *param) []float32 {
	if p == nil {
		return nil
	}
	return p.grad
}

func (l *layer) normBack(w *kernel.Worker, e *Engine, x []float32) {
	for _, p := range []*param{l.weight, l.bias} {
		if p != nil && w.ID == 0 {
			clear(p.grad[l.v.Image.C:]) // what pads it; the rest is written
		}
	}
	if e.plan.Spec.Halves {
		l.normBackHalves(w, x)
		return
	}
	w.NormBack(&l.norm, &l.backState, x, l.out, l.grad, gradOf(l.weight), gradOf(l.bias))
}

func (l *layer) productBack(w *kernel.Worker, e *Engine, x []float32) {
	if e.plan.Spec.Halves {
		l.productBackHalves(w, x)
		return
	}
	flow := l.v.GradIn[0]
	c, g := &l.v.Conv, &l.v.Pool
	if flow != plan.FlowNone {
		switch add := flow == plan.FlowAdd; {
		case l.v.Depthwise:
			w.DepthwiseBackData(g, l.grad, l.weight.value, l.in[0].grad, add)
		case c.BackTile > 0:
			w.WinogradBackData(c, l.grad, l.weight.value, l.in[0].grad, l.back, add)
		default:
			w.BackData(c, l.grad, l.weight.value, l.in[0].grad, add)
		}
	}
	switch {
	case l.v.Depthwise:
		w.Clear(l.weight.grad)
		w.Sync()
		w.DepthwiseBackWeights(g, x, l.grad, l.weight.grad, l.back)
		w.Sync()
	case c.Tile > 0:
		w.WinogradBackWeights(c, x, l.grad, l.weight.grad, l.back)
	default:
		w.BackWeights(c, x, l.grad, l.weight.grad, l.back)
	}
	l.biasBack(w)
}

func (l *layer) biasBack(w *kernel.Worker) {
	c, g := &l.v.Conv, &l.v.Pool
	switch {
	case l.bias == nil:
		return
	case l.v.Depthwise:
		w.ChannelSums(l.v.Image, g.Active(), l.grad, l.bias.grad, l.back)
	default:
		w.BackBias(c, l.grad, l.bias.grad, l.back)
	}
	w.Sync()
}
