package cuda

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// kind computes the layers of an Op: its methods return launches. How much memory a layer has is the plan's table of
// kinds.
type kind interface {
	// forward computes the output from those of the inputs.
	forward(l *layer, e *Engine, training bool) []driver.Launch
	// backward computes the gradients of the weights, and turns that of the output into that of the input, in place,
	// where the plan says that the kind can.
	backward(l *layer, e *Engine) []driver.Launch
	// passGradient writes the gradient of input k, or adds it. The buffer of that gradient belongs to another layer.
	passGradient(l *layer, k int, add bool) []driver.Launch
}

// kindOf is the table of layer kinds; nil: the engine computes nothing for the op. An op without an entry is a mistake
// of this package.
func kindOf(op model.Op) kind {
	switch op {
	case model.OpConv, model.OpDense:
		return product{}
	case model.OpBatchNorm:
		return norm{}
	case model.OpReLU:
		return rectifier{activation{forth: kernel.ReLU, back: kernel.ReLUBack}}
	case model.OpReLU6:
		return activation{forth: kernel.Clamp, back: kernel.ClampBack}
	case model.OpSigmoid:
		return activation{forth: kernel.Sigmoid, back: kernel.SigmoidBack}
	case model.OpTanh:
		return activation{forth: kernel.Tanh, back: kernel.TanhBack}
	case model.OpHardSwish:
		return activation{forth: kernel.HardSwish, back: kernel.HardSwishBack, byInput: true}
	case model.OpDropout:
		return dropout{}
	case model.OpMaxPool:
		return maxPool{}
	case model.OpAvgPool:
		return avgPool{}
	case model.OpGlobalAvgPool, model.OpAdaptiveAvgPool:
		return adaptivePool{}
	case model.OpFlatten:
		return flatten{}
	case model.OpAdd:
		return sum{}
	case model.OpConcat:
		return concat{}
	case model.OpDownsample:
		return downsample{}
	case model.OpInput, model.OpSoftmax: // the loss computes a softmax
		return nil
	default: // the plan refuses what no engine computes
		panic(fmt.Sprintf("cuda: the table of kinds leaves out %v", op))
	}
}

// lacks tells whether an op has no kernels yet.
func lacks(op model.Op) bool {
	switch op {
	case model.OpLeakyReLU, model.OpELU, model.OpSoftplus, model.OpHardSigmoid, model.OpDropout2D, model.OpDropPath,
		model.OpPReLU, model.OpScale, model.OpPad, model.OpUpsample,
		model.OpGELU, model.OpGELUTanh, model.OpSiLU, model.OpEmbedding, model.OpPositions, model.OpLayerNorm,
		model.OpRMSNorm, model.OpGroupNorm, model.OpAttention, model.OpWindowAttention,
		model.OpSpaceToDepth, model.OpLSTM, model.OpGRU, model.OpSequence,
		model.OpClassToken, model.OpTakePosition, model.OpReverse, model.OpMultiply, model.OpChannels:
		return true
	default:
		return false
	}
}

// supports returns Invalid for a network with a layer that has no kernels yet.
func supports(g *model.Graph) error {
	if err := plan.Supports(g); err != nil {
		return err
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; lacks(n.Op) {
			return &disdel.Error{
				Kind: disdel.Invalid, Op: "plan network " + g.Name,
				Msg:  fmt.Sprintf("the GPU backend does not compute layers of the kind %v (layer %s)", n.Op, n.Name),
				Hint: "train on the processor: training.backend: native",
			}
		}
	}
	return nil
}

// forward are the launches that compute the layer's output from its inputs'.
func (l *layer) forward(e *Engine, training bool) []driver.Launch {
	if l.kind == nil {
		return nil
	}
	return l.kind.forward(l, e, training)
}

// backward are the launches that turn the gradient of the output into those of the inputs and of the weights.
func (l *layer) backward(e *Engine) (out []driver.Launch) {
	if l.kind == nil {
		return nil
	}
	out = l.kind.backward(l, e)
	for k, flow := range l.v.GradIn {
		if flow == plan.FlowFirst || flow == plan.FlowAdd {
			out = append(out, l.kind.passGradient(l, k, flow == plan.FlowAdd)...)
		}
	}
	return out
}

// launches are a few of them.
func launches(list ...driver.Launch) []driver.Launch { return list }

// elementwise is embedded by kinds whose backward completes the gradient: passGradient passes it on unchanged.
type elementwise struct{}

func (elementwise) passGradient(l *layer, k int, add bool) []driver.Launch {
	if in := l.in[k]; add {
		return launches(kernel.Pointwise(kernel.Add, in.grad, in.grad, l.grad, l.values()))
	}
	return launches(kernel.Pointwise(kernel.Copy, l.in[k].grad, l.grad, 0, l.values()))
}

// gathering is embedded by kinds that leave the gradient of their output alone: passGradient computes that of an input
// from it.
type gathering struct{}

func (gathering) backward(*layer, *Engine) []driver.Launch { return nil }

// activation computes value by value.
type activation struct {
	elementwise
	forth, back kernel.Op
	byInput     bool // back reads the inputs: plan's readsInput
}

func (a activation) forward(l *layer, _ *Engine, _ bool) []driver.Launch {
	if l.v.Fused {
		return nil
	}
	return launches(kernel.Pointwise(a.forth, l.out, l.in[0].out, 0, l.values()))
}

func (a activation) backward(l *layer, _ *Engine) []driver.Launch {
	source := l.out
	if a.byInput {
		source = l.in[0].out
	}
	return launches(kernel.Pointwise(a.back, l.grad, l.grad, source, l.values()))
}

