package kernel

// Enlarged is an image whose pixels are those of a smaller one, each H x W times, behind Top rows and Left columns of
// zeros. What is left is zeros, too. With Apart, a pixel comes once, before zeros in the place of the other times. Both
// lie by lanes, or one row of the batch lies by rows.
type Enlarged struct {
	In, Out   Image
	Top, Left int
	H, W      int
	Apart     bool
}

// source is the pixel of the smaller image that a pixel is, -1 for zeros.
func (g *Enlarged) source(px int) int {
	i, j := px/g.Out.W-g.Top, px%g.Out.W-g.Left
	if i < 0 || j < 0 || i >= g.In.H*g.H || j >= g.In.W*g.W || g.Apart && (i%g.H > 0 || j%g.W > 0) {
		return -1
	}
	return i/g.H*g.In.W + j/g.W
}

// Enlarge writes y, the enlarged image, of x.
func (w *Worker) Enlarge(g *Enlarged, x, y []float32) {
	pixel := g.Out.Pixel()
	from, to := w.share(g.Out.H * g.Out.W)
	for px := from; px < to; px++ {
		out := y[px*pixel:][:pixel]
		if k := g.source(px); k >= 0 {
			copy(out, x[k*pixel:])
		} else {
			clear(out)
		}
	}
	w.Sync()
}

// EnlargeBack adds the gradient of x to dx.
func (w *Worker) EnlargeBack(g *Enlarged, dy, dx []float32) {
	pixel, h, wide := g.Out.Pixel(), g.H, g.W
	if g.Apart {
		h, wide = 1, 1
	}
	from, to := w.share(g.In.H * g.In.W)
	for px := from; px < to; px++ {
		sum := dx[px*pixel:][:pixel]
		for i := range h {
			for j := range wide {
				at := (g.Top+px/g.In.W*g.H+i)*g.Out.W + g.Left + px%g.In.W*g.W + j
				for l, v := range dy[at*pixel:][:pixel] {
					sum[l] += v
				}
			}
		}
	}
	w.Sync()
}

// Gated is values that are multiplied with others, [rows][Pixels][Pixel] with [rows][Pixel].
type Gated struct{ Pixel, Pixels int }

// Multiply is y = x gate, or adds that to y.
func (w *Worker) Multiply(g Gated, y, x, gate []float32, add bool) {
	from, to := w.share(len(y))
	for i := from; i < to; {
		n := min(to, (i/g.Pixel+1)*g.Pixel) - i
		in, by, out := x[i:][:n], gate[i/(g.Pixel*g.Pixels)*g.Pixel+i%g.Pixel:][:n], y[i:][:n]
		for k, v := range in {
			if add {
				out[k] += v * by[k]
			} else {
				out[k] = v * by[k]
			}
		}
		i += n
	}
}

// GateBack writes the gradient of the gate of Multiply, or adds it. All values are of one row.
func (w *Worker) GateBack(g Gated, dGate, dy, x []float32, add bool) {
	from, to := w.share(g.Pixel)
	sum := dGate[from:to]
	if !add {
		clear(sum)
	}
	for px := range g.Pixels {
		d := dy[px*g.Pixel+from:][:len(sum)]
		for k, v := range x[px*g.Pixel+from:][:len(sum)] {
			sum[k] += v * d[k]
		}
	}
}

// Picked is an image with some channels of another one: those from First on, if one of each group comes in turn.
type Picked struct {
	In, Out       Image
	First, Groups int
}

// source is the channel of the other image that a channel is.
func (p *Picked) source(c int) int {
	return (c+p.First)%p.Groups*(p.In.C/p.Groups) + (c+p.First)/p.Groups
}

// Pick writes y, some channels of x.
func (w *Worker) Pick(p Picked, x, y []float32) {
	from, to := w.share(p.Out.H * p.Out.W)
	for px := from; px < to; px++ {
		for c := range p.Out.C {
			copy(y[(px*p.Out.C+c)*p.Out.Lanes:][:p.Out.Lanes], x[(px*p.In.C+p.source(c))*p.In.Lanes:])
		}
	}
}

// RowsPick is Pick for rows of the batch.
func (w *Worker) RowsPick(p Picked, rows int, x, y []float32) {
	from, to := w.share(rows * p.Out.H * p.Out.W)
	for px := from; px < to; px++ {
		for c := range p.Out.C {
			y[px*p.Out.Depth+c] = x[px*p.In.Depth+p.source(c)]
		}
	}
}

// PickBack adds the gradient of x of Pick to dx.
func (w *Worker) PickBack(p Picked, dy, dx []float32) {
	from, to := w.share(p.Out.H * p.Out.W)
	for px := from; px < to; px++ {
		for c := range p.Out.C {
			sum := dx[(px*p.In.C+p.source(c))*p.In.Lanes:]
			for l, v := range dy[(px*p.Out.C+c)*p.Out.Lanes:][:p.Out.Lanes] {
				sum[l] += v
			}
		}
	}
}

// PReLU is y = x above 0, and x times the channel's slope below. There is a slope for each channel, or a single one.
func (w *Worker) PReLU(im Image, slopes, x, y []float32) {
	from, to := w.share(im.H * im.W * im.C)
	for n := from; n < to; n++ {
		slope, out := slopes[n%im.C%len(slopes)], y[n*im.Lanes:][:im.Lanes]
		for l, v := range x[n*im.Lanes:][:im.Lanes] {
			if v <= 0 {
				v *= slope
			}
			out[l] = v
		}
	}
	w.Sync()
}

// RowsPReLU is PReLU for rows of the batch.
func (w *Worker) RowsPReLU(im Image, rows int, slopes, x, y []float32) {
	from, to := w.share(rows * im.H * im.W)
	for n := from; n < to; n++ {
		out := y[n*im.Depth:]
		for c, v := range x[n*im.Depth:][:im.C] {
			if v <= 0 {
				v *= slopes[c%len(slopes)]
			}
			out[c] = v
		}
	}
	w.Sync()
}

// PReLUBack turns dy into the gradient of x, in place, and writes the gradients of the slopes. dSlopes is empty for a
// frozen layer. sums has a value for each channel.
func (w *Worker) PReLUBack(im Image, rows int, slopes, x, dy, dSlopes, sums []float32) {
	from, to := w.share(im.C)
	for c := from; c < to; c++ {
		slope, sum := slopes[c%len(slopes)], 0.0
		for px := range im.H * im.W {
			at := (px*im.C + c) * im.Lanes
			d := dy[at:][:rows]
			for l, v := range x[at:][:rows] {
				if v <= 0 {
					sum += float64(d[l]) * float64(v)
					d[l] *= slope
				}
			}
		}
		sums[c] = float32(sum)
	}
	w.Sync()
	if w.ID == 0 && len(dSlopes) > 0 {
		clear(dSlopes)
		for c, v := range sums[:im.C] {
			dSlopes[c%len(slopes)] += v
		}
	}
	w.Sync()
}
