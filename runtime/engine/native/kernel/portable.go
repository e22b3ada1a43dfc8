package kernel

import (
	"math"
	"unsafe"

	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// portable computes everything in plain Go, for processors without kernels of their own. It also says what the assembly
// has to do: tests compare the two.
func portable() Set {
	var f functions
	for rows := 1; rows <= 8; rows++ {
		f.product[rows] = [3]func(*productArgs){
			1: func(a *productArgs) { product(a, rows, 1) },
			2: func(a *productArgs) { product(a, rows, 2) },
		}
	}
	f.correlate, f.line, f.transpose, f.transpose8 = correlate, line, transposeBlock(lanes), transposeBlock(8)
	elements(&f)
	channels(&f)
	taps(&f)
	portableHalves(&f)
	f.winograd = portableWinograd()
	return Set{
		Name: "portable", tiles: []int{8, 6, 4, 2}, line: []int{8, 6, 4, 2},
		vectors: 2, pairs: [2]int{3, 6}, step: 4 * lanes, block: 1,
		square: 16, f: f, exact: exactPortable(), peak: func(int) {},
	}
}

const lanes = 16 // values that every size is a multiple of

func ptr(p unsafe.Pointer, bytes int64) unsafe.Pointer { return unsafe.Add(p, bytes) }

func get(p unsafe.Pointer, bytes int64) float32 { return *(*float32)(unsafe.Add(p, bytes)) }

func vector(p unsafe.Pointer, bytes int64) *[lanes]float32 {
	return (*[lanes]float32)(unsafe.Add(p, bytes))
}

func product(a *productArgs, rows, vectors int) {
	var acc [8][2][lanes]float32
	for i := range min(rows, int(a.rows)) {
		for j := range vectors {
			c := vector(a.c, int64(i)*a.ldc+int64(j)*a.c2)
			switch a.mode {
			case fromC:
				acc[i][j] = *c
			case fromBias:
				for l := range c {
					acc[i][j][l] = get(a.bias, 4*int64(i))
				}
			case fromVector:
				acc[i][j] = *vector(a.bias, int64(j)*4*lanes)
			}
		}
	}
	var ao, bo int64
	for range a.outer {
		for range a.middle {
			for range a.k {
				for i := range min(rows, int(a.rows)) {
					w := get(a.a, ao+int64(i)*a.rs)
					for j := range vectors {
						b, sum := vector(a.b, bo+int64(j)*(4*lanes+a.b2)), &acc[i][j]
						for l := range b {
							sum[l] += w * b[l]
						}
					}
				}
				ao, bo = ao+a.ks, bo+a.ldb
			}
			ao, bo = ao+a.am, bo+a.bm
		}
		ao, bo = ao+a.ao, bo+a.bo
	}
	for i := range min(rows, int(a.rows)) {
		for j := range vectors {
			c := vector(a.c, int64(i)*a.ldc+int64(j)*a.c2)
			for l, v := range acc[i][j] {
				if a.relu != 0 && v < 0 {
					v = 0
				}
				c[l] = v
			}
		}
	}
}

func line(a *productArgs) {
	for block := range int64(lineBlocks) {
		one := *a
		one.b, one.c, one.rows, one.rs = ptr(a.b, block*a.c2), ptr(a.c, block*4*lanes), 1, 0
		if a.mode == fromVector {
			one.bias = ptr(a.bias, block*4*lanes)
		}
		product(&one, 1, 1)
	}
}

func correlate(a *productArgs) {
	var ao, bo int64
	for range a.middle {
		for range a.k {
			for i := range int64(3) {
				x := vector(a.a, ao+i*a.rs)
				for j := range int64(6) {
					dy, sum := vector(a.b, bo+j*a.ldb), vector(a.c, (i*6+j)*4*lanes)
					for l := range sum {
						sum[l] += x[l] * dy[l]
					}
				}
			}
			ao, bo = ao+4*lanes, bo+4*lanes
		}
		ao, bo = ao+a.am, bo+a.bm
	}
}

func transposeBlock(side int64) func(*transposeArgs) {
	return func(a *transposeArgs) {
		for r := range side {
			for c := range side {
				*(*float32)(ptr(a.dst, c*a.ds+4*r)) = get(a.src, r*a.ss+4*c)
			}
		}
	}
}

func slice(p unsafe.Pointer, bytes int64) []float32 {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*float32)(p), bytes/4)
}

