package kernel

import "unsafe"

// Blocks of the general matrix product, in whole tiles of any height: a block of A stays in the second-level cache.
const (
	gemmM = 192
	gemmN = 2048
)

// GemmLen is the number of values of scratch that Gemm needs, whatever the blocks.
func GemmLen() int { return (gemmM + gemmN) * mostDepth }

// depth is how many inner steps Gemm's panels have here.
func (s *Set) depth() int {
	if s.Blocks.Depth > 0 {
		return s.Blocks.Depth
	}
	return usualDepth
}

// Matrix is a row-major view: Stride values from row to row. T reads it transposed.
type Matrix struct {
	Data   []float32
	Stride int
	T      bool
}

// Gemm computes C = A B, or C += A B where add is set: A is m x k, B k x n and C m x n after transposition. It is for
// one worker.
func (w *Worker) Gemm(m, n, k int, a, b Matrix, c []float32, ldc int, add bool, scratch []float32) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 && !add {
		for i := range m {
			clear(c[i*ldc:][:n])
		}
	}
	wide, depth := 16*w.vectors, w.depth()
	packedA, packedB := scratch[:gemmM*depth], scratch[gemmM*depth:]
	for j := 0; j < n; j += gemmN {
		nn := min(gemmN, n-j)
		for l := 0; l < k; l += depth {
			kk := min(depth, k-l)
			w.packB(packedB, b, l, j, kk, nn, wide)
			for i := 0; i < m; i += gemmM {
				mm := min(gemmM, m-i)
				w.packA(packedA, a, i, l, mm, kk)
				w.multiply(mm, nn, kk, wide, packedA, packedB, c[i*ldc+j:], ldc, add || l > 0)
			}
		}
	}
}

// packA writes panels of tile rows: [m/tile][k][tile].
func (w *Worker) packA(dst []float32, a Matrix, i0, k0, m, k int) {
	tile := w.height()
	for i := 0; i < m; i += tile {
		rows := min(tile, m-i)
		panel := dst[i*k:][:tile*k]
		if rows < tile {
			clear(panel)
		}
		if a.T {
			for l := range k {
				copy(panel[l*tile:][:rows], a.Data[(k0+l)*a.Stride+i0+i:])
			}
			continue
		}
		w.Transpose(panel, tile, a.Data[(i0+i)*a.Stride+k0:], a.Stride, rows, k)
	}
}

// packB writes panels of wide columns: [n/wide][k][wide].
func (w *Worker) packB(dst []float32, b Matrix, k0, j0, k, n, wide int) {
	for j := 0; j < n; j += wide {
		columns := min(wide, n-j)
		panel := dst[j*k:][:wide*k]
		if columns < wide {
			clear(panel)
		}
		if b.T {
			w.Transpose(panel, wide, b.Data[(j0+j)*b.Stride+k0:], b.Stride, columns, k)
			continue
		}
		for l := range k {
			copy(panel[l*wide:][:columns], b.Data[(k0+l)*b.Stride+j0+j:])
		}
	}
}

// multiply runs the tiles of a block, both of whose matrices are packed.
func (w *Worker) multiply(m, n, k, wide int, a, b, c []float32, ldc int, add bool) {
	tile := w.height()
	x := &w.prod
	x.rs, x.ks, x.ldb, x.k = 4, int64(4*tile), int64(4*wide), int64(k)
	x.middle, x.am, x.bm, x.outer, x.ao, x.bo, x.relu = 1, 0, 0, 1, 0, 0, 0
	if x.c2 = 64; w.square == 8 {
		x.c2 = 32
	}
	x.ahead = int64(4 * tile * ldc) // the tile below: C is read where it lies, which no cache beside the core may hold
	f := w.f.product[tile][w.vectors]
	for j := 0; j < n; j += wide {
		for i := 0; i < m; i += tile {
			rows := min(tile, m-i)
			x.a, x.b, x.rows = p(a, i*k), p(b, j*k), int64(rows)
			if j+wide <= n {
				x.c, x.ldc, x.mode = p(c, i*ldc+j), int64(4*ldc), fromZero
				if add {
					x.mode = fromC
				}
				f(x)
				continue
			}
			x.c, x.ldc, x.mode = unsafe.Pointer(&w.edge), int64(4*wide), fromZero
			if add { // onto what is there, as everywhere else, so that no block changes the order of a sum
				x.mode = fromC
				for r := range rows {
					copy(w.edge[r*wide:], c[(i+r)*ldc+j:][:n-j])
				}
			}
			f(x)
			for r := range rows {
				copy(c[(i+r)*ldc+j:][:n-j], w.edge[r*wide:])
			}
		}
	}
	x.ahead = 0
}

