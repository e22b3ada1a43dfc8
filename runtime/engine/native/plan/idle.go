package plan

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