func elements(f *functions) {
	unary := func(op func(a, b float32, s *[12]float32) float32) func(*elementArgs) {
		return func(e *elementArgs) {
			dst, a, b := slice(e.dst, e.n), slice(e.a, e.n), slice(e.b, e.n)
			for i, v := range a {
				var w float32
				if b != nil {
					w = b[i]
				}
				dst[i] = op(v, w, &e.s)
			}
		}
	}
	positive := func(v float32) float32 {
		if v < 0 {
			return 0
		}
		return v
	}
	f.add = unary(func(a, b float32, _ *[12]float32) float32 { return a + b })
	f.addRelu = unary(func(a, b float32, _ *[12]float32) float32 { return positive(a + b) })
	f.relu = unary(func(a, _ float32, _ *[12]float32) float32 { return positive(a) })
	f.clamp = unary(func(a, _ float32, s *[12]float32) float32 { return min(positive(a), s[0]) })
	f.reluBack = unary(func(a, b float32, _ *[12]float32) float32 {
		if b > 0 {
			return a
		}
		return 0
	})
	f.clampBack = unary(func(a, b float32, s *[12]float32) float32 {
		if b > 0 && b < s[0] {
			return a
		}
		return 0
	})
	f.scale = unary(func(a, _ float32, s *[12]float32) float32 { return s[0] * a })
	f.affineEach = affineEach(func(v float32) float32 { return v })
	f.affineEachRelu = affineEach(positive)
	f.squares = func(e *elementArgs) {
		var sum [lanes]float32
		for i, v := range slice(e.a, e.n) {
			sum[i%lanes] += v * v
		}
		copy(slice(e.dst, 4*lanes), sum[:])
	}
	exponents(f)
	recurrents(f)
	layerNorms(f)
	updates(f)
}

func affineEach(end func(float32) float32) func(*elementArgs) {
	return func(e *elementArgs) {
		dst, a, b, c := slice(e.dst, e.n), slice(e.a, e.n), slice(e.b, e.n), slice(e.c, e.n)
		for i, v := range a {
			dst[i] = end(b[i]*v + c[i])
		}
	}
}

func updates(f *functions) {
	f.sgd = func(e *elementArgs) {
		w, g, s := slice(e.dst, e.n), slice(e.a, e.n), &e.s
		for i := range w {
			w[i] += s[0] * (s[2]*g[i] + s[1]*w[i])
		}
	}
	f.momentum = func(e *elementArgs) {
		w, grad, v, s := slice(e.dst, e.n), slice(e.a, e.n), slice(e.b, e.n), &e.s
		for i := range w {
			g := s[2]*grad[i] + s[1]*w[i]
			v[i] = s[3]*v[i] + g
			w[i] += s[0] * (s[4]*v[i] + s[5]*g)
		}
	}
	f.adam = func(e *elementArgs) {
		w, grad, m, v, s := slice(e.dst, e.n), slice(e.a, e.n), slice(e.b, e.n), slice(e.c, e.n), &e.s
		for i := range w {
			g := s[2]*grad[i] + s[1]*w[i]
			m[i] = s[3]*m[i] + s[4]*g
			v[i] = s[5]*v[i] + s[6]*g*g
			w[i] = s[9]*w[i] + s[0]*m[i]/(float32(math.Sqrt(float64(v[i])))*s[7]+s[8])
		}
	}
}

func channels(f *functions) {
	rows := func(op func(a *channelArgs, c int64, x, y, mask float32) float32) func(*channelArgs) {
		return func(a *channelArgs) {
			var at int64
			for range a.pixels {
				for c := range a.channels {
					for l := int64(0); l < a.row; l += 4 {
						m := float32(1)
						if a.mask != nil {
							m = get(a.mask, l)
						}
						y := (*float32)(ptr(a.y, at+l))
						*y = op(a, 4*c, get(a.x, at+l), *y, m)
					}
					at += a.row
				}
			}
		}
	}
	f.affine = rows(func(a *channelArgs, c int64, x, _, _ float32) float32 { return get(a.p, c)*x + get(a.q, c) })
	f.affineRelu = rows(func(a *channelArgs, c int64, x, _, _ float32) float32 {
		if v := get(a.p, c)*x + get(a.q, c); !(v < 0) {
			return v
		}
		return 0
	})
	f.normBack = rows(func(a *channelArgs, c int64, x, y, m float32) float32 {
		return (get(a.p, c)*y + get(a.q, c)*x + get(a.r, c)) * m
	})
	both := func(sums int64, op func(a *channelArgs, x, y, z int64, lane int64) (float32, float32)) [2]func(*channelArgs) {
		one := func(a *channelArgs) {
			for p := range a.pixels {
				for l := int64(0); l < a.lanes; l += 4 {
					s, q := op(a, p*a.xPixel+l, p*a.yPixel+l, p*a.yPixel+l, l)
					*(*float32)(ptr(a.out, l%(4*lanes))) += s
					if sums > 1 {
						*(*float32)(ptr(a.out, 4*lanes+l%(4*lanes))) += q
					}
				}
			}
		}
		return [2]func(*channelArgs){one, one}
	}
	f.moments = both(2, func(a *channelArgs, x, _, _, l int64) (float32, float32) {
		d := (get(a.x, x) - get(a.p, 0)) * get(a.mask, l)
		return d, d * d
	})
	f.normSums = both(2, func(a *channelArgs, x, y, _, _ int64) (float32, float32) {
		d := get(a.y, y)
		return d, d * (get(a.x, x) - get(a.p, 0))
	})
	f.normSumsRelu = both(2, func(a *channelArgs, x, y, z, _ int64) (float32, float32) {
		d := (*float32)(ptr(a.y, y))
		if !(get(a.z, z) > 0) {
			*d = 0
		}
		return *d, *d * (get(a.x, x) - get(a.p, 0))
	})
	f.rowSums = both(1, func(a *channelArgs, x, _, _, _ int64) (float32, float32) { return get(a.x, x), 0 })
	f.dots = both(1, func(a *channelArgs, x, y, _, _ int64) (float32, float32) { return get(a.x, x) * get(a.y, y), 0 })
}

