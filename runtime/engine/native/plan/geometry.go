package plan

import "github.com/disdel/disdel/runtime/engine/native/winograd"

// vector is the number of values that every size in memory is a multiple of: a cache line, and the widest vector.
const vector = 16

// Padded rounds up to whole vectors.
func Padded(n int) int { return (n + vector - 1) / vector * vector }

// Image is the shape of an activation in memory: [H][W][C][Lanes], the batch innermost and padded to whole vectors.
// With a Depth it is [Lanes][H][W][Depth]: Lanes rows of the batch one behind the other, Depth values a pixel, the
// first C of which are its channels; the others mean nothing.
//
// With a Fold the image is a sequence of H Fold positions. Each pixel has Fold positions that follow one another, and
// each of them has Lanes/Fold lanes: that is how a few rows fill vectors.
type Image struct{ C, H, W, Lanes, Depth, Fold int }

// Span is the lanes of one position.
func (i Image) Span() int { return i.Lanes / max(1, i.Fold) }

// Positions is how many positions a sequence has.
func (i Image) Positions() int { return i.H * i.W * max(1, i.Fold) }

// Len is the number of values.
func (i Image) Len() int {
	if i.Depth > 0 {
		return i.Row() * i.Lanes
	}
	return i.C * i.H * i.W * i.Lanes
}

// Pixel is the number of values of one pixel.
func (i Image) Pixel() int {
	if i.Depth > 0 {
		return i.Depth
	}
	return i.C * i.Lanes
}

// Row is the number of values of one row of the batch where rows lie one behind the other.
func (i Image) Row() int { return i.H * i.W * i.Depth }

// Blocks is one row as an image of vectors, which kernels that go by values walk.
func (i Image) Blocks() Image {
	if i.Depth == 0 {
		return i
	}
	return Image{C: i.Depth / vector, H: i.H, W: i.W, Lanes: vector}
}

// Border is how many pixels of zeros stand around an image in memory.
type Border struct{ Top, Bottom, Left, Right int }

// Around is the shape of an image with its border.
func (b Border) Around(i Image) Image {
	i.H, i.W = i.H+b.Top+b.Bottom, i.W+b.Left+b.Right
	return i
}

// Conv is the geometry of a convolution; a dense layer is one with a single pixel.
type Conv struct {
	In         Image // as the kernel meets it: a border in memory counts as pixels
	Filters    int
	KH, KW     int
	SH, SW     int // stride
	DH, DW     int // dilation
	Top, Left  int // padding that is not in memory
	OH, OW     int
	Groups     int
	ReLU       bool // of the output, forward
	ActiveRows int  // lanes that hold rows, rounded up to whole vectors; 0 is all

	// Idle is how many taps stand around those KH x KW that meet no pixel of the image, wherever the kernel stands. What
	// they weigh is kept, and computes nothing.
	Idle Border

	// Winograd's algorithm, forward and for the gradient of the input; the zero value: by the definition.
	Tile, BackTile winograd.Tile
}

// Dense is the geometry of a dense layer on a vector.
func Dense(in, units, lanes int) Conv {
	return Conv{
		In: Image{C: in, H: 1, W: 1, Lanes: lanes}, Filters: units, KH: 1, KW: 1, SH: 1, SW: 1, DH: 1, DW: 1,
		OH: 1, OW: 1, Groups: 1,
	}
}

// Out is the shape of the output.
func (c *Conv) Out() Image { return Image{C: c.Filters, H: c.OH, W: c.OW, Lanes: c.In.Lanes} }

// Taps is the number of pixels of the kernel, without those that are idle.
func (c *Conv) Taps() int { return c.KH * c.KW }

// Inner is the number of channels of a group.
func (c *Conv) Inner() int { return c.In.C / c.Groups }

// Outer is the number of filters of a group.
func (c *Conv) Outer() int { return c.Filters / c.Groups }

// Blocks is the number of blocks of 16 filters of a group.
func (c *Conv) Blocks() int { return Padded(c.Outer()) / vector }

// BlockLen is the number of values of a block's weights, GroupLen of a group's.
func (c *Conv) BlockLen() int { return c.Taps() * c.Inner() * vector }

// GroupLen is the number of values of a group's weights.
func (c *Conv) GroupLen() int { return c.Blocks() * c.BlockLen() }

// Slack is read, never used, behind weights by a tile that has more rows than there are channels.
const Slack = 8 * vector

// WeightLen is the number of values of the weights in memory that compute, and of their gradient.
func (c *Conv) WeightLen() int { return c.Groups*c.GroupLen() + Slack }

// IdleLen is the number of weights of idle taps, which lie behind the others.
func (c *Conv) IdleLen() int {
	return ((c.Idle.Top+c.KH+c.Idle.Bottom)*(c.Idle.Left+c.KW+c.Idle.Right) - c.Taps()) * c.Inner() * c.Filters
}

// BiasLen is the number of values of the bias in memory: every group's filters are padded.
func (c *Conv) BiasLen() int { return c.Groups*c.Blocks()*vector + Slack }

// BiasAt is where filter k's bias stands.
func (c *Conv) BiasAt(k int) int { return k/c.Outer()*c.Blocks()*vector + k%c.Outer() }

