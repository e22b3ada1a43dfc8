package kernel

import "github.com/disdel/disdel/runtime/engine/native/plan"

// source is the image that a pass back reads rows of: values, or halves that are widened into a window a few rows at a
// time.
type source struct {
	values  []float32
	first   int // row that values begin with
	channel int // of a single pixel, likewise
	halves  Halves
	window  []float32
}

// byChannels tells that a single pixel is widened some channels at a time.
func (s *source) byChannels(c *Conv) bool { return s.halves != nil && c.Single() }

// open has rows at hand that the outputs from i0 (included) to i1 (not) of a convolution were computed of. Of halves
// this is this worker's share of them: all wait for each other before they read.
func (w *Worker) open(s *source, c *Conv, i0, i1 int) {
	if s.halves == nil || c.Single() {
		return
	}
	from, to := c.InputRows(i0, i1)
	row := c.In.W * c.In.Pixel()
	s.first, s.values = from, s.window[:(to-from)*row]
	w.Widen(s.values, s.halves[from*row:])
	if c.Few() { // which has no other reason to wait
		w.Sync()
	}
}

// openChannels has channels from (included) to (not) of a single pixel at hand, once all have read those before.
func (w *Worker) openChannels(s *source, c *Conv, from, to int) {
	if !s.byChannels(c) {
		return
	}
	w.Sync()
	wide := c.In.Lanes
	s.channel, s.values = from, s.window[:(to-from)*wide]
	w.Widen(s.values, s.halves[from*wide:])
	w.Sync()
}

// shut waits until all have read what is open.
func (w *Worker) shut(s *source) {
	if s.halves != nil {
		w.Sync()
	}
}

// Rounding has the products to come round their weights to bfloat16, or not. Callers see to the other operands, and to
// the weights of those that go by their definition: these products may read the upper halves of values alone.
func (w *Worker) Rounding(on bool) { w.rounds = on }

// BackWeightsHalves is BackWeights of an input that was shortened; scratch has the WindowLen more.
func (w *Worker) BackWeightsHalves(c *Conv, x Halves, dy, dw, scratch []float32) {
	n := c.ScratchLen()
	w.backWeightsOf(c, source{halves: x, window: scratch[n:]}, dy, dw, scratch[:n])
}

// MaxPoolBackHalves is MaxPoolBack of an input and an output that were shortened; window has the pool's WindowLen.
func (w *Worker) MaxPoolBackHalves(g *Pool, x, y Halves, dy, dx, window []float32) {
	from, bytes := w.depths(g.In)
	n, pixel := int(bytes/4), g.In.Pixel()
	row := g.In.W * pixel
	out := window[:g.OW*pixel]
	in := window[len(out):]
	a := &w.tap
	a.bytes = bytes
	for i := range g.OH {
		r0, r1 := g.InputRows(i)
		if n == 0 || r0 >= r1 {
			continue
		}
		w.widen(in[from:], x[r0*row+from:], (r1-r0)*g.In.W, n, pixel, pixel)
		w.widen(out[from:], y[i*len(out)+from:], g.OW, n, pixel, pixel)
		a.x, a.dx = p(in, from), p(dx, r0*row+from)
		for j := range g.OW {
			taps := w.gather(g, i, j)
			if taps == 0 {
				continue
			}
			for t := range taps {
				w.offs[t] -= int64(4 * r0 * row)
			}
			a.y, a.dy = p(out, j*pixel+from), p(dy, (i*g.OW+j)*pixel+from)
			w.f.maxPoolBack(a)
		}
	}
	w.Sync()
}

