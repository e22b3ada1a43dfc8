package native

import (
	"fmt"

	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// kind computes the layers of an Op. All workers of a team call its methods; when one returns, all workers have done
// their share. How much memory a layer has is the plan's table of kinds.
type kind interface {
	// forward computes the output from those of the inputs.
	forward(l *layer, w *kernel.Worker, e *Engine)
	// forwardRows is forward for activations that lie row by row, see plan.Image: inference of few rows.
	forwardRows(l *layer, w *kernel.Worker, e *Engine)
	// backward computes the gradients of the weights, and turns that of the output into that of the input, in place,
	// where the plan says that the kind can.
	backward(l *layer, w *kernel.Worker, e *Engine)
	// passGradient writes the gradient of input k, or adds it. The buffer of that gradient belongs to another layer.
	passGradient(l *layer, w *kernel.Worker, k int, add bool)
}

// kindOf is the table of layer kinds; nil: the engine computes nothing for the op. An op without an entry is a mistake
// of this package.
func kindOf(n *model.Node) kind {
	switch n.Op {
	case model.OpConv, model.OpDense:
		return product{}
	case model.OpBatchNorm:
		return norm{}
	case model.OpReLU:
		return rectifier{activation{f: (*kernel.Worker).ReLU, back: (*kernel.Worker).ReLUBack}}
	case model.OpReLU6:
		return activation{f: clamp, back: clampBack}
	case model.OpSigmoid:
		return activation{f: (*kernel.Worker).Sigmoid, back: (*kernel.Worker).SigmoidBack}
	case model.OpTanh:
		return activation{f: (*kernel.Worker).Tanh, back: (*kernel.Worker).TanhBack}
	case model.OpHardSwish:
		return activation{f: (*kernel.Worker).HardSwish, back: (*kernel.Worker).HardSwishBack, byInput: true}
	case model.OpLeakyReLU:
		return leakyReLU(float32(n.Slope))
	case model.OpScale:
		return scaled(float32(n.Factor))
	case model.OpELU:
		return activation{f: (*kernel.Worker).ELU, back: (*kernel.Worker).ELUBack}
	case model.OpSoftplus:
		return activation{f: (*kernel.Worker).Softplus, back: (*kernel.Worker).SoftplusBack}
	case model.OpHardSigmoid:
		return activation{f: (*kernel.Worker).HardSigmoid, back: (*kernel.Worker).HardSigmoidBack}
	case model.OpGELU:
		return activation{f: (*kernel.Worker).GELU, back: (*kernel.Worker).GELUBack, byInput: true}
	case model.OpGELUTanh:
		return activation{f: (*kernel.Worker).GELUTanh, back: (*kernel.Worker).GELUTanhBack, byInput: true}
	case model.OpSiLU:
		return activation{f: (*kernel.Worker).SiLU, back: (*kernel.Worker).SiLUBack, byInput: true}
	case model.OpEmbedding:
		return embedding{}
	case model.OpPositions:
		return positions{}
	case model.OpLayerNorm, model.OpRMSNorm:
		return layerNorm{}
	case model.OpGroupNorm:
		return groupNorm{}
	case model.OpAttention:
		return attention{}
	case model.OpWindowAttention:
		return windowAttention{}
	case model.OpLSTM:
		return recurrent{lstm: true}
	case model.OpGRU:
		return recurrent{}
	case model.OpClassToken:
		return classToken{}
	case model.OpReverse:
		return reverse{}
	case model.OpTakePosition:
		return takePosition{}
	case model.OpSpaceToDepth:
		return spaceToDepth{}
	case model.OpPReLU:
		return prelu{}
	case model.OpPad, model.OpUpsample:
		return enlarged{}
	case model.OpDropout, model.OpDropout2D, model.OpDropPath:
		return dropout{}
	case model.OpMaxPool:
		return maxPool{}
	case model.OpAvgPool:
		return avgPool{}
	case model.OpGlobalAvgPool, model.OpAdaptiveAvgPool:
		return adaptivePool{}
	case model.OpFlatten, model.OpSequence:
		return flatten{}
	case model.OpAdd:
		return sum{}
	case model.OpMultiply:
		return multiply{}
	case model.OpConcat:
		return concat{}
	case model.OpChannels:
		return channels{}
	case model.OpDownsample:
		return downsample{}
	case model.OpInput, model.OpSoftmax: // softmax is computed by the loss
		return nil
	default: // the plan refuses what no engine computes
		panic(fmt.Sprintf("native: the table of kinds leaves out %v", n.Op))
	}
}

// elementwise is embedded by kinds whose backward completes the gradient: passGradient passes it on unchanged.
type elementwise struct{}

func (elementwise) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	pass(w, l.in[k].grad, l.grad, add)
}

// gathering is embedded by kinds that leave the gradient of their output alone: passGradient computes that
// of an input from it.
type gathering struct{}

func (gathering) backward(*layer, *kernel.Worker, *Engine) {}

// forward computes the output from those of the inputs.
func (l *layer) forward(w *kernel.Worker, e *Engine) {
	switch {
	case l.kind == nil:
	case e.plan.ByRows:
		l.kind.forwardRows(l, w, e)
	default:
		l.kind.forward(l, w, e)
	}
}

// backward turns the gradient of the output into those of the inputs and of the weights.
func (l *layer) backward(w *kernel.Worker, e *Engine) {
	if l.kind == nil {
		return
	}
	l.kind.backward(l, w, e)
	for k, flow := range l.v.GradIn {
		if flow == plan.FlowFirst || flow == plan.FlowAdd {
			l.kind.passGradient(l, w, k, flow == plan.FlowAdd)
		}
	}
}

// pass copies a gradient, or adds it.
func pass(w *kernel.Worker, dst, src []float32, add bool) {
	if add {
		w.Add(dst, dst, src)
	} else {
		w.Copy(dst, src)
	}
	w.Sync()
}

// cleared is a gradient that kernels add to: of zeros, unless something was written there before.
func cleared(w *kernel.Worker, grad []float32, add bool) []float32 {
	if !add {
		w.Clear(grad)
		w.Sync()
	}
	return grad
}
