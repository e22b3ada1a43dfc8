package main

// eachElement takes two vectors at a time, which are 16 values, or one.
func (a *neon) eachElement(e elementKernel, body func(p places, i int)) {
	a.function(e.name, "*elementArgs", func(args register) {
		var pointers []register
		for i := range 1 + e.arrays {
			pointers = append(pointers, a.field(args, 8*i))
		}
		n, out := a.field(args, elementN), a.label("out")
		var constants []vector
		if e.zero {
			constants = append(constants, a.constant(0))
		}
		zeros := len(constants)
		for i := range e.scalars {
			constants = append(constants, a.constant(zeros+i))
		}
		if e.scalars > 0 {
			a.broadcastEach(args, elementScalars, constants[zeros:]...)
		}
		if e.zero {
			a.zero(a.constant(0))
		}
		vectors := min(e.vectors, 2)
		a.branchIfZero(n, out)
		a.loop(n, vectors*size, func() {
			for i := range vectors {
				body(func(array int) place { return a.at(pointers[array], i*size) }, i)
			}
			a.plus(vectors*size, pointers...)
		})
		a.mark(out)
	})
}

// placesAt has one pointer for each array.
func (a *neon) placesAt(offset register, arrays ...register) (out []place) {
	for _, array := range arrays {
		if offset == nil {
			out = append(out, a.at(a.copyRegister(array), 0))
		} else {
			out = append(out, a.indexed(array, offset))
		}
	}
	return out
}

func (a *neon) placesOf(pointers ...register) (out []place, settle func()) {
	for _, p := range pointers {
		out = append(out, a.at(p, 0))
	}
	return out, func() {}
}

func (a *neon) advance(bytes int, places ...place) {
	for _, p := range places {
		a.plus(bytes, p.(address).base)
	}
}

func (a *neon) eachSpan(bytes register, widths []int, places []place, body func(n arithmetic)) {
	a.eachSpanOf(a.copyRegister(bytes), widths, places, body)
}

// eachSpanOf is eachSpan that counts down the register with the bytes.
func (a *neon) eachSpanOf(left register, widths []int, places []place, body func(n arithmetic)) {
	for _, n := range widths {
		again, less := a.label("span"), a.label("less")
		a.mark(again)
		a.compare(left, 4*n)
		a.branch(below, less)
		body(a.span(n))
		a.advance(4*n, places...)
		a.minus(4*n, left)
		a.jump(again)
		a.mark(less)
	}
}

// neonSpan writes instructions on 8, 4 or 1 values.
type neonSpan struct {
	*neon
	n int
}

func (a *neon) span(n int) arithmetic { return neonSpan{a, n} }

func (a neonSpan) three(packed func(to, x, y int) instruction, single string, to, x, y vector) {
	switch a.n {
	case 8:
		a.both(packed, to, x, y)
	case 4:
		a.word(packed(to.(vec).low, x.(vec).low, y.(vec).low))
	default:
		a.put("%s F%d, F%d, F%d", single, y.(vec).low, x.(vec).low, to.(vec).low)
	}
}

func (a neonSpan) add(to, x, y vector) { a.three(fadd, "FADDS", to, x, y) }
func (a neonSpan) sub(to, x, y vector) { a.three(fsub, "FSUBS", to, x, y) }
func (a neonSpan) mul(to, x, y vector) { a.three(fmul, "FMULS", to, x, y) }
func (a neonSpan) div(to, x, y vector) { a.three(fdiv, "FDIVS", to, x, y) }

func (a neonSpan) sqrt(to, x vector) {
	switch a.n {
	case 8:
		a.neon.sqrt(to, x)
	case 4:
		a.word(fsqrt(to.(vec).low, x.(vec).low))
	default:
		a.put("FSQRTS F%d, F%d", x.(vec).low, to.(vec).low)
	}
}

func (a neonSpan) load(from place, to vector) {
	switch a.n {
	case 8:
		a.neon.load(from, to)
	case 4:
		a.put("FMOVQ %s, F%d", from.Asm(), to.(vec).low)
	default:
		a.put("FMOVS %s, F%d", from.Asm(), to.(vec).low)
	}
}

func (a neonSpan) store(v vector, to place) {
	switch a.n {
	case 8:
		a.neon.store(v, to)
	case 4:
		a.put("FMOVQ F%d, %s", v.(vec).low, to.Asm())
	default:
		a.put("FMOVS F%d, %s", v.(vec).low, to.Asm())
	}
}

