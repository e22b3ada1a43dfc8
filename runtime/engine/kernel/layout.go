package kernel

import "unsafe"

// Transpose writes src, rows x columns with ss values from row to row, as dst, columns x rows with ds values. The caller's
// thread does all of it.
func (w *Worker) Transpose(dst []float32, ds int, src []float32, ss, rows, columns int) {
	if rows == 0 || columns == 0 {
		return
	}
	_, _ = src[(rows-1)*ss+columns-1], dst[(columns-1)*ds+rows-1]
	n := w.square
	r := 0
	for ; r+n <= rows; r += n {
		c := 0
		for ; c+n <= columns; c += n {
			w.tr = transposeArgs{dst: p(dst, c*ds+r), src: p(src, r*ss+c), ds: int64(4 * ds), ss: int64(4 * ss)}
			w.f.transpose(&w.tr)
		}
		transposeEdge(dst, ds, src, ss, r, r+n, c, columns)
	}
	transposeEdge(dst, ds, src, ss, r, rows, 0, columns)
}

func transposeEdge(dst []float32, ds int, src []float32, ss, r0, r1, c0, c1 int) {
	for r := r0; r < r1; r++ {
		for c := c0; c < c1; c++ {
			dst[c*ds+r] = src[r*ss+c]
		}
	}
}

// Image is the shape of an activation in memory.
type Image struct{ C, H, W, Lanes int }

// Len is the number of values.
func (i Image) Len() int { return i.C * i.H * i.W * i.Lanes }

// Pixel is the number of values of one pixel.
func (i Image) Pixel() int { return i.C * i.Lanes }

// Border is how many pixels of zeros stand around an image in memory.
type Border struct{ Top, Bottom, Left, Right int }

// Import writes rows of samples, [rows][C][H][W], into an activation with a border, which is zero and stays so; lanes beyond
// rows become zero.
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

// Flatten reorders an image [H][W][C] to a vector in PyTorch's order [C][H][W]; Unflatten is the way back, adding to dst
// where add is set.
func (w *Worker) Flatten(dst, x []float32, im Image) {
	w.reorder(im, func(chw, hwc int) { copy(dst[chw:chw+im.Lanes], x[hwc:hwc+im.Lanes]) })
}

// Unflatten is the inverse of Flatten.
func (w *Worker) Unflatten(dst, x []float32, im Image) {
	w.reorder(im, func(chw, hwc int) { copy(dst[hwc:hwc+im.Lanes], x[chw:chw+im.Lanes]) })
}

func (w *Worker) reorder(im Image, move func(chw, hwc int)) {
	plane := im.H * im.W
	from, to := w.share(plane)
	for px := from; px < to; px++ {
		for c := range im.C {
			move((c*plane+px)*im.Lanes, (px*im.C+c)*im.Lanes)
		}
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
		d, s := dst[px*im.Pixel():][:im.Pixel()], x[(px*total+first)*im.Lanes:][:im.Pixel()]
		if !add {
			copy(d, s)
			continue
		}
		w.elem = elementArgs{dst: unsafe.Pointer(&d[0]), a: unsafe.Pointer(&d[0]), b: unsafe.Pointer(&s[0]), n: int64(4 * len(d))}
		w.f.add(&w.elem)
	}
}
