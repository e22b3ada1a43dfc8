package plan

import "github.com/disdel/disdel/model"

// With Halves, what a step keeps of its way forward for its way back takes half the memory: it is rounded to bfloat16
// as soon as it is there, and lies as 16 bits a value from when the way forward has read it for the last time. Where
// it lies is the first half of where it lay; the second half is free then. On the way back a layer widens it in a
// window, a few rows at a time, so that it never lies there as float32 as a whole.

// shorten finds the activations that become halves, and when. It comes when all is known that reads them.
func (p *planner) shorten() {
	if !p.Spec.Halves {
		return
	}
	last := map[*buffer]int{} // the last node that writes it forward
	read := map[*buffer]int{} // and that reads it
	for i := range p.g.Nodes {
		b := p.outs[i]
		read[b] = i
		if p.g.Nodes[i].Op != model.OpFlatten || !p.Nodes[i].InPlace {
			last[b] = i
		}
		for _, in := range p.g.Nodes[i].Inputs {
			read[p.outs[in]] = i
		}
	}
	unsplit, factors := p.unsplit(), p.factors()
	for i := range p.g.Nodes {
		b, v := p.outs[i], &p.Nodes[i]
		kept := int(b.to) > len(p.g.Nodes)
		if !kept && !factors[b] || b == p.outs[p.head()] {
			continue
		}
		v.Rounded = last[b] == i
		if v.Short = kept && !unsplit[b]; !v.Short {
			continue
		}
		b.short = int32(read[b])
		if v.Rounded {
			reader := &p.Nodes[read[b]]
			reader.Shortens = append(reader.Shortens, i)
		}
	}
}

// factors are the outputs that products multiply. They are rounded also where no layer reads them on the way back, as
// the input of a frozen layer: kernels take the lower half of a factor's bits to be zero.
func (p *planner) factors() map[*buffer]bool {
	out := map[*buffer]bool{}
	for i := range p.g.Nodes {
		if op := p.g.Nodes[i].Op; op == model.OpDense || op == model.OpConv {
			out[p.outs[p.Nodes[i].Inputs[0]]] = true
		}
	}
	return out
}

// byLoss tells whether the loss computes node i, from its input: a softmax, or a last sigmoid with Spec.Sigmoid.
func (p *planner) byLoss(i int) bool { return p.Spec.ByLoss(p.g, i) }

// head is the node whose output the loss takes.
func (p *planner) head() int {
	n := len(p.g.Nodes) - 1
	if p.byLoss(n) {
		return p.Nodes[n].Inputs[0]
	}
	return n
}

// unsplit are the outputs that stay as they are: what the loss takes, an input with a border, which has to stay zero,
// and the input of a max pool whose output stays, which is compared with it. A PReLU, a product and a group norm read
// float32.
func (p *planner) unsplit() map[*buffer]bool {
	out := map[*buffer]bool{p.outs[p.head()]: true}
	if p.Nodes[0].Border != (Border{}) {
		out[p.outs[0]] = true
	}
	for i := len(p.g.Nodes) - 1; i > 0; i-- {
		switch op := p.g.Nodes[i].Op; {
		case op == model.OpPReLU, op == model.OpMultiply, op == model.OpGroupNorm,
			op == model.OpMaxPool && out[p.outs[i]]:
			for _, in := range p.Nodes[i].Inputs {
				out[p.outs[in]] = true
			}
		}
	}
	return out
}

// roundedValues is how many values of a layer's weights are rounded at a time.
const roundedValues = 256 << 10

// RoundedBlocks is how many blocks of 16 filters are rounded at a time: of a convolution in groups, all.
func (c *Conv) RoundedBlocks() int {
	if c.Groups > 1 {
		return c.Groups * c.Blocks()
	}
	return min(c.Blocks(), max(1, roundedValues/c.BlockLen()))
}

// RoundedLen is the number of values of the weights that are rounded at a time.
func (c *Conv) RoundedLen() int { return c.RoundedBlocks()*c.BlockLen() + Slack }

// InputRows are the rows of the input, from (included) and to (not), that output rows from i0 to i1 were computed of.
func (c *Conv) InputRows(i0, i1 int) (from, to int) {
	from = min(max(0, i0*c.SH-c.Top), c.In.H)
	return from, max(from, min(c.In.H, (i1-1)*c.SH-c.Top+(c.KH-1)*c.DH+1))
}

// WindowLen is the number of values that the gradient of the weights needs beside BackWeightsLen where the input has
// become halves.
func (c *Conv) WindowLen() int {
	if c.Tile.Is() {
		return c.Tile.In() * c.In.C * 2 * vector
	}
	if c.Single() {
		return min(c.In.C, WindowChannels) * c.In.Lanes
	}
	return min(c.In.H, (c.ChunkRows()-1)*c.SH+(c.KH-1)*c.DH+1) * c.In.W * c.In.Pixel()
}

// WindowChannels is how many channels of a single pixel are widened at a time.
const WindowChannels = 128

// Single tells that input and output are single pixels, as those of dense layers: no row of theirs is a part.
func (c *Conv) Single() bool { return c.In.H*c.In.W == 1 && c.OH*c.OW == 1 && c.Taps() == 1 }

// InputRows are the rows of the input, from (included) and to (not), that output row i was computed of.
func (g *Pool) InputRows(i int) (from, to int) {
	from = min(max(0, i*g.SH-g.Top), g.In.H)
	return from, max(from, min(g.In.H, i*g.SH-g.Top+(g.KH-1)*g.DH+1))
}

// WindowLen is the number of values that a max pool needs for its way back where its input and output have become
// halves.
func (g *Pool) WindowLen() int {
	return (min(g.In.H, (g.KH-1)*g.DH+1)*g.In.W + g.OW) * g.In.Pixel()
}

// DepthwiseHalvesLen is that of the gradient of a depthwise convolution's weights.
func (g *Pool) DepthwiseHalvesLen() int { return g.KW*g.In.C*vector + g.In.W*g.In.Pixel() }

// normValues bounds the window of a batch norm.
const normValues = 32 << 10

// NormPixels is how many pixels are in the window of a batch norm, at least one.
func NormPixels(im Image) int { return min(im.H*im.W, max(1, normValues/im.Pixel())) }

// NormWindowLen is that window's number of values.
func NormWindowLen(im Image) int { return NormPixels(im) * im.Pixel() }
