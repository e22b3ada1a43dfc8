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
	if l.shared != nil {
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

// forward computes the layer's output from its inputs'.
func (l *layer) forward(w *kernel.Worker, e *Engine) {
	var x []float32
	if len(l.in) > 0 {
		x = l.in[0].out
	}
	switch l.op {
	case model.OpConv, model.OpDense:
		l.product(w, x)
	case model.OpBatchNorm:
		running := [2][]float32{l.mean.value, l.variance.value}
		if e.training {
			w.NormForward(&l.norm, &l.state, running, x, l.out)
		} else {
			w.NormEval(&l.norm, &l.state, running, x, l.out)
		}
	case model.OpReLU:
		if !l.v.Fused {
			w.ReLU(l.out, x)
		}
	case model.OpReLU6:
		w.Clamp(l.out, x, top)
	case model.OpSigmoid:
		w.Sigmoid(l.out, x)
	case model.OpTanh:
		w.Tanh(l.out, x)
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
		}
	case model.OpAdd:
		l.sum(w)
	case model.OpConcat:
		first := 0
		for _, in := range l.in {
			w.Join(l.out, l.v.Image.C, in.out, in.v.Image, first)
			first += in.v.Image.C
		}
	case model.OpDownsample:
		w.Subsample(l.out, l.v.Image, x, l.in[0].v.Image, l.node.Stride.H)
	}
}

func (l *layer) product(w *kernel.Worker, x []float32) {
	if !l.v.Depthwise {
		w.Forward(&l.v.Conv, x, l.weight.value, values(l.bias), l.out)
		return
	}
	w.DepthwiseForward(&l.v.Pool, x, l.weight.value, l.out)
	if l.bias != nil {
		w.Sync()
		ones := l.work[:l.v.Image.C]
		if w.ID == 0 {
			for i := range ones {
				ones[i] = 1
			}
		}
		w.Sync()
		w.Bias(l.v.Image, l.out, l.bias.value, ones)
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
		}
		return
	}
	w.Dropout(dst, x, l.node.Rate, uint64(e.spec.Seed)^uint64(e.steps)<<20^uint64(l.index)<<52)
}

// backward turns the gradient of the output into those of the inputs and of the parameters.
func (l *layer) backward(w *kernel.Worker, e *Engine) {
	x := l.in[0].out
	switch l.op {
	case model.OpConv, model.OpDense:
		l.productBack(w, x)
		return
	case model.OpBatchNorm:
		l.normBack(w, e, x)
	case model.OpReLU:
		if !l.v.Fused || l.in[0].op != model.OpBatchNorm {
			w.ReLUBack(l.grad, l.grad, l.out)
		}
	case model.OpReLU6:
		w.ClampBack(l.grad, l.grad, l.out, top)
	case model.OpSigmoid:
		w.SigmoidBack(l.grad, l.grad, l.out)
	case model.OpTanh:
		w.TanhBack(l.grad, l.grad, l.out)
	case model.OpDropout:
		l.drop(w, e, l.grad, l.grad)
	}
	w.Sync()
	for k, flow := range l.v.GradIn {
		if flow == plan.FlowFirst || flow == plan.FlowAdd {
			l.hand(w, k, flow == plan.FlowAdd)
			w.Sync()
		}
	}
}

// hand gives the gradient to input k, whose buffer is not this layer's.
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
		w.MaxPoolBack(&l.v.Pool, in.out, l.out, l.grad, in.grad)
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
	case model.OpDownsample:
		scatter()
		w.SubsampleBack(in.grad, in.v.Image, l.grad, l.v.Image, l.node.Stride.H)
	case model.OpFlatten:
		if l.v.InPlace {
			pass(w, in.grad, l.grad, add)
		} else {
			w.Unflatten(in.grad, l.grad, in.v.Image, add)
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
}

func gradOf(p *param) []float32 {
	if p == nil {
		return nil
	}
	return p.grad
}

func (l *layer) normBack(w *kernel.Worker, e *Engine, x []float32) {
	for _, p := range []*param{l.weight, l.bias} {
		if p != nil {
			w.Clear(p.grad)
		}
	}
	w.Sync()
	w.NormBack(&l.norm, &l.backState, x, l.out, l.grad, gradOf(l.weight), gradOf(l.bias))
}

func (l *layer) productBack(w *kernel.Worker, x []float32) {
	flow := l.v.GradIn[0]
	c, g := &l.v.Conv, &l.v.Pool
	if flow != plan.FlowNone {
		if l.v.Depthwise {
			w.DepthwiseBackData(g, l.grad, l.weight.value, l.in[0].grad, flow == plan.FlowAdd)
		} else {
			w.BackData(c, l.grad, l.weight.value, l.in[0].grad, flow == plan.FlowAdd)
		}
	}
	if l.v.Depthwise {
		w.Clear(l.weight.grad)
		w.Sync()
		w.DepthwiseBackWeights(g, x, l.grad, l.weight.grad, l.back)
	} else {
		w.BackWeights(c, x, l.grad, l.weight.grad, l.back)
	}
	w.Sync()
	switch {
	case l.bias == nil:
	case l.v.Depthwise:
		w.ChannelSums(l.v.Image, g.Active(), l.grad, l.bias.grad, l.back)
	default:
		w.BackBias(c, l.grad, l.bias.grad, l.back)
	}
}
