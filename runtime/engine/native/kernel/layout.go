package kernel

import "unsafe"

// Transpose writes src, rows x columns with ss values from row to row, as dst, columns x rows with ds values. The
// caller's thread does all of it.
func (w *Worker) Transpose(dst []float32, ds int, src []float32, ss, rows, columns int) {
	if rows == 0 || columns == 0 {
		return
	}
	_, _ = src[(rows-1)*ss+columns-1], dst[(columns-1)*ds+rows-1]
	r := w.transposeStrips(dst, ds, src, ss, 0, rows, columns, w.square, w.f.transpose)
	r = w.transposeStrips(dst, ds, src, ss, r, rows, columns, 8, w.f.transpose8)
	transposeEdge(dst, ds, src, ss, r, rows, 0, columns)
}

// transposeStrips transposes strips of n rows from row r on, as long as there are n, and returns the first row left.
func (w *Worker) transposeStrips(dst []float32, ds int, src []float32, ss, r, rows, columns, n int,
	block func(*transposeArgs),
) int {
	for ; r+n <= rows; r += n {
		c := 0
		for ; c+n <= columns; c += n {
			w.tr = transposeArgs{dst: p(dst, c*ds+r), src: p(src, r*ss+c), ds: int64(4 * ds), ss: int64(4 * ss)}
			block(&w.tr)
		}
		transposeEdge(dst, ds, src, ss, r, r+n, c, columns)
	}
	return r
}

func transposeEdge(dst []float32, ds int, src []float32, ss, r0, r1, c0, c1 int) {
	for r := r0; r < r1; r++ {
		for c := c0; c < c1; c++ {
			dst[c*ds+r] = src[r*ss+c]
		}
	}
}

// Import writes rows of samples, [rows][C][H][W], into an activation with a border, which is zero and stays so; lanes
// beyond rows become zero.
func (w *Worker) Import(dst []float32, im Image, b Border, x []float32, rows int) {
	plane, width := im.H*im.W, im.W+b.Left+b.Right
	from, to := w.share(im.H)
	for h := from; h < to; h++ {
		for c := range im.C {
			first := ((h+b.Top)*width+b.Left)*im.Pixel() + c*im.Lanes
			w.Transpose(dst[first:], im.Pixel(), x[c*plane+h*im.W:], im.C*plane, rows, im.W)
			if rows < im.Lanes {
				for p := range im.W {
					clear(dst[first+p*im.Pixel()+rows:][:im.Lanes-rows])
				}
			}
		}
	}
	w.tr = transposeArgs{} // the rows, which it would keep alive until the next call
}

// Export writes an activation as rows of samples, [rows][C][H][W].
func (w *Worker) Export(dst []float32, x []float32, im Image, rows int) {
	plane := im.H * im.W
	for h := range im.H {
		for c := range im.C {
			w.Transpose(dst[c*plane+h*im.W:], im.C*plane, x[h*im.W*im.Pixel()+c*im.Lanes:], im.Pixel(), im.W, rows)
		}
	}
}

// Flatten reorders an image [H][W][C] to a vector in PyTorch's order [C][H][W].
func (w *Worker) Flatten(dst, x []float32, im Image) {
	plane := im.H * im.W
	from, to := w.share(plane)
	for px := from; px < to; px++ {
		for c := range im.C {
			copy(dst[(c*plane+px)*im.Lanes:][:im.Lanes], x[(px*im.C+c)*im.Lanes:])
		}
	}
}

// Unflatten is the inverse of Flatten; with add set it adds to dst.
func (w *Worker) Unflatten(dst, x []float32, im Image, add bool) {
	plane := im.H * im.W
	from, to := w.share(plane)
	for px := from; px < to; px++ {
		for c := range im.C {
			w.move(dst[(px*im.C+c)*im.Lanes:][:im.Lanes], x[(c*plane+px)*im.Lanes:], add)
		}
	}
}

// move copies or adds.
func (w *Worker) move(dst, src []float32, add bool) {
	if !add {
		copy(dst, src)
		return
	}
	w.elem = elementArgs{
		dst: unsafe.Pointer(&dst[0]), a: unsafe.Pointer(&dst[0]), b: unsafe.Pointer(&src[0]),
		n: int64(4 * len(dst)),
	}
	w.f.add(&w.elem)
}

// Subsample takes every stride-th pixel of x and centres its channels among those of dst, the others being zero:
// ResNet's shortcut of option A.
func (w *Worker) Subsample(dst []float32, out Image, x []float32, in Image, stride int) {
	from, to := w.share(out.H * out.W)
	first := (out.C - in.C) / 2 * out.Lanes
	for px := from; px < to; px++ {
		d := dst[px*out.Pixel():][:out.Pixel()]
		clear(d)
		copy(d[first:], x[((px/out.W*in.W)+px%out.W)*stride*in.Pixel():][:in.Pixel()])
	}
}

// SubsampleBack adds the gradient dy to dx.
func (w *Worker) SubsampleBack(dx []float32, in Image, dy []float32, out Image, stride int) {
	from, to := w.share(out.H * out.W)
	first := (out.C - in.C) / 2 * out.Lanes
	for px := from; px < to; px++ {
		w.move(dx[((px/out.W*in.W)+px%out.W)*stride*in.Pixel():][:in.Pixel()], dy[px*out.Pixel()+first:], true)
	}
}

// Join copies an image into the channels from first on of a wider one; Split copies or adds them back.
func (w *Worker) Join(dst []float32, total int, x []float32, im Image, first int) {
	from, to := w.share(im.H * im.W)
	for px := from; px < to; px++ {
		copy(dst[(px*total+first)*im.Lanes:][:im.Pixel()], x[px*im.Pixel():])
	}
}

// Split is the inverse of Join.
func (w *Worker) Split(dst []float32, im Image, x []float32, total, first int, add bool) {
	from, to := w.share(im.H * im.W)
	for px := from; px < to; px++ {
		w.move(dst[px*im.Pixel():][:im.Pixel()], x[(px*total+first)*im.Lanes:], add)
	}
}
