package model

import "math"

// WindowAttention says how an attention within the windows of an image works (Liu 2021).
type WindowAttention struct {
	Heads  int
	Window Sides
	// Shift moves the windows down and to the right, around the edges of the image. Pixels from both sides of an edge do
	// not attend to each other. A side that one window covers is not shifted.
	Shift  Sides
	Grid   bool // windows have pixels that are as far apart as there are windows (Tu 2022)
	Cosine bool // scores are cosines times a learned scale of each head (Liu 2022)
	NoBias bool // the convolutions have no bias
}

// The scale of a head with Cosine is kept as its logarithm. It starts as that of 10, and counts as 100 at most.
const (
	firstScale   = 10
	LargestScale = 100
)

// ApartScore is by how much scores of pixels on both sides of an edge are less, which all but hides them.
const ApartScore = 100

// WindowAttention adds a convolution of single pixels for queries, keys and values, the attention, and a convolution of
// its outputs: NAME.qkv, NAME.heads and NAME.out. NAME.pad puts zeros below and to the right of an image that is no
// multiple of the window; their outputs are left out. Each score has a learned bias, by how far its pixels are apart.
func (b *Builder) WindowAttention(name string, in int, a WindowAttention) int {
	c, height, width := b.image(name, in)
	if min(a.Window.H, a.Window.W) < 1 || max(a.Window.H, a.Window.W) > largestWindow {
		b.fail(name, "size %dx%d must be 1 to %d", a.Window.H, a.Window.W, largestWindow)
		return 0
	}
	if a.Heads < 1 || c%a.Heads != 0 {
		b.fail(name, "%d heads must divide %d channels", a.Heads, c)
		return 0
	}
	if a.Grid && a.Shift != (Sides{}) {
		b.fail(name, "a grid has no shift; leave one of them out")
	}
	if min(a.Shift.H, a.Shift.W) < 0 || a.Shift.H >= a.Window.H || a.Shift.W >= a.Window.W {
		b.fail(name, "shift %dx%d must be less than the window's %dx%d", a.Shift.H, a.Shift.W, a.Window.H, a.Window.W)
	}
	down, right := missing(height, a.Window.H), missing(width, a.Window.W)
	x := in
	if down+right > 0 {
		x = b.Pad(name+".pad", in, Padding{Bottom: down, Right: right})
	}
	if height+down == a.Window.H {
		a.Shift.H = 0
	}
	if width+right == a.Window.W {
		a.Shift.W = 0
	}
	qkv := b.Conv(name+".qkv", x, 3*c, Square(1, 1, 0), 1, !a.NoBias)
	heads := b.add(Node{
		Name: name + ".heads", Op: OpWindowAttention, Inputs: []int{qkv}, Out: Shape{c, height, width}, Heads: a.Heads,
		Kernel: a.Window, Shift: a.Shift, Grid: a.Grid, Cosine: a.Cosine,
	})
	return b.Conv(name+".out", heads, c, Square(1, 1, 0), 1, !a.NoBias)
}

// missing is how much a side lacks of a multiple.
func missing(side, of int) int { return (of - side%of) % of }

// SpaceToDepth makes one pixel of each block of an image. Its channels are those of the block's pixels, row after row.
func (b *Builder) SpaceToDepth(name string, in int, block Sides) int {
	c, h, w := b.image(name, in)
	if block.H < 1 || block.W < 1 || h%max(block.H, 1) != 0 || w%max(block.W, 1) != 0 {
		b.fail(name, "size %dx%d must divide the image's %dx%d; put pad before it", block.H, block.W, h, w)
		return 0
	}
	return b.add(Node{
		Name: name, Op: OpSpaceToDepth, Inputs: []int{in}, Kernel: block,
		Out: Shape{c * block.H * block.W, h / block.H, w / block.W},
	})
}

// windowParams are a bias for each distance of two pixels of a window, and with Cosine the logarithms of the scales.
func windowParams(g *Graph, out []Param, i int) []Param {
	n := &g.Nodes[i]
	out = append(out, n.param(i, "weight", true, (2*n.Kernel.H-1)*(2*n.Kernel.W-1), n.Heads))
	if n.Cosine {
		out = append(out, n.param(i, "scale", true, n.Heads))
	}
	return out
}

func windowProducts(n *Node) int64 {
	return 2 * int64(n.Out.Len()) * int64(n.Kernel.H) * int64(n.Kernel.W)
}

// firstLogarithm is what the logarithm of a scale starts from.
var firstLogarithm = float32(math.Log(firstScale))

// Windows is how the pixels of a map of MapH x MapW are in windows of H x W: side by side and moved by a shift, or with
// Grid as far apart as there are windows.
type Windows struct {
	MapH, MapW, H, W, ShiftH, ShiftW int
	Grid                             bool
}

// WindowsOf are those of an attention on a map of a size.
func WindowsOf(n *Node, height, width int) Windows {
	return Windows{
		MapH: height, MapW: width, H: n.Kernel.H, W: n.Kernel.W, ShiftH: n.Shift.H, ShiftW: n.Shift.W, Grid: n.Grid,
	}
}

// Is tells whether there are windows.
func (s *Windows) Is() bool { return s.H > 0 }

// Len is the number of pixels of a window, and Count that of windows.
func (s *Windows) Len() int { return s.H * s.W }

// Count is the number of windows.
func (s *Windows) Count() int { return s.MapH / s.H * (s.MapW / s.W) }

// Distances is how many distances two pixels of a window have.
func (s *Windows) Distances() int { return (2*s.H - 1) * (2*s.W - 1) }

// Distance numbers that of pixel i from pixel k of a window.
func (s *Windows) Distance(i, k int) int {
	return (i/s.W-k/s.W+s.H-1)*(2*s.W-1) + i%s.W - k%s.W + s.W - 1
}

// Pixel is where place i of a window is in the map.
func (s *Windows) Pixel(window, i int) (row, column int) {
	row, column = s.along(window, i)
	if s.Grid {
		return row, column
	}
	return (row + s.ShiftH) % s.MapH, (column + s.ShiftW) % s.MapW
}

// along is the place before the shift.
func (s *Windows) along(window, i int) (row, column int) {
	down, right := s.MapH/s.H, s.MapW/s.W
	if s.Grid {
		return i/s.W*down + window/right, i%s.W*right + window%right
	}
	return window/right*s.H + i/s.W, window%right*s.W + i%s.W
}

// Part is the part of the map that a place of a window is from: the shift joins its opposite edges. Places of different
// parts do not attend to each other.
func (s *Windows) Part(window, i int) (part int) {
	row, column := s.along(window, i)
	if s.ShiftH > 0 && row >= s.MapH-s.ShiftH {
		part = 1
	}
	if s.ShiftW > 0 && column >= s.MapW-s.ShiftW {
		part += 2
	}
	return part
}

// Divided tells whether a window has places of several parts.
func (s *Windows) Divided(window int) bool {
	down, right := s.MapH/s.H, s.MapW/s.W
	return s.ShiftH > 0 && window/right == down-1 || s.ShiftW > 0 && window%right == right-1
}
