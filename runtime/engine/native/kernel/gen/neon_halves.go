package main

// halves are the kernels of bfloat16, which is the upper half of a float32.
func (a *neon) halves() {
	a.round()
	a.shorten()
	a.widen()
}

// halfOf calls f with the registers of either half of vectors.
func halfOf(f func(q ...int), vectors ...vec) {
	low, high := make([]int, len(vectors)), make([]int, len(vectors))
	for i, v := range vectors {
		low[i], high[i] = v.low, v.high
	}
	f(low...)
	f(high...)
}

// round adds just below a half of the last place that is kept, and the bit of that place: ties go to even. A value that
// is not a number is added to itself instead, which makes it a quiet one.
func (a *neon) round() {
	const tie = 31
	e := element{"round", "is dst = a, rounded to bfloat16.", []int{srcA}, []int{tie}, 0, 2}
	a.each(e, func(m func(array int) register, i int) {
		x, sum, nan, number := wide(i), wide(2+i), wide(4+i), wide(6+i)
		a.load(m(srcA), i*size, x)
		a.both(fadd, nan, x, x)
		a.both(fcmeq, number, x, x)
		halfOf(func(q ...int) {
			x, sum, nan, number := q[0], q[1], q[2], q[3]
			a.put("VSHL $15, V%d.S4, V%d.S4", x, sum)
			a.put("VUSHR $31, V%d.S4, V%d.S4", sum, sum)
			a.put("VADD V%d.S4, V%d.S4, V%d.S4", tie, sum, sum)
			a.put("VADD V%d.S4, V%d.S4, V%d.S4", x, sum, sum)
			a.put("VBSL V%d.B16, V%d.B16, V%d.B16", nan, sum, number) // sum where number is all bits
			a.put("VUSHR $16, V%d.S4, V%d.S4", number, number)
			a.put("VSHL $16, V%d.S4, V%d.S4", number, number)
		}, x, sum, nan, number)
		a.store(number, m(dst), i*size)
	})
}

// shorten writes upper halves. It walks from the start, so that dst may be the memory of a.
func (a *neon) shorten() {
	a.function("shorten", "*elementArgs", "is dst = the upper halves of a.", func(args register) {
		to, from, n := a.field(args, 8*dst), a.field(args, 8*srcA), a.field(args, elementN)
		a.loop(n, 2*size, func() {
			for i := range 2 {
				v := wide(i)
				a.load(from, i*size, v)
				a.put("VUZP2 V%d.H8, V%d.H8, V%d.H8", v.high, v.low, 8+i)
			}
			a.store(wide(4), to, 0)
			a.advance(2*size, from)
			a.advance(size, to)
		})
	})
}

// widen writes rows of halves as values: each half between zeros. Arguments: see halvesArgs.
func (a *neon) widen() {
	const zero = 31
	a.function("widen", "*halvesArgs", "is dst = src, as float32; see halvesArgs.", func(args register) {
		f := a.fields(args, 0, 8, 16, 24, 32, 40)
		dst, src, rows, n, ds, ss := f[0], f[1], f[2], f[3], f[4], f[5]
		to, from, left := a.register(), a.register(), a.register()
		a.zeroFour(zero)
		a.loop(rows, 1, func() {
			a.move(dst, to)
			a.move(src, from)
			a.move(n, left)
			a.loop(left, 2*size, func() {
				a.load(from, 0, wide(0))
				for i := range 2 {
					v := wide(1 + i)
					a.put("VZIP1 V%d.H8, V%d.H8, V%d.H8", i, zero, v.low)
					a.put("VZIP2 V%d.H8, V%d.H8, V%d.H8", i, zero, v.high)
					a.store(v, to, i*size)
				}
				a.advance(2*size, to)
				a.advance(size, from)
			})
			a.add(ds, dst)
			a.add(ss, src)
		})
	})
}