// DepthwiseBackWeightsHalves is DepthwiseBackWeights of an input that was shortened; scratch has the pool's
// DepthwiseHalvesLen.
func (w *Worker) DepthwiseBackWeightsHalves(g *Pool, x Halves, dy, dw, scratch []float32) {
	from, to := w.channels(g.In.C)
	if from == to {
		return
	}
	all, wide := g.In.C*lanes, g.In.Lanes
	row := g.In.W * g.In.Pixel()
	sums, window := scratch[:g.KW*all], scratch[g.KW*all:]
	a := &w.chn
	a.row, a.lanes = int64(4*wide), int64(4*g.Active())
	a.xPixel, a.yPixel = int64(4*g.SW*g.In.Pixel()), int64(4*g.In.Pixel())
	for r := range g.KH {
		for q := range g.KW {
			clear(sums[q*all+from*lanes : q*all+to*lanes])
		}
		i0, i1 := outputs(0, g.OH, g.SH, r*g.DH-g.Top, g.In.H)
		for i := i0; i < i1; i++ {
			h := i*g.SH + r*g.DH - g.Top
			w.widen(window[from*wide:], x[h*row+from*wide:], g.In.W, (to-from)*wide, g.In.Pixel(), g.In.Pixel())
			for q := range g.KW {
				if j0, j1 := outputs(0, g.OW, g.SW, q*g.DW-g.Left, g.In.W); j0 < j1 {
					a.pixels = int64(j1 - j0)
					w.dotRow(g.In, window, dy, sums[q*all:], j0*g.SW+q*g.DW-g.Left, i*g.OW+j0, from, to)
				}
			}
		}
		for q := range g.KW {
			for c := from; c < to; c++ {
				dw[(r*g.KW+q)*g.In.C+c] = float32(total(sums[q*all+c*lanes:][:lanes]))
			}
		}
	}
}

// NormBackHalves is NormBack of an input that was shortened, where dy is behind the ReLU already; window has
// NormWindowLen.
func (w *Worker) NormBackHalves(n *Norm, s *NormState, x Halves, dy, dGamma, dBeta, window []float32) {
	deep := plan.NormPixels(n.Image)
	w.normSums(n, s, x, dy, window, deep)
	w.slopes(n, s, dGamma, dBeta)
	from, to := w.channels(n.C)
	if from == to {
		w.Sync()
		return
	}
	pixels, pixel, first := n.H*n.W, n.Pixel(), from*n.Lanes
	window = window[first*deep:] // its own part, which others do not write
	if to-from < n.C {           // what it has of one pixel and of the next do not lie side by side
		deep = 1
	}
	a := &w.chn
	a.p, a.q, a.r, a.mask = p(s.Scale, from), p(s.Offset, from), p(s.Third, from), p(s.Mask, 0)
	a.channels, a.row = int64(to-from), int64(4*n.Lanes)
	for px := 0; px < pixels; px += deep {
		some := min(deep, pixels-px)
		w.widen(window, x[px*pixel+first:], 1, (some-1)*pixel+(to-from)*n.Lanes, 0, 0)
		a.x, a.y, a.pixels = p(window, 0), p(dy, px*pixel+first), int64(some)
		w.f.normBack(a)
	}
	w.Sync()
}

// normSums sums dy and dy (x - mean) of this worker's channels, some pixels of some channels at a time.
func (w *Worker) normSums(n *Norm, s *NormState, x Halves, dy, window []float32, deep int) {
	from, to := w.channels(n.C)
	pixels, pixel := n.H*n.W, n.Pixel()
	a := &w.chn
	a.row, a.lanes, a.yPixel, a.mask = int64(4*n.Lanes), int64(4*plan.Padded(n.Rows)), int64(4*pixel), nil
	for c := from; c < to; {
		some, kernel := w.block, w.f.normSums[0]
		if c+some > to {
			some, kernel = 1, w.f.normSums[1]
		}
		width, sums := some*n.Lanes, s.Sums[c*2*lanes:][:some*2*lanes]
		part := window[c*n.Lanes*deep:][:width*deep]
		clear(sums)
		a.p, a.out, a.xPixel = p(s.Mean, c), p(sums, 0), int64(4*width)
		for px := 0; px < pixels; px += deep {
			count, at := min(deep, pixels-px), px*pixel+c*n.Lanes
			w.widen(part, x[at:], count, width, width, pixel)
			a.x, a.y, a.pixels = p(part, 0), p(dy, at), int64(count)
			a.z = a.y
			kernel(a)
		}
		c += some
	}
}
