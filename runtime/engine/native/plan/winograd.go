package plan

// Winograd's algorithm F(m x m, 3 x 3) computes m x m outputs of a 3 x 3 kernel at stride 1 with (m+2)^2 products for
// each channel and filter where the definition has 9 m^2 (Winograd 1980; Lavin and Gray 2015): images, kernels and
// outputs are transformed, which costs sums, and rounds once more. Here an image's tiles become panels, one for each of
// the (m+2)^2 points, with channels as rows and the lanes of 16 or 32 rows of the batch as columns; a kernel becomes a
// matrix for each point; and what is between them are the products that everything else is computed with, too.

// What a Winograd's costs are beside its products, in multiply-adds of one row of the batch: a tile of one channel
// there, one of a filter back, and a kernel, which all rows share; by the side of an output's tile. Measured on one
// core of Zen 3.
var winogradCosts = [5]struct{ input, output, kernel float64 }{2: {100, 60, 10}, 4: {220, 170, 22}}

// winogradProduct is what a multiply-add costs there beside one of the definition: panels are short.
const winogradProduct = 1.1

// winogradTile is the side of an output's tile with which a convolution of an image to h x w pixels costs least; 0: its
// definition does, or the algorithm does not have it. taps is how many multiply-adds the definition has for a channel
// and a filter. It is the same whatever the batch and the machine.
func winogradTile(channels, filters, h, w, taps int) int {
	if channels%vector != 0 || filters%vector != 0 {
		return 0
	}
	c, k := float64(channels), float64(filters)
	best, least := 0, c*k*float64(taps)
	for _, m := range []int{2, 4} {
		tiles, cost := float64(((h+m-1)/m)*((w+m-1)/m)), winogradCosts[m]
		points := float64((m + 2) * (m + 2))
		if all := tiles*(points*c*k*winogradProduct+cost.input*c+cost.output*k) + cost.kernel*c*k; all < least {
			best, least = m, all
		}
	}
	return best
}

// Choose sets the algorithm by which the convolution and its gradients are computed.
func (c *Conv) Choose() {
	if c.Groups > 1 || c.KH != 3 || c.KW != 3 || c.SH != 1 || c.SW != 1 || c.DH != 1 || c.DW != 1 || c.Top > 2 ||
		c.Left > 2 || c.Top < 0 || c.Left < 0 {
		return
	}
	taps := met(c.OH, c.Top, c.In.H) * met(c.OW, c.Left, c.In.W)
	c.Tile = winogradTile(c.In.C, c.Filters, c.OH, c.OW, taps)
	c.BackTile = winogradTile(c.Filters, c.In.C, c.In.H, c.In.W, taps)
}

// met is how many of a side's 3 taps meet the image, of all outputs together.
func met(outputs, pad, size int) (n int) {
	for o := range outputs {
		for t := range 3 {
			if at := o - pad + t; at >= 0 && at < size {
				n++
			}
		}
	}
	return n
}

// panelValues bounds what the panels of one pass hold, so that a second-level cache has most of it.
const panelValues = 192 << 10

// WinogradColumns is how many columns the panels of a pass have: whole vectors, and never more than there are.
func WinogradColumns(m, channels, filters, h, w, lanes int) int {
	all := ((h + m - 1) / m) * ((w + m - 1) / m) * lanes
	per := (m + 2) * (m + 2) * (channels + filters)
	return min(all, max(4*vector, panelValues/per/(2*vector)*(2*vector)))
}

// WinogradLen is the number of values of scratch: the kernels' matrices, the panels of an image and of an output, a
// pixel of zeros, which borders read, and one that nobody reads, which the parts of tiles outside of the output write.
func WinogradLen(m, channels, filters, h, w, lanes int) int {
	if m == 0 {
		return 0
	}
	columns := WinogradColumns(m, channels, filters, h, w, lanes)
	return (m+2)*(m+2)*(channels*filters+columns*(channels+filters)) + lanes*(channels+filters)
}

// ForwardLen is the number of values of scratch that the convolution forward needs.
func (c *Conv) ForwardLen() int {
	return WinogradLen(c.Tile, c.In.C, c.Filters, c.OH, c.OW, c.In.Lanes)
}

// BackWeightsLen is that of the gradient of its weights: as forward, but for the pixels that nobody reads, instead of
// which there are pixels of the output's gradient, transposed.
func (c *Conv) BackWeightsLen() int {
	if c.Tile == 0 {
		return c.ScratchLen()
	}
	return c.ForwardLen() - c.Filters*c.In.Lanes + c.Tile*c.Tile*vector*c.Filters
}

// BackDataLen is that of the gradient of its input.
func (c *Conv) BackDataLen() int {
	return WinogradLen(c.BackTile, c.Filters, c.In.C, c.In.H, c.In.W, c.In.Lanes)
}
