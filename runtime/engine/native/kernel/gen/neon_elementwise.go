package main

// Offsets of elementArgs.
const (
	elementN       = 32
	elementScalars = 40
)

// element is a kernel on arrays of one length.
type element struct {
	name, doc string
	arrays    []int // beside dst
	scalars   []int // registers for the arguments' scalars, in order
	zero      int   // a register that is zero; 0: none is
	vectors   int   // of a turn: 2, or 1 where registers are few
}

// each walks n bytes of some arrays. n is a multiple of 16 values: two vectors.
func (a *neon) each(e element, body func(m func(array int) register, i int)) {
	a.function(e.name, "*elementArgs", e.doc, func(args register) {
		var p [4]register
		pointers := make([]register, 0, len(p))
		for _, array := range append([]int{dst}, e.arrays...) {
			p[array] = a.field(args, 8*array)
			pointers = append(pointers, p[array])
		}
		n, out := a.field(args, elementN), a.label("out")
		if len(e.scalars) > 0 {
			a.constants(args, elementScalars, e.scalars...)
		}
		if e.zero > 0 {
			a.zeroFour(e.zero)
		}
		a.put("CBZ %s, %s", n, out)
		a.loop(n, e.vectors*size, func() {
			for i := range e.vectors {
				body(func(array int) register { return p[array] }, i)
			}
			a.advance(e.vectors*size, pointers...)
		})
		a.mark(out)
	})
}

func (a *neon) elementwise() {
	const zero, scalar = 31, 30
	zeros, top := same(zero), same(scalar)
	type memory = func(array int) register
	x, y, mask := wide, func(i int) vec { return wide(4 + i) }, func(i int) vec { return wide(8 + i) }
	unary := func(name, doc string, scalars []int, f func(v vec)) {
		a.each(element{name, doc, []int{srcA}, scalars, zero, 2}, func(m memory, i int) {
			a.load(m(srcA), i*size, x(i))
			f(x(i))
			a.store(x(i), m(dst), i*size)
		})
	}
	binary := func(name, doc string, scalars []int, f func(v, w, mask vec)) {
		a.each(element{name, doc, []int{srcA, srcB}, scalars, zero, 2}, func(m memory, i int) {
			a.load(m(srcA), i*size, x(i))
			a.load(m(srcB), i*size, y(i))
			f(x(i), y(i), mask(i))
			a.store(x(i), m(dst), i*size)
		})
	}
	binary("add", "is dst = a + b.", nil, func(v, w, _ vec) { a.sum(v, v, w) })
	binary("addRelu", "is dst = max(0, a + b).", nil, func(v, w, _ vec) {
		a.sum(v, v, w)
		a.larger(v, v, zeros)
	})
	unary("relu", "is dst = max(0, a).", nil, func(v vec) { a.larger(v, v, zeros) })
	unary("clamp", "is dst = min(s0, max(0, a)).", []int{scalar}, func(v vec) {
		a.larger(v, v, zeros)
		a.smaller(v, v, top)
	})
	binary("reluBack", "is dst = a where b > 0, else 0.", nil, func(v, w, mask vec) {
		a.keep(fcmgt, mask, w, zeros, v, v)
	})
	binary("clampBack", "is dst = a where 0 < b < s0, else 0.", []int{scalar}, func(v, w, mask vec) {
		a.keep(fcmgt, mask, w, zeros, v, v)
		a.keep(fcmgt, mask, top, w, v, v)
	})
	unary("scale", "is dst = s0 a.", []int{scalar}, func(v vec) { a.times(v, v, top) })
	affine := func(name, doc string, relu bool) {
		a.each(element{name, doc, []int{srcA, srcB, srcC}, nil, zero, 2}, func(m memory, i int) {
			a.load(m(srcC), i*size, mask(i))
			a.load(m(srcA), i*size, x(i))
			a.load(m(srcB), i*size, y(i))
			a.fma(mask(i), x(i), y(i))
			if relu {
				a.larger(mask(i), mask(i), zeros)
			}
			a.store(mask(i), m(dst), i*size)
		})
	}
	affine("affineEach", "is dst = b a + c.", false)
	affine("affineEachRelu", "is dst = max(0, b a + c).", true)
	a.squares()
}

// squares sums a*a in 16 partial sums at dst.
func (a *neon) squares() {
	a.function("squares", "*elementArgs", "sums a a in 16 partial sums at dst.", func(args register) {
		to, from, n := a.field(args, 8*dst), a.field(args, 8*srcA), a.field(args, elementN)
		for i := range 2 {
			a.zero(wide(i))
		}
		a.loop(n, 2*size, func() {
			for i := range 2 {
				a.load(from, i*size, wide(4+i))
				a.fma(wide(i), wide(4+i), wide(4+i))
			}
			a.advance(2*size, from)
		})
		for i := range 2 {
			a.store(wide(i), to, i*size)
		}
	})
}
