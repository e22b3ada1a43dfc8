package kernel

import (
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// LossKind is a loss, the mean over the rows.
type LossKind int32

// The losses, in the order of the sources.
const (
	CrossEntropy LossKind = iota
	BinaryCrossEntropy
	Squares
)

// Loss is what the outputs of a network come to.
type Loss struct {
	Image           plan.Image // of the outputs, before a last softmax, or a sigmoid that the loss computes
	Kind            LossKind
	Softmax         bool           // comes last
	Sigmoid         bool           // comes last, and Kind is BinaryCrossEntropy
	Losses, Right   driver.Pointer // [lanes] of float64 and of int32: workspace
	Control, Result driver.Pointer // Control tells where the labels are
}

// Do computes the loss and counts the rows that are right. The gradient by the outputs x and the outputs as rows
// [rows][classes], behind a last softmax or Sigmoid, are computed where their pointers are not 0.
func (l Loss) Do(x, gradient, out driver.Pointer) []driver.Launch {
	im := l.Image
	return []driver.Launch{
		one("loss_rows", im.Lanes, struct {
			X, Gradient, Out, Losses, Right, Control driver.Pointer
			Classes, Pixels, Lanes, Softmax          int32
			Kind                                     LossKind
			Sigmoid                                  int32
		}{
			X: x, Gradient: gradient, Out: out, Losses: l.Losses, Right: l.Right, Control: l.Control,
			Classes: int32(im.C * im.H * im.W), Pixels: int32(im.H * im.W), Lanes: int32(im.Lanes), Softmax: flag(l.Softmax),
			Kind: l.Kind, Sigmoid: flag(l.Sigmoid),
		}),
		launchOf("loss_total", [3]int{1, 1, 1}, struct{ Result, Losses, Right, Control driver.Pointer }{
			l.Result, l.Losses, l.Right, l.Control,
		}),
	}
}