// Active is the number of lanes that are computed.
func (c *Conv) Active() int {
	if c.ActiveRows > 0 {
		return c.ActiveRows
	}
	return c.In.Lanes
}

// Each calls f with two indices of every weight. The first is of PyTorch's layout, [filters][channels/groups][KH][KW].
// The second is of memory, [group][filters/16][KH][KW][channels/groups][16], followed by idle taps in PyTorch's order.
func (c *Conv) Each(f func(there, here int)) { c.Rows(0, c.Filters, f) }

// Rows is Each for the filters from (included) to (not).
func (c *Conv) Rows(from, to int, f func(there, here int)) {
	there := from * (c.Inner()*c.Taps() + c.IdleLen()/c.Filters)
	idle := c.WeightLen() + from*(c.IdleLen()/c.Filters)
	for k := from; k < to; k++ {
		g, kk := k/c.Outer(), k%c.Outer()
		base := g*c.GroupLen() + kk/vector*c.BlockLen() + kk%vector
		for ch := range c.Inner() {
			for r := -c.Idle.Top; r < c.KH+c.Idle.Bottom; r++ {
				for q := -c.Idle.Left; q < c.KW+c.Idle.Right; q++ {
					if r < 0 || r >= c.KH || q < 0 || q >= c.KW {
						f(there, idle)
						idle++
					} else {
						f(there, base+((r*c.KW+q)*c.Inner()+ch)*vector)
					}
					there++
				}
			}
		}
	}
}

// chunkValues bounds what of the input and of the output's gradient one pass of the weights' gradient works with.
const chunkValues = 96 << 10

// ChunkRows is how many output rows one pass of the weights' gradient takes.
func (c *Conv) ChunkRows() int {
	per := max(c.OW*c.Filters, c.SH*c.In.W*c.In.C) * c.In.Lanes
	return min(c.OH, max(1, chunkValues/per))
}

// Transposed is the number of filters of a transposed pixel of the output's gradient: whole pairs of blocks, since a
// tile may take two.
func (c *Conv) Transposed() int { return (c.Blocks()*vector + 31) / 32 * 32 }

// Few tells whether filters are too few to fill a vector and channels too few to fill a tile, as in the first layer of
// LeNet. The taps of a kernel row must be one run of channels in memory. Gradients of such weights are correlations of
// lanes.
func (c *Conv) Few() bool {
	return c.Groups == 1 && c.Filters < 12 && c.In.C < 8 && c.DW == 1 && c.DH == 1 && c.OH*c.OW >= 16 &&
		c.Left == 0 && (c.OW-1)*c.SW+c.KW <= c.In.W && c.Top == 0 && (c.OH-1)*c.SH+c.KH <= c.In.H
}

// ScratchLen is the number of values that the weights' gradient needs beside its arguments.
func (c *Conv) ScratchLen() int {
	if c.Few() {
		return c.KH * (c.KW*c.In.C + 3) * (c.Filters + 6) * vector
	}
	return c.ChunkRows() * c.OW * c.In.Lanes * c.Transposed()
}

// Pool is the geometry of a pool or of a depthwise convolution.
type Pool struct {
	In        Image // of one row, as vectors, where rows lie one behind the other
	KH, KW    int
	SH, SW    int
	DH, DW    int
	Top, Left int
	OH, OW    int
	CountPad  bool // an average counts padding

	ActiveRows int // as of Conv
}

// Active is the number of lanes that are computed.
func (g *Pool) Active() int {
	if g.ActiveRows > 0 {
		return g.ActiveRows
	}
	return g.In.Lanes
}

// Out is the shape of the output.
func (g *Pool) Out() Image { return Image{C: g.In.C, H: g.OH, W: g.OW, Lanes: g.In.Lanes} }

// Trim makes the outermost taps idle that meet no pixel of the image: a kernel of 3x3 with padding on a single pixel
// computes with one tap of nine, whose weights then lie side by side, and the others cost nothing.
func (c *Conv) Trim() {
	first, end := meeting(c.KH, c.OH, c.SH, c.DH, c.Top, c.In.H)
	c.Idle.Top, c.Idle.Bottom = c.Idle.Top+first, c.Idle.Bottom+c.KH-end
	c.Top, c.KH = c.Top-first*c.DH, end-first
	first, end = meeting(c.KW, c.OW, c.SW, c.DW, c.Left, c.In.W)
	c.Idle.Left, c.Idle.Right = c.Idle.Left+first, c.Idle.Right+c.KW-end
	c.Left, c.KW = c.Left-first*c.DW, end-first
}

// meeting is the first tap of a side that meets the image, and the one behind the last. The padding that is left before
// the first is never less than none, and where nothing meets, every tap stays.
func meeting(taps, outputs, stride, dilation, pad, size int) (first, end int) {
	first = taps
	for t := range taps {
		for o := range outputs {
			if at := o*stride - pad + t*dilation; at >= 0 && at < size {
				first, end = min(first, t), t+1
			}
		}
	}
	if end == 0 {
		return 0, taps
	}
	return min(first, max(pad, 0)/dilation), end
}