// After is what a convolution or a dense layer does to its outputs while they are in the cache: what inference folds of
// the layers behind it. The arithmetic is that of those layers, and so are the bits.
type After struct {
	Scale, Offset []float32 // of a batch norm, see NormScale, a value a channel; nil: none
	ReLU          bool      // behind the batch norm
	Top           float32   // above 0: outputs are cut to 0 and Top, behind all
}

// lanesAfter finishes channels from (included) to (not) of a pixel.
func (w *Worker) lanesAfter(y []float32, channels, lanes, px, from, to int) {
	s := w.after
	if s == nil || from >= to {
		return
	}
	at := (px*channels + from) * lanes
	if s.Scale != nil {
		a := &w.chn
		a.x, a.y, a.p, a.q, a.mask = p(y, at), p(y, at), p(s.Scale, from), p(s.Offset, from), nil
		a.channels, a.row, a.pixels = int64(to-from), int64(4*lanes), 1
		if s.ReLU {
			w.f.affineRelu(a)
		} else {
			w.f.affine(a)
		}
	}
	w.cut(p(y, at), (to-from)*lanes)
}

// cut bounds n values by 0 and the After's top.
func (w *Worker) cut(y unsafe.Pointer, n int) {
	if w.after.Top > 0 {
		e := &w.elem
		e.dst, e.a, e.b, e.c, e.n, e.s[0] = y, y, nil, nil, int64(4*n), w.after.Top
		w.f.clamp(e)
	}
}

// rowAfter finishes n values, in whole vectors, of a pixel of a row, from channel first on.
func (w *Worker) rowAfter(y []float32, first, n int) {
	s := w.after
	if s == nil || n == 0 {
		return
	}
	if s.Scale != nil {
		e := &w.elem
		e.dst, e.a, e.b, e.c, e.n = p(y, 0), p(y, 0), p(s.Scale, first), p(s.Offset, first), int64(4*n)
		if s.ReLU {
			w.f.affineEachRelu(e)
		} else {
			w.f.affineEach(e)
		}
	}
	w.cut(p(y, 0), n)
}

// allAfter finishes this worker's pixels of a whole image, where no pixel was at hand as it was ready.
func (w *Worker) allAfter(im Image, y []float32) {
	if w.after == nil {
		return
	}
	from, to := w.share(im.H * im.W)
	for px := from; px < to; px++ {
		w.lanesAfter(y, im.C, im.Lanes, px, 0, im.C)
	}
	w.Sync()
}

// Then has the next product finish its outputs as s says; nil: not at all.
func (w *Worker) Then(s *After) { w.after = s }

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
	if im.Fold > 0 {
		w.importFolded(dst, im, x, rows)
		return
	}
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

// importFolded is Import for a sequence with several positions in each pixel.
func (w *Worker) importFolded(dst []float32, im Image, x []float32, rows int) {
	from, to := w.share(im.H)
	span, length := im.Span(), im.Positions()
	for h := from; h < to; h++ {
		for c := range im.C {
			out := dst[h*im.Pixel()+c*im.Lanes:][:im.Lanes]
			for l := range out {
				if r := l % span; r < rows {
					out[l] = x[(r*im.C+c)*length+h*im.Fold+l/span]
				} else {
					out[l] = 0
				}
			}
		}
	}
}

// exportFolded is Export for a sequence with several positions in each pixel.
func exportFolded(dst []float32, x []float32, im Image, rows int) {
	span, length := im.Span(), im.Positions()
	for r := range rows {
		for c := range im.C {
			for t := range length {
				dst[(r*im.C+c)*length+t] = x[t/im.Fold*im.Pixel()+c*im.Lanes+t%im.Fold*span+r]
			}
		}
	}
}

// Export writes an activation as rows of samples, [rows][C][H][W].
func (w *Worker) Export(dst []float32, x []float32, im Image, rows int) {
	if im.Fold > 0 {
		exportFolded(dst, x, im, rows)
		return
	}
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
