package kernel

import (
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// The ways to move values, in the order of the sources.
const (
	flatten int32 = iota
	unflatten
	join
	split
	subsample
	subsampleBack
)

// move is struct move.
type move struct {
	Out, X             driver.Pointer
	N                  int64
	C, H, W            int32
	Total, First       int32
	OutH, OutW, Stride int32
	Lanes, Op, Add     int32
	_                  int32
}

func moved(op int32, out, x driver.Pointer, im plan.Image, n int) move {
	return move{
		Out: out, X: x, N: int64(n), C: int32(im.C), H: int32(im.H), W: int32(im.W), Lanes: int32(im.Lanes), Op: op,
		Stride: 1,
	}
}

func (m move) launch() driver.Launch { return each("move_values", int(m.N), m) }

// Flatten reorders an image [H][W][C] to a vector in PyTorch's order, [C][H][W].
func Flatten(out, x driver.Pointer, im plan.Image) driver.Launch {
	return moved(flatten, out, x, im, im.Len()).launch()
}

// Unflatten is the inverse of Flatten; with add set it adds to out.
func Unflatten(out, x driver.Pointer, im plan.Image, add bool) driver.Launch {
	m := moved(unflatten, out, x, im, im.Len())
	m.Add = flag(add)
	return m.launch()
}

// Part is some of the channels of a wider image.
type Part struct {
	Image plan.Image // of the part
	Total int        // channels of the wider image
	First int        // where the part's begin
}

// Join copies the part x into the wider image out.
func (p Part) Join(out, x driver.Pointer) driver.Launch {
	m := moved(join, out, x, p.Image, p.Image.Len())
	m.Total, m.First = int32(p.Total), int32(p.First)
	return m.launch()
}

// Split copies the part out of the wider image x, or adds it.
func (p Part) Split(out, x driver.Pointer, add bool) driver.Launch {
	m := moved(split, out, x, p.Image, p.Image.Len())
	m.Total, m.First, m.Add = int32(p.Total), int32(p.First), flag(add)
	return m.launch()
}

// Sampling takes every Stride-th pixel of In and centres its channels among those of Out, the others being zero:
// ResNet's shortcut of option A.
type Sampling struct {
	In, Out plan.Image
	Stride  int
}

func (s Sampling) move(op int32, out, x driver.Pointer, n int) move {
	m := moved(op, out, x, s.In, n)
	m.Total, m.First, m.Stride = int32(s.Out.C), int32((s.Out.C-s.In.C)/2), int32(s.Stride)
	m.OutH, m.OutW = int32(s.Out.H), int32(s.Out.W)
	return m
}

// Forward computes out, an image Out.
func (s Sampling) Forward(out, x driver.Pointer) driver.Launch {
	return s.move(subsample, out, x, s.Out.Len()).launch()
}

// Back computes dx, an image In, of the gradient dy of an image Out, or adds to it.
func (s Sampling) Back(dx, dy driver.Pointer, add bool) driver.Launch {
	m := s.move(subsampleBack, dx, dy, s.In.Len())
	m.Add = flag(add)
	return m.launch()
}