// eachPixel is one for all output pixels that have the same offsets.
func eachPixel(one func(*tapArgs)) func(*tapArgs) {
	return func(a *tapArgs) {
		pixel := *a
		for i := range a.pixels {
			pixel.x, pixel.y = ptr(a.x, i*a.xPixel), ptr(a.y, i*a.yPixel)
			one(&pixel)
		}
	}
}

func taps(f *functions) {
	offset := func(list unsafe.Pointer, i int64) int64 { return *(*int64)(ptr(list, 8*i)) }
	pool := func(op func(sum, x float32) float32, start func(scale float32) float32,
		end func(sum, scale float32) float32,
	) func(*tapArgs) {
		return eachPixel(func(a *tapArgs) {
			for l := int64(0); l < a.bytes; l += 4 {
				sum := start(a.scale)
				for i := range a.count {
					sum = op(sum, get(a.x, offset(a.offs, i)+l))
				}
				*(*float32)(ptr(a.y, l)) = end(sum, a.scale)
			}
		})
	}
	f.maxPool = pool(func(s, x float32) float32 { return max(s, x) }, func(scale float32) float32 { return scale },
		func(s, _ float32) float32 { return s })
	f.sumPool = pool(func(s, x float32) float32 { return s + x }, func(float32) float32 { return 0 },
		func(s, scale float32) float32 { return s * scale })
	f.maxPoolBack = func(a *tapArgs) {
		for l := int64(0); l < a.bytes; l += 4 {
			y := get(a.y, l)
			for i := range a.count {
				if o := offset(a.offs, i) + l; get(a.x, o) == y {
					*(*float32)(ptr(a.dx, o)) += get(a.dy, l)
					break
				}
			}
		}
	}
	f.sumPoolBack = func(a *tapArgs) {
		for l := int64(0); l < a.bytes; l += 4 {
			d := a.scale * get(a.y, l)
			for i := range a.count {
				*(*float32)(ptr(a.dx, offset(a.offs, i)+l)) += d
			}
		}
	}
	f.weighted = eachPixel(func(a *tapArgs) {
		for l := int64(0); l < a.bytes; l += 4 {
			var sum float32
			for i := range a.count {
				sum += get(a.w, offset(a.woffs, i)+l) * get(a.x, offset(a.offs, i)+l)
			}
			*(*float32)(ptr(a.y, l)) = sum
		}
	})
	depthwise := func(a *tapArgs) {
		for c := range a.channels {
			for l := int64(0); l < a.lanes; l += 4 {
				var sum float32
				if a.dx != nil {
					sum = get(a.y, c*a.row+l)
				}
				for i := range a.count {
					sum += get(a.w, offset(a.woffs, i)+4*c) * get(a.x, offset(a.offs, i)+c*a.row+l)
				}
				*(*float32)(ptr(a.y, c*a.row+l)) = sum
			}
		}
	}
	f.depthwise = [2]func(*tapArgs){depthwise, depthwise}
}

// tilePixels is how many pixels a tile has at most, and how many values of a channel a transform keeps halfway.
const tilePixels = 49

// single is a matrix in single precision.
type single [][]float32

