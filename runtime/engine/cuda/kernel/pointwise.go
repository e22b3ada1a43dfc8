package kernel

import (
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Control is what a call is told, in device memory: struct control.
type Control struct {
	Seed     uint64         // of dropout
	Input    driver.Pointer // of the batch, [rows][C][H][W]
	Labels   driver.Pointer // [lanes] of int32, -1 for rows without
	Rate     float32        // minus the learning rate
	AdamRate float32        // the same over 1 - beta1^step
	AdamRoot float32        // 1 / sqrt(1 - beta2^step)
	Keep     float32        // what AdamW's decay leaves of a weight
	Step     int32          // from 1 on
	Rows     int32          // of the batch
}

// Result is what a call answers, in device memory: struct result. Before it, all is zero but Scale, which is 1.
type Result struct {
	Loss    float64 // mean over the rows
	Scale   float32 // of gradients
	Correct int32   // rows whose largest output is at their label
	Odd     int32   // 1: an input is not finite
	Bad     int32   // 1: the gradient's norm is not finite
}

// Op is what Pointwise computes.
type Op int32

// The operations, in the order of the sources. Back ones take the gradient first, then the output; HardSwishBack the
// input.
const (
	Clear Op = iota
	Copy
	Add
	AddReLU
	ReLU
	ReLUBack
	Clamp // ReLU6
	ClampBack
	Sigmoid
	SigmoidBack
	Tanh
	TanhBack
	HardSwish
	HardSwishBack
)

// top is where ReLU6 ends.
const top = 6

// Pointwise computes n values of out from those of x and y, which may be the same arrays; an operation that needs one
// or none of them takes 0.
func Pointwise(op Op, out, x, y driver.Pointer, n int) driver.Launch {
	return each("pointwise_values", n, struct {
		Out, X, Y driver.Pointer
		N         int64
		Op        Op
		Top       float32
	}{out, x, y, int64(n), op, top})
}

// Dropping is a dropout.
type Dropping struct {
	Control driver.Pointer
	Node    int     // of the graph: layers drop different values
	Rate    float64 // the share that is dropped
}

// Do computes n values of out, which may be x: x / (1 - rate), or 0 for those that seed, step, node and place choose.
// On the gradient it is its own backward pass.
func (d Dropping) Do(out, x driver.Pointer, n int) driver.Launch {
	return each("dropout_values", n, struct {
		Out, X, Control driver.Pointer
		N               int64
		Node            uint64
		Keep            float32
		Bound           uint32
	}{out, x, d.Control, int64(n), uint64(d.Node), float32(1 / (1 - d.Rate)), uint32(d.Rate * (1 << 32))})
}

// Importing turns the samples that Control tells of into an image with a border.
type Importing struct {
	Image           plan.Image
	Border          plan.Border
	Control, Result driver.Pointer
}

// Do writes all of out but its border. Lanes without a row become zero.
func (i Importing) Do(out driver.Pointer) driver.Launch {
	im := i.Image
	return launchOf("import_rows", [3]int{over(im.C*im.H*im.W, 32), over(im.Lanes, 32), 1}, struct {
		Out, Control, Result            driver.Pointer
		C, H, W, Top, Left, Full, Lanes int32
		_                               int32
	}{
		Out: out, Control: i.Control, Result: i.Result, C: int32(im.C), H: int32(im.H), W: int32(im.W),
		Top: int32(i.Border.Top), Left: int32(i.Border.Left), Full: int32(i.Border.Around(im).W), Lanes: int32(im.Lanes),
	})
}
