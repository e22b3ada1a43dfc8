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