func (a neonSpan) memoryOperand(from place, spare vector) vector {
	a.load(from, spare)
	return spare
}

func (a *neon) dotProduct(x, y place, bytes register) vector {
	const sum, factor, other, first, second, third, fourth = 0, 1, 2, 4, 5, 6, 7
	left, rows := a.copyRegister(bytes), []place{x, y}
	products := func(to int) func(n arithmetic) {
		return func(n arithmetic) {
			n.load(x, same(factor))
			n.load(y, same(other))
			n.mul(same(factor), same(factor), same(other))
			n.add(same(to), same(to), same(factor))
		}
	}
	a.zeroFour(sum)
	a.eachSpanOf(left, []int{4}, rows, products(sum))
	a.copyFour(sum, first)
	for i, to := range []int{second, third, fourth} {
		a.put("VDUP V%d.S[%d], V%d.S4", sum, i+1, to)
	}
	a.eachSpanOf(left, []int{1}, rows, products(first))
	one := a.span(1)
	one.add(same(first), same(first), same(second))
	one.add(same(third), same(third), same(fourth))
	one.add(same(first), same(first), same(third))
	return same(first)
}

func (a *neon) roundToHalf(x, tie, sum, nan, number vector) vector {
	a.both(fadd, nan, x, x)
	a.both(fcmeq, number, x, x)
	half := func(x, tie, sum, nan, number int) {
		a.put("VSHL $15, V%d.S4, V%d.S4", x, sum)
		a.put("VUSHR $31, V%d.S4, V%d.S4", sum, sum)
		a.put("VADD V%d.S4, V%d.S4, V%d.S4", tie, sum, sum)
		a.put("VADD V%d.S4, V%d.S4, V%d.S4", x, sum, sum)
		a.put("VBSL V%d.B16, V%d.B16, V%d.B16", nan, sum, number) // sum where number is all bits
		a.put("VUSHR $16, V%d.S4, V%d.S4", number, number)
		a.put("VSHL $16, V%d.S4, V%d.S4", number, number)
	}
	half(x.(vec).low, tie.(vec).low, sum.(vec).low, nan.(vec).low, number.(vec).low)
	half(x.(vec).high, tie.(vec).high, sum.(vec).high, nan.(vec).high, number.(vec).high)
	return number
}

func (a *neon) shorten(from, to place) {
	for i := range 2 {
		v := wide(i)
		a.load(a.offset(from, i*size), v)
		a.put("VUZP2 V%d.H8, V%d.H8, V%d.H8", v.high, v.low, 8+i)
	}
	a.store(wide(4), to)
}

// prepareWiden keeps a zero: each half goes between two zero bytes.
func (a *neon) prepareWiden() func(from, to place) {
	const zero = 31
	a.zeroFour(zero)
	return func(from, to place) {
		a.load(from, wide(0))
		for i := range 2 {
			v := wide(1 + i)
			a.put("VZIP1 V%d.H8, V%d.H8, V%d.H8", i, zero, v.low)
			a.put("VZIP2 V%d.H8, V%d.H8, V%d.H8", i, zero, v.high)
			a.store(v, a.offset(to, i*size))
		}
	}
}

// transposeSquare transposes four squares of four: it interleaves pairs of rows, then pairs of pairs.
func (a *neon) transposeSquare() int {
	const middle = 16
	for square := range 4 { // rows 4 (square/2) and up, columns 4 (square%2) and up
		row := func(i int) int { return 2*(square/2*4+i) + square%2 }
		for pair := range 2 {
			to := middle + 4*square + 2*pair
			a.put("VTRN1 V%d.S4, V%d.S4, V%d.S4", row(2*pair+1), row(2*pair), to)
			a.put("VTRN2 V%d.S4, V%d.S4, V%d.S4", row(2*pair+1), row(2*pair), to+1)
		}
	}
	for square := range 4 {
		from := middle + 4*square
		column := func(i int) int { return 2*(square%2*4+i) + square/2 }
		for i := range 2 {
			a.put("VTRN1 V%d.D2, V%d.D2, V%d.D2", from+2+i, from+i, column(i))
			a.put("VTRN2 V%d.D2, V%d.D2, V%d.D2", from+2+i, from+i, column(2+i))
		}
	}
	return 0
}
