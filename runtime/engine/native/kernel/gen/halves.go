package main

// halfInstructions has the instructions for bfloat16, which is the upper half of a float32.
type halfInstructions interface {
	// roundToHalf rounds x to bfloat16 and returns the result, in one of the vectors behind tie, which it overwrites.
	// It adds tie, the value just below half of the last place kept, and the bit of that place. So ties go to even. It
	// adds NaN to itself, which makes it quiet.
	roundToHalf(x, tie, a, b, c vector) vector
	// shorten stores the upper halves of 16 values.
	shorten(from, to place)
	// prepareWiden returns a function that stores 16 halves as values.
	prepareWiden() func(from, to place)
}

func halves(m machine) {
	m.eachElement(elementKernel{name: "round", arrays: 1, scalars: 1, vectors: 2}, func(p places, i int) {
		x := m.v(4 * i)
		m.load(p(srcA), x)
		m.store(m.roundToHalf(x, m.constant(0), m.v(4*i+1), m.v(4*i+2), m.v(4*i+3)), p(dst))
	})
	// shorten starts at the first value, because dst may be the memory of a.
	m.function("shorten", "*elementArgs", func(args register) {
		to, from, n := m.field(args, 8*dst), m.field(args, 8*srcA), m.field(args, elementN)
		m.loop(n, 64, func() {
			m.shorten(m.at(from, 0), m.at(to, 0))
			m.plus(64, from)
			m.plus(32, to)
		})
	})
	// widen makes rows of halves values; see halvesArgs.
	m.function("widen", "*halvesArgs", func(args register) {
		dst, src, rows := m.field(args, 0), m.field(args, 8), m.field(args, 16)
		n, dstStep, srcStep := m.fieldOperand(args, 24), m.fieldOperand(args, 32), m.fieldOperand(args, 40)
		widen := m.prepareWiden()
		m.loop(rows, 1, func() {
			to, from, left := m.copyRegister(dst), m.copyRegister(src), m.copyRegister(n)
			m.loop(left, 64, func() {
				widen(m.at(from, 0), m.at(to, 0))
				m.plus(64, to)
				m.plus(32, from)
			})
			m.plus(dstStep, dst)
			m.plus(srcStep, src)
		})
	})
}
