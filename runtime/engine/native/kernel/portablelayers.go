package kernel

import (
	"math"
	"unsafe"
)

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