func singles(m winograd.Matrix) single {
	out := make(single, len(m))
	for i, row := range m {
		for _, v := range row {
			out[i] = append(out[i], float32(v))
		}
	}
	return out
}

// square are a matrix for each side of a tile.
type square struct{ h, w single }

// apply is h x w^T of a tile x.
func (s square) apply(x func(i, j int) float32, to func(i, j int, v float32)) {
	var half [tilePixels]float32
	across := len(s.w[0])
	for i, row := range s.h {
		for j := range across {
			half[i*across+j] = 0
			for k, v := range row {
				half[i*across+j] += v * x(k, j)
			}
		}
	}
	for i := range s.h {
		for j, row := range s.w {
			var sum float32
			for k, v := range row {
				sum += v * half[i*across+k]
			}
			to(i, j, sum)
		}
	}
}

// portableWinograd are the transforms in plain Go, by the matrices.
func portableWinograd() map[winograd.Tile]*transforms {
	out := map[winograd.Tile]*transforms{}
	for _, t := range winograd.Tiles() {
		out[t] = portableTransforms(t)
	}
	return out
}

func portableTransforms(t winograd.Tile) *transforms {
	across := t.W.Points()
	input := func(s square) func(*winogradArgs) {
		return func(w *winogradArgs) {
			for c := range w.channels {
				for l := int64(0); l < w.width; l += 4 {
					s.apply(func(i, j int) float32 { return get(w.src, w.tap(i, j, t.W.In)+c*w.row+l) },
						func(i, j int, v float32) {
							*(*float32)(ptr(w.dst, int64(i*across+j)*w.point+c*w.width+l)) = v
						})
				}
			}
		}
	}
	output := func(s square) func(*winogradArgs) {
		return func(w *winogradArgs) {
			for c := range w.channels {
				for l := int64(0); l < w.width; l += 4 {
					s.apply(func(i, j int) float32 {
						return get(w.src, int64(i*across+j)*w.point+c*w.width+l)
					}, func(i, j int, v float32) { w.deliver(w.tap(i, j, t.W.Out)+c*w.row+l, c, v) })
				}
			}
		}
	}
	up := func(inner int) func(square) func(*winogradArgs) {
		return func(s square) func(*winogradArgs) {
			return func(w *winogradArgs) {
				for l := int64(0); l < w.width; l += 4 {
					s.apply(func(i, j int) float32 { return get(w.src, w.tap(i, j, inner)+l) },
						func(i, j int, v float32) { *(*float32)(ptr(w.dst, int64(i*across+j)*w.point+l)) = v })
				}
			}
		}
	}
	gather := func(s square) func(*winogradArgs) {
		return func(w *winogradArgs) {
			for l := int64(0); l < w.width; l += 4 {
				s.apply(func(i, j int) float32 { return get(w.src, int64(i*across+j)*w.point+l) },
					func(i, j int, v float32) { *(*float32)(ptr(w.dst, w.tap(i, j, t.W.Taps)+l)) = v })
			}
		}
	}
	side, _ := t.Side()
	by := func(pick func(winograd.Matrices) winograd.Matrix, kernel func(square) func(*winogradArgs)) transform {
		s := square{h: singles(pick(t.H.Matrices())), w: singles(pick(t.W.Matrices()))}
		numbers := append(pick(side.Matrices()).Program().Numbers, 0) // never none
		return transform{kernel: kernel(s), numbers: unsafe.Pointer(unsafe.SliceData(numbers))}
	}
	return &transforms{
		input:   by(func(m winograd.Matrices) winograd.Matrix { return m.Input }, input),
		output:  by(func(m winograd.Matrices) winograd.Matrix { return m.Output }, output),
		weights: by(func(m winograd.Matrices) winograd.Matrix { return m.Kernel }, up(t.W.Taps)),
		spread:  by(func(m winograd.Matrices) winograd.Matrix { return m.Output.Transposed() }, up(t.W.Out)),
		gather:  by(func(m winograd.Matrices) winograd.Matrix { return m.Kernel.Transposed() }, gather),
	}
}

// tap is the offset of a pixel of a tile with so many side by side.
func (w *winogradArgs) tap(i, j, across int) int64 {
	return *(*int64)(ptr(w.offs, 8*int64(i*across+j)))
}

// deliver stores a value of an output.
func (w *winogradArgs) deliver(at, channel int64, v float32) {
	y := (*float32)(ptr(w.dst, at))
	if w.bias != nil {
		v += get(w.bias, 4*channel)
	}
	if w.add != 0 {
		v += *y
	}
	if w.relu != 0 && v < 0 {
		v = 0
	}
	*y = v
}
