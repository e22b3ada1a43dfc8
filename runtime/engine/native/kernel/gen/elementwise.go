package main

// elementKernel describes a kernel on arrays of one length; see elementArgs.
type elementKernel struct {
	name    string
	arrays  int  // number that it reads, of a, b and c
	zero    bool // constant 0 is zero
	scalars int  // number of scalar arguments, in the next constants
	vectors int  // in a turn; arm64 takes at most two
}

// Arrays of elementArgs, 8 bytes each, and offsets of its other fields.
const (
	dst = iota
	srcA
	srcB
	srcC
	elementN       = 32
	elementScalars = 40
)

// places returns the place of the current values of an array.
type places func(array int) place

func elementwise(m machine) {
	v, zeros, top := m.v, m.constant(0), m.constant(1)
	unary := func(name string, scalars int, f func(x vector)) {
		m.eachElement(elementKernel{name, 1, true, scalars, 4}, func(p places, i int) {
			m.load(p(srcA), v(i))
			f(v(i))
			m.store(v(i), p(dst))
		})
	}
	sum := func(name string, relu bool) {
		m.eachElement(elementKernel{name, 2, relu, 0, 4}, func(p places, i int) {
			m.load(p(srcA), v(i))
			m.add(v(i), v(i), m.memoryOperand(p(srcB), v(4+i)))
			if relu {
				m.max(v(i), v(i), zeros)
			}
			m.store(v(i), p(dst))
		})
	}
	affine := func(name string, relu bool) { // dst = b a + c
		m.eachElement(elementKernel{name, 3, relu, 0, 4}, func(p places, i int) {
			m.load(p(srcC), v(i))
			m.load(p(srcA), v(4+i))
			m.fma(v(i), v(4+i), m.memoryOperand(p(srcB), v(8+i)))
			if relu {
				m.max(v(i), v(i), zeros)
			}
			m.store(v(i), p(dst))
		})
	}
	back := func(name string, scalars, vectors int, f func(x, y, spare vector)) { // a where b is in a range, else 0
		m.eachElement(elementKernel{name, 2, true, scalars, vectors}, func(p places, i int) {
			m.load(p(srcA), v(i))
			m.load(p(srcB), v(4+i))
			f(v(i), v(4+i), v(8+i))
			m.store(v(i), p(dst))
		})
	}
	sum("add", false)
	sum("addRelu", true)
	unary("relu", 0, func(x vector) { m.max(x, x, zeros) })
	unary("clamp", 1, func(x vector) {
		m.max(x, x, zeros)
		m.min(x, x, top)
	})
	back("reluBack", 0, 4, func(x, y, spare vector) { m.selectWhere(greater, x, x, y, zeros, spare) })
	back("clampBack", 1, 2, func(x, y, spare vector) {
		m.selectWhere(greater, x, x, y, zeros, spare)
		m.selectWhere(less, x, x, y, top, spare)
	})
	m.eachElement(elementKernel{"scale", 1, true, 1, 4}, func(p places, i int) {
		m.mul(v(i), m.memoryOperand(p(srcA), v(i)), top)
		m.store(v(i), p(dst))
	})
	affine("affineEach", false)
	affine("affineEachRelu", true)
	squares(m)
}

// squares sums a a in 16 partial sums at dst.
func squares(m machine) {
	m.function("squares", "*elementArgs", func(args register) {
		to, from, n := m.field(args, 8*dst), m.field(args, 8*srcA), m.field(args, elementN)
		vectors := 64 / m.size()
		for i := range vectors {
			m.zero(m.v(i))
		}
		m.loop(n, 64, func() {
			for i := range vectors {
				m.load(m.at(from, i*m.size()), m.v(4+i))
				m.fma(m.v(i), m.v(4+i), m.v(4+i))
			}
			m.plus(64, from)
		})
		for i := range vectors {
			m.store(m.v(i), m.at(to, i*m.size()))
		}
	})
}
