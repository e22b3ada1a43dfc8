package main

// halver has the instructions of bfloat16, which is the upper half of a float32.
type halver interface {
	// rounded is x rounded to bfloat16, in x or in one of three vectors that are overwritten. It adds tie, which is just
	// below a half of the last place that is kept, and the bit of that place: ties go to even. What is not a number is
	// added to itself instead, which makes it a quiet one.
	rounded(x, tie, a, b, c vector) vector
	// shorten writes the upper halves of 16 values.
	shorten(from, to place)
	// widener prepares what writes 16 halves as values.
	widener() func(from, to place)
}

func halves(m machine) {
	m.each(element{name: "round", arrays: 1, scalars: 1, vectors: 2}, func(p places, i int) {
		x := m.v(4 * i)
		m.load(p(srcA), x)
		m.store(m.rounded(x, m.constant(0), m.v(4*i+1), m.v(4*i+2), m.v(4*i+3)), p(dst))
	})
	// It walks from the start, so that dst may be the memory of a.
	m.function("shorten", "*elementArgs", func(args register) {
		to, from, n := m.field(args, 8*dst), m.field(args, 8*srcA), m.field(args, elementN)
		m.loop(n, 64, func() {
			m.shorten(m.at(from, 0), m.at(to, 0))
			m.plus(64, from)
			m.plus(32, to)
		})
	})
	// Rows of halves become values; see halvesArgs.
	m.function("widen", "*halvesArgs", func(args register) {
		dst, src, rows := m.field(args, 0), m.field(args, 8), m.field(args, 16)
		n, dstStep, srcStep := m.held(args, 24), m.held(args, 32), m.held(args, 40)
		widen := m.widener()
		m.loop(rows, 1, func() {
			to, from, left := m.copyOf(dst), m.copyOf(src), m.copyOf(n)
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
