package kernel

// RowsImport writes rows of samples, [rows][C][H][W], into images by rows, within a border that is zero and stays so.
func (w *Worker) RowsImport(dst []float32, im Image, b Border, x []float32, rows int) {
	plane, around := im.H*im.W, b.Around(im)
	from, to := w.share(rows * im.H)
	for n := from; n < to; n++ {
		r, h := n/im.H, n%im.H
		src := x[r*im.C*plane+h*im.W:]
		line := dst[r*around.Row()+((h+b.Top)*around.W+b.Left)*im.Depth:]
		if im.C == 1 && im.Depth == 1 {
			copy(line[:im.W], src)
			continue
		}
		w.Transpose(line, im.Depth, src, plane, im.C, im.W)
	}
	w.tr = transposeArgs{} // the rows, which it would keep alive until the next call
}

// RowsExport writes images by rows as rows of samples, [rows][C][H][W].
func (w *Worker) RowsExport(dst, x []float32, im Image, rows int) {
	plane := im.H * im.W
	for r := range rows {
		if plane == 1 {
			copy(dst[r*im.C:][:im.C], x[r*im.Row():])
			continue
		}
		w.Transpose(dst[r*im.C*plane:], plane, x[r*im.Row():], im.Depth, plane, im.C)
	}
	w.tr = transposeArgs{}
}

// RowsFlatten makes vectors of images: channels before pixels, as PyTorch has them, or pixels before channels.
func (w *Worker) RowsFlatten(dst []float32, out Image, x []float32, im Image, rows int, permuted bool) {
	plane := im.H * im.W
	from, to := w.share(rows)
	for r := from; r < to; r++ {
		d, s := dst[r*out.Row():], x[r*im.Row():]
		if !permuted {
			w.Transpose(d, plane, s, im.Depth, plane, im.C)
			continue
		}
		for px := range plane {
			copy(d[px*im.C:][:im.C], s[px*im.Depth:])
		}
	}
}

// RowsJoin copies the channels of every pixel of x to those from first on of a wider image.
func (w *Worker) RowsJoin(dst []float32, out Image, x []float32, im Image, rows, first int) {
	from, to := w.share(rows * im.H * im.W)
	for px := from; px < to; px++ {
		copy(dst[px*out.Depth+first:][:im.C], x[px*im.Depth:])
	}
}

// RowsSubsample is Subsample.
func (w *Worker) RowsSubsample(dst []float32, out Image, x []float32, in Image, rows, stride int) {
	plane, first := out.H*out.W, (out.C-in.C)/2
	from, to := w.share(rows * plane)
	for n := from; n < to; n++ {
		r, px := n/plane, n%plane
		d := dst[n*out.Depth:][:out.Depth]
		clear(d)
		copy(d[first:][:in.C], x[r*in.Row()+(px/out.W*in.W+px%out.W)*stride*in.Depth:])
	}
}

// RowsAffine is y = scale x + offset a channel, through max(0, y) with relu.
func (w *Worker) RowsAffine(im Image, rows int, x, y, scale, offset []float32, relu bool) {
	f := w.f.affineEach
	if relu {
		f = w.f.affineEachRelu
	}
	from, to := w.share(rows * im.H * im.W)
	e := &w.elem
	e.n = int64(4 * im.Depth)
	for px := from; px < to; px++ {
		e.dst, e.a, e.b, e.c = p(y, px*im.Depth), p(x, px*im.Depth), p(scale, 0), p(offset, 0)
		f(e)
	}
	w.Sync()
}

// RowsDepthwise is DepthwiseForward; channels is how many there are, g.In a row as vectors.
func (w *Worker) RowsDepthwise(g *Pool, channels, rows int, x, weights, y []float32) {
	pixel, plane := g.In.Pixel(), g.OH*g.OW
	from, to := w.share(rows * plane)
	a := &w.tap
	a.bytes, a.w = int64(4*pixel), p(weights, 0)
	for n := from; n < to; {
		r, px := n/plane, n%plane
		taps, pixels := w.run(g, px, min(plane, px+to-n))
		if taps == 0 {
			clear(y[n*pixel:][:pixels*pixel])
		} else {
			for t := range taps { // weights are not padded as pixels are
				w.woffs[t] = w.woffs[t] / int64(g.In.C) * int64(channels)
			}
			a.x, a.y = p(x, r*g.In.H*g.In.W*pixel), p(y, n*pixel)
			w.f.weighted(a)
		}
		for range pixels {
			w.rowAfter(y[n*pixel:], 0, pixel)
			n++
		}
	}
	w.Sync()
}
