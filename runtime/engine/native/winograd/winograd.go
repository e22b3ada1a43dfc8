// Package winograd has the bilinear algorithms by which convolutions are computed with fewer products than their
// definition has: their sizes and their matrices, which the kernels in Go, the generators of their assembly and the
// planner all have from here.
//
// Let u be a polynomial of a coefficients, v one of b, and w their product's a+b-1. At a+b-1 points the product's
// values are those of u times those of v, and its coefficients follow from them: a b products have become a+b-1 (Toom
// 1963; Cook 1966). Each of the three can be what comes out, since the sum of u_i v_j w_(i+j) over all i and j is
// linear in each (Winograd 1980). So there are two algorithms for a side of a convolution at stride 1. In the first, w
// is the image, u the kernel and v the outputs. This is F(m, r) of Lavin and Gray 2015 ("Fast Algorithms for
// Convolutional Neural Networks"); it computes tiles of an image of any size. In the second, w is the kernel, u the
// image and v the outputs, turned around. It is for a side so short that each of its pixels meets each output through a
// tap of its own. Such a side is one product of polynomials.
//
// Terms: a tap is one weight of a kernel along a side. A point is where the polynomials are evaluated, so that (m+2)^2
// products serve a tile of m x m outputs of a 3 x 3 kernel. An idle tap meets no pixel of the image wherever the kernel
// stands; its weight is kept and computes nothing.
package winograd

import (
	"fmt"
	"iter"
)

// Side is an algorithm for one side of a tile, by how many values it has of each kind.
type Side struct {
	Out  int // outputs
	Taps int // of the kernel
	In   int // pixels of the image
}

// Short is F(out, taps): its pixels are as many as its outputs meet.
func Short(out, taps int) Side { return Side{Out: out, Taps: taps, In: out + taps - 1} }

// Whole is that of a side of n pixels and n outputs, all of which meet: the kernel has 2n-1 taps.
func Whole(n int) Side { return Side{Out: n, Taps: 2*n - 1, In: n} }

// Points is how many products it has.
func (s Side) Points() int { return max(s.In, s.Taps) }

// IsWhole tells that the side is a whole image's, whose borders no tap needs.
func (s Side) IsWhole() bool { return s.Taps > 1 && s.In == s.Out }

// Name is part of the names of kernels.
func (s Side) Name() string {
	if s.IsWhole() {
		return fmt.Sprintf("Whole%d", s.Out)
	}
	return fmt.Sprintf("%dx%d", s.Out, s.Taps)
}

// Tile is an algorithm for both sides of a tile; the zero value is none: the definition.
type Tile struct{ H, W Side }

// Square has the same algorithm for both sides.
func Square(s Side) Tile { return Tile{H: s, W: s} }

// Lines have an algorithm along a row, and none from row to row; Columns the other way around.
func Lines(s Side) Tile { return Tile{H: Short(1, 1), W: s} }

// Columns is Lines of the other side.
func Columns(s Side) Tile { return Tile{H: s, W: Short(1, 1)} }

// Is tells that there is an algorithm.
func (t Tile) Is() bool { return t != Tile{} }

// Points is how many products a tile has.
func (t Tile) Points() int { return t.H.Points() * t.W.Points() }

// Out is how many outputs a tile has.
func (t Tile) Out() int { return t.H.Out * t.W.Out }

// Taps is how many taps the kernel has.
func (t Tile) Taps() int { return t.H.Taps * t.W.Taps }

// In is how many pixels of the image a tile has.
func (t Tile) In() int { return t.H.In * t.W.In }

// Across is how many tiles cover h x w outputs.
func (t Tile) Across(h, w int) (rows, columns int) {
	return (h + t.H.Out - 1) / t.H.Out, (w + t.W.Out - 1) / t.W.Out
}

// Side is the algorithm that a tile goes by along its sides, or its only one, and whether it is along one alone.
func (t Tile) Side() (s Side, one bool) {
	switch none := Short(1, 1); {
	case t.H == none:
		return t.W, true
	case t.W == none:
		return t.H, true
	default:
		return t.H, false
	}
}

// String names the algorithm as the literature does: F(4x4, 3x3).
func (t Tile) String() string {
	if !t.Is() {
		return "the definition"
	}
	name := fmt.Sprintf("F(%dx%d, %dx%d)", t.H.Out, t.W.Out, t.H.Taps, t.W.Taps)
	if t.H.IsWhole() || t.W.IsWhole() {
		return name + " whole"
	}
	return name
}

// Tiles are the algorithms that there are kernels for.
func Tiles() []Tile {
	return []Tile{
		Square(Short(2, 3)), Square(Short(3, 3)), Square(Short(4, 3)), Square(Short(3, 5)), Square(Whole(2)),
		Lines(Whole(4)), Columns(Whole(4)),
	}
}

// Sides are the algorithms of all tiles, each once, and whether it is along one side of a tile alone.
func Sides() iter.Seq2[Side, bool] {
	return func(yield func(Side, bool) bool) {
		seen := map[Side]bool{}
		for _, t := range Tiles() {
			s, one := t.Side()
			if !seen[s] && !yield(s, one) {
				return
			}
			seen[s] = true
		}
	}
}