// rectifier is a ReLU. A batch norm before it may compute it, forward and backward.
type rectifier struct{ activation }

func (r rectifier) backward(l *layer, e *Engine) []driver.Launch {
	if l.v.Fused && l.in[0].node.Op == model.OpBatchNorm {
		return nil
	}
	return r.activation.backward(l, e)
}

// norm is batch norm, with the ReLU behind it where the plan says so.
type norm struct{ elementwise }

func (norm) forward(l *layer, _ *Engine, training bool) []driver.Launch {
	if training {
		return l.norm.Forward(l.out, l.in[0].out)
	}
	return l.norm.Infer(l.out, l.in[0].out)
}

func (norm) backward(l *layer, e *Engine) []driver.Launch {
	n := worksIn(l.norm, e.region(l.v.BackWork), plan.Padded(l.v.Image.C))
	return n.Back(l.grad, l.in[0].out, l.out)
}

// dropout zeroes a share of the values while training and scales the others, so that the mean stays. Backward finds the
// same without a mask in memory.
type dropout struct{ elementwise }

func (dropout) forward(l *layer, e *Engine, training bool) []driver.Launch {
	return l.drop(e, l.out, l.in[0].out, training)
}

func (dropout) backward(l *layer, e *Engine) []driver.Launch { return l.drop(e, l.grad, l.grad, true) }

func (l *layer) drop(e *Engine, out, x driver.Pointer, training bool) []driver.Launch {
	switch {
	case training && l.node.Rate > 0:
		d := kernel.Dropping{Control: e.place(e.memory.control), Node: l.index, Rate: l.node.Rate}
		return launches(d.Do(out, x, l.values()))
	case out != x:
		return launches(kernel.Pointwise(kernel.Copy, out, x, 0, l.values()))
	}
	return nil
}

type maxPool struct{ gathering }

func (maxPool) forward(l *layer, _ *Engine, _ bool) []driver.Launch {
	return launches(l.window.MaxPool(l.out, l.in[0].out))
}

func (maxPool) passGradient(l *layer, k int, add bool) []driver.Launch {
	return launches(l.window.MaxPoolBack(l.in[k].grad, l.in[k].out, l.out, l.grad, add))
}

type avgPool struct{ gathering }

func (avgPool) forward(l *layer, _ *Engine, _ bool) []driver.Launch {
	return launches(l.window.AvgPool(l.out, l.in[0].out))
}

func (avgPool) passGradient(l *layer, k int, add bool) []driver.Launch {
	return launches(l.window.AvgPoolBack(l.in[k].grad, l.grad, add))
}

// adaptivePool is for windows that depend on the size of the input, also the global one.
type adaptivePool struct{ gathering }

func (adaptivePool) forward(l *layer, _ *Engine, _ bool) []driver.Launch {
	return launches(l.window.Adaptive(l.out, l.in[0].out))
}

func (adaptivePool) passGradient(l *layer, k int, add bool) []driver.Launch {
	return launches(l.window.AdaptiveBack(l.in[k].grad, l.grad, add))
}

// flatten makes a vector of an image; in place it only changes its name.
type flatten struct{ gathering }

func (flatten) forward(l *layer, _ *Engine, _ bool) []driver.Launch {
	if l.v.InPlace {
		return nil
	}
	return launches(kernel.Flatten(l.out, l.in[0].out, l.in[0].v.Image))
}

func (flatten) passGradient(l *layer, k int, add bool) []driver.Launch {
	if l.v.InPlace {
		return elementwise{}.passGradient(l, k, add)
	}
	return launches(kernel.Unflatten(l.in[k].grad, l.grad, l.in[k].v.Image, add))
}

// sum adds its inputs, the first of which may be the output already.
type sum struct {
	elementwise
	gathering
}

func (sum) forward(l *layer, _ *Engine, _ bool) (out []driver.Launch) {
	a := l.in[0].out
	for k, in := range l.in[1:] {
		op := kernel.Add
		if l.v.ReLU && k == len(l.in)-2 {
			op = kernel.AddReLU
		}
		out = append(out, kernel.Pointwise(op, l.out, a, in.out, l.values()))
		a = l.out
	}
	return out
}

// concat joins its inputs along channels.
type concat struct{ gathering }

func (concat) forward(l *layer, _ *Engine, _ bool) (out []driver.Launch) {
	for k, in := range l.in {
		out = append(out, l.part(k).Join(l.out, in.out))
	}
	return out
}

func (concat) passGradient(l *layer, k int, add bool) []driver.Launch {
	return launches(l.part(k).Split(l.in[k].grad, l.grad, add))
}

// part is where input k of a concatenation lies in its output.
func (l *layer) part(k int) kernel.Part {
	p := kernel.Part{Image: l.in[k].v.Image, Total: l.v.Image.C}
	for _, before := range l.in[:k] {
		p.First += before.v.Image.C
	}
	return p
}

// downsample is option A's shortcut of ResNet.
type downsample struct{ gathering }

func (downsample) forward(l *layer, _ *Engine, _ bool) []driver.Launch {
	return launches(l.sampling().Forward(l.out, l.in[0].out))
}

func (downsample) passGradient(l *layer, k int, add bool) []driver.Launch {
	return launches(l.sampling().Back(l.in[k].grad, l.grad, add))
}

func (l *layer) sampling() kernel.Sampling {
	return kernel.Sampling{In: l.in[0].v.Image, Out: l.v.Image, Stride: l.node.Stride.H}
}
