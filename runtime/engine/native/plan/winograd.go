package plan

import "github.com/disdel/disdel/runtime/engine/native/winograd"

// Winograd's algorithm computes a tile of a convolution's outputs. For each channel and filter, a tile takes one
// product for each of its points. The definition takes one product for each output and tap. Images, kernels and outputs
// are transformed; this costs sums, and rounds once more. The tiles of an image become panels, one for each point. A
// panel has channels as rows, and the lanes of 16 or 32 rows of the batch as columns. A kernel becomes one matrix for
// each point. The usual matrix products multiply both.

// winogradCost is what an algorithm costs beside its products, in multiply-adds of one row of the batch: a tile of one
// channel there, one of a filter back, and a kernel, which all rows share. Measured on one core of Zen 3 for F(2x2,
// 3x3) and F(4x4, 3x3), of Zen 4 for the others.
type winogradCost struct {
	tile                  winograd.Tile
	input, output, kernel float64
}

func winogradCosts() [7]winogradCost {
	return [...]winogradCost{
		{winograd.Square(winograd.Short(2, 3)), 100, 60, 10},
		{winograd.Square(winograd.Short(3, 3)), 150, 110, 16},
		{winograd.Square(winograd.Short(4, 3)), 220, 170, 22},
		{winograd.Square(winograd.Short(3, 5)), 300, 220, 40},
		{winograd.Square(winograd.Whole(2)), 60, 60, 2},
		{winograd.Lines(winograd.Whole(4)), 40, 40, 10},
		{winograd.Columns(winograd.Whole(4)), 40, 40, 10},
	}
}

// winogradProduct is what a multiply-add costs there beside one of the definition: panels are short.
const winogradProduct = 1.1

// winogradTile is the algorithm that costs least of those that fit, for a convolution of an image to h x w pixels; the
// zero value: its definition does. taps is how many multiply-adds the definition has for a channel and a filter. It is
// the same whatever the batch and the machine.
func winogradTile(channels, filters, h, w, taps int, fits func(winograd.Tile) bool) winograd.Tile {
	var best winograd.Tile
	c, k := float64(channels), float64(filters)
	minimum := c * k * float64(taps)
	for _, cost := range winogradCosts() {
		if !fits(cost.tile) {
			continue
		}
		rows, columns := cost.tile.Across(h, w)
		tiles, points := float64(rows*columns), float64(cost.tile.Points())
		if all := tiles*(points*c*k*winogradProduct+cost.input*c+cost.output*k) + cost.kernel*c*k; all < minimum {
			best, minimum = cost.tile, all
		}
	}
	return best
}

// Choose sets the algorithm by which the convolution and its gradients are computed.
func (c *Conv) Choose() {
	taps := met(c.KH, c.OH, c.Top, c.In.H) * met(c.KW, c.OW, c.Left, c.In.W)
	c.Tile = winogradTile(c.In.C, c.Filters, c.OH, c.OW, taps, c.Fits)
	c.BackTile = winogradTile(c.Filters, c.In.C, c.In.H, c.In.W, taps, c.Fits)
}

// Fits tells whether an algorithm is one for the convolution, and for the gradient of its input.
func (c *Conv) Fits(t winograd.Tile) bool {
	return c.Groups == 1 && c.SH == 1 && c.SW == 1 && c.DH == 1 && c.DW == 1 && c.In.C%vector == 0 &&
		c.Filters%vector == 0 && fitsSide(t.H, c.KH, c.OH, c.Top, c.In.H) && fitsSide(t.W, c.KW, c.OW, c.Left, c.In.W)
}

// fitsSide tells whether an algorithm is one for a side with so many taps, outputs, padding and pixels, and for the
// gradient of its input.
func fitsSide(s winograd.Side, taps, outputs, pad, size int) bool {
	if s.Taps != taps || pad < 0 || pad >= taps {
		return false
	}
	return !s.IsWhole() || size == s.In && outputs == s.Out && pad == s.In-1
}

// met is how many of a side's taps meet the image, of all outputs together.
func met(taps, outputs, pad, size int) (n int) {
	for o := range outputs {
		for t := range taps {
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
func WinogradColumns(t winograd.Tile, channels, filters, h, w, lanes int) int {
	rows, columns := t.Across(h, w)
	per := t.Points() * (channels + filters)
	return min(rows*columns*lanes, max(4*vector, panelValues/per/(2*vector)*(2*vector)))
}

// WinogradLen is the number of values of scratch: the kernels' matrices, the panels of an image and of an output, and
// two pixels. Borders read the first one, which is zero. Parts of tiles outside of the output write the second one,
// which is never read.
func WinogradLen(t winograd.Tile, channels, filters, h, w, lanes int) int {
	if !t.Is() {
		return 0
	}
	columns := WinogradColumns(t, channels, filters, h, w, lanes)
	return t.Points()*(channels*filters+columns*(channels+filters)) + lanes*(channels+filters)
}

// ForwardLen is the number of values of scratch that the convolution forward needs.
func (c *Conv) ForwardLen() int {
	return WinogradLen(c.Tile, c.In.C, c.Filters, c.OH, c.OW, c.In.Lanes)
}

// BackWeightsLen is that of the gradient of its weights: as forward, but for the pixels that nobody reads, instead of
// which there are pixels of the output's gradient, transposed.
func (c *Conv) BackWeightsLen() int {
	if !c.Tile.Is() {
		return c.ScratchLen()
	}
	return c.ForwardLen() - c.Filters*c.In.Lanes + c.Tile.Out()*vector*c.Filters
}

// BackDataLen is that of the gradient of its input.
func (c *Conv) BackDataLen() int {
	return WinogradLen(c.BackTile, c.Filters, c.In.C, c.In.H, c.In.W, c.In.Lanes)
}
