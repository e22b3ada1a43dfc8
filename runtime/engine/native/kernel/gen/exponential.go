package main

// Offsets in exponentArgs.
const (
	exponentDst     = 0
	exponentA       = 8
	exponentB       = 16
	exponentSum     = 24
	exponentN       = 32 // bytes of arrays, or rows of 16 values
	exponentStride  = 40
	exponentNumbers = 48
	exponentFrom    = 56 // bytes from one row of a to the next
)

// Numbers of kernel.exponentNumbers, which the kernels of this file read from memory: they are too many for registers.
const (
	log2E         = 0
	toExponent    = 1
	logHigh       = 2
	logLow        = 3
	least         = 4
	most          = 5
	firstTerm     = 6 // and seven more
	one           = 13
	geluScale     = 14
	geluCube      = 15
	geluCubeBack  = 16
	half          = 17
	minusHalf     = 18
	normalScale   = 19
	tailTerm      = 20 // and four more
	densityNumber = 25
)

// terms are how many factors the polynomial of the exponential function has, and tailTerms that of the normal
// distribution's tail.
const (
	terms     = 7
	tailTerms = 5
)

// exponent writes kernels that compute the exponential function of each value.
type exponent struct {
	machine
	numbers register
}

// number loads a number into a repeated vector; i chooses one of four.
func (e exponent) number(n, i int) vector {
	v := e.constant(i)
	e.broadcastEach(e.numbers, 4*n, v)
	return v
}

// exp computes the exponential function of v(0), which becomes the remainder. It uses vectors 1 to 5, and returns the
// one with the result. Below -87 it is 0, and above 88 as at 88. The steps are those of kernel.exp32.
func (e exponent) exp() vector {
	x, t, given, n := e.v(0), e.v(1), e.v(2), e.v(3)
	e.copy(given, x)
	e.max(x, x, e.number(least, 0))
	e.min(x, x, e.number(most, 0))
	magic := e.number(toExponent, 1)
	e.copy(t, magic)
	e.fma(t, x, e.number(log2E, 0))
	e.sub(n, t, magic)
	e.fms(x, n, e.number(logHigh, 0))
	e.fms(x, n, e.number(logLow, 0))
	y := e.polynomial(x, firstTerm, terms, e.v(4), e.v(5))
	e.toPower(t)
	e.mul(y, y, t)
	spare := e.v(4)
	if y == spare {
		spare = e.v(5)
	}
	e.selectWhere(less, n, y, given, e.number(least, 0), spare)
	e.sub(y, y, n) // 0 below; NaN stays
	return y
}

// polynomial returns that of x with the numbers from first on, by Horner's method, in y or spare.
func (e exponent) polynomial(x vector, first, count int, y, spare vector) vector {
	e.copy(y, e.number(first, 0))
	for i := 1; i <= count; i++ {
		next := e.affine(y, x, e.number(first+i, 0), spare)
		if next != y {
			y, spare = next, y
		}
	}
	return y
}

// sigmoid returns 1 / (1 + exp(-x)) for x in v(0).
func (e exponent) sigmoid() vector {
	e.zero(e.v(1))
	e.sub(e.v(0), e.v(1), e.v(0))
	y := e.exp()
	unit := e.number(one, 0)
	e.add(y, y, unit)
	e.div(y, unit, y)
	return y
}

// slope turns the sigmoid s of z into s (1 + x (1 - s) z'), the slope of x sigmoid(z); rate is z'. It overwrites x.
func (e exponent) slope(s, x, rate vector) {
	unit, r := e.number(one, 0), e.v(1)
	e.sub(r, unit, s)
	e.mul(x, x, r)
	e.mul(x, x, rate)
	e.add(x, x, unit)
	e.mul(s, s, x)
}

// inner computes 2 sqrt(2/pi) (x + 0.044715 x^3) in v(0), for x in v(6); v(7) becomes x x.
func (e exponent) inner() {
	x, square, z := e.v(6), e.v(7), e.v(0)
	e.mul(square, x, x)
	e.mul(z, square, e.number(geluCube, 0))
	e.add(z, z, e.number(one, 0))
	e.mul(z, z, x)
	e.mul(z, z, e.number(geluScale, 0))
}

// normal returns the normal distribution function of x in v(6), and its density in v(7), as kernel.normal32.
func (e exponent) normal() (distribution, density vector) {
	x, z := e.v(6), e.v(0)
	e.mul(z, x, x)
	e.mul(z, z, e.number(minusHalf, 0))
	power := e.v(7)
	e.copy(power, e.exp())
	t, d := e.v(0), e.v(1)
	e.zero(d)
	e.sub(d, d, x)
	e.max(t, x, d) // |x|
	unit := e.number(one, 0)
	e.mul(t, t, e.number(normalScale, 1))
	e.add(t, t, unit)
	e.div(t, unit, t)
	tail := e.polynomial(t, tailTerm, tailTerms-1, e.v(4), e.v(5))
	e.mul(tail, tail, t)
	e.mul(tail, tail, power)
	middle, low, high := e.number(half, 0), e.v(2), e.v(3)
	e.mul(tail, tail, middle)
	e.sub(low, middle, tail) // |distribution - 1/2|
	e.zero(t)
	e.selectWhere(greater, high, low, x, t, d)
	e.sub(low, low, high) // where x is not above 0
	e.add(high, high, middle)
	e.sub(high, high, low)
	e.mul(power, power, e.number(densityNumber, 0))
	return high, power
}

func exponents(m machine) {
	each := func(name string, back bool, f func(e exponent) vector) { // of v(6), the value of a
		m.function(name, "*exponentArgs", func(args register) {
			e := exponent{m, m.field(args, exponentNumbers)}
			to, from, n := m.field(args, exponentDst), m.field(args, exponentA), m.field(args, exponentN)
			pointers := []register{to, from}
			if back {
				pointers = append(pointers, m.field(args, exponentB))
			}
			m.loop(n, m.size(), func() {
				m.load(m.at(from, 0), m.v(6))
				m.copy(m.v(0), m.v(6))
				y := f(e)
				if back {
					m.mul(y, y, m.memoryOperand(m.at(pointers[2], 0), m.v(0)))
				}
				m.store(y, m.at(to, 0))
				m.plus(m.size(), pointers...)
			})
		})
	}
	each("silu", false, func(e exponent) vector {
		y := e.sigmoid()
		m.mul(y, y, m.v(6))
		return y
	})
	each("siluBack", true, func(e exponent) vector {
		y := e.sigmoid()
		e.slope(y, m.v(6), e.number(one, 1))
		return y
	})
	each("geluTanh", false, func(e exponent) vector {
		e.inner()
		y := e.sigmoid()
		m.mul(y, y, m.v(6))
		return y
	})
	each("geluTanhBack", true, func(e exponent) vector {
		e.inner()
		y, rate := e.sigmoid(), m.v(7)
		m.mul(rate, rate, e.number(geluCubeBack, 0))
		m.add(rate, rate, e.number(one, 0))
		m.mul(rate, rate, e.number(geluScale, 0))
		e.slope(y, m.v(6), rate)
		return y
	})
	each("gelu", false, func(e exponent) vector {
		y, _ := e.normal()
		m.mul(y, y, m.v(6))
		return y
	})
	each("geluBack", true, func(e exponent) vector {
		y, density := e.normal()
		m.fma(y, density, m.v(6))
		return y
	})
	softRows(m)
	rows(m)
	gates(m)
}

// softRows are the rows of a softmax: 16 values side by side, each of a row of its own.
func softRows(m machine) {
	// dst = exp(a - b), and the sums of the rows are added to sum; back: a = exp(a - b), and dst = a (dst - sum)
	rows := func(name string, back bool) {
		m.function(name, "*exponentArgs", func(args register) {
			e := exponent{m, m.field(args, exponentNumbers)}
			for at := 0; at < 64; at += m.size() {
				m.scope(func() { e.softPart(args, at, back) })
			}
		})
	}
	rows("softmaxRows", false)
	rows("softmaxRowsBack", true)
}

// rows are kernels of rows of 16 values, with a distance between those of dst and one between those of a.
func rows(m machine) {
	each := func(name string, b, sums bool, body func(x, other, b vector, to place)) {
		m.function(name, "*exponentArgs", func(args register) {
			for at := 0; at < 64; at += m.size() {
				m.scope(func() {
					to, from, n := m.field(args, exponentDst), m.field(args, exponentA), m.field(args, exponentN)
					stride, by := m.field(args, exponentStride), m.field(args, exponentFrom)
					x, other, factor := m.v(0), m.v(1), m.v(2)
					if b {
						m.load(m.at(m.field(args, exponentB), at), factor)
					}
					if sums {
						m.load(m.at(m.field(args, exponentSum), at), factor)
					}
					m.loop(n, 1, func() {
						m.load(m.at(from, at), x)
						body(x, other, factor, m.at(to, at))
						m.plus(stride, to)
						m.plus(by, from)
					})
					if sums {
						m.store(factor, m.at(m.field(args, exponentSum), at))
					}
				})
			}
		})
	}
	// dst = a b
	each("mulRows", true, false, func(x, _, b vector, to place) {
		m.mul(x, x, b)
		m.store(x, to)
	})
	// dst += a b
	each("addRows", true, false, func(x, other, b vector, to place) {
		m.load(to, other)
		m.fma(other, x, b)
		m.store(other, to)
	})
	// sum += a dst
	each("dotRows", false, true, func(x, other, sum vector, to place) {
		m.load(to, other)
		m.fma(sum, x, other)
	})
	// sum is the largest of itself and the rows of a
	each("maxRows", false, true, func(x, _, sum vector, _ place) { m.max(sum, x, sum) })
}

// softPart computes a vector of each row, which begins at so many bytes.
func (e exponent) softPart(args register, at int, back bool) {
	to, from, sums := e.field(args, exponentDst), e.field(args, exponentA), e.field(args, exponentSum)
	n, stride, b := e.field(args, exponentN), e.field(args, exponentStride), e.field(args, exponentB)
	x, less, sum := e.v(0), e.v(6), e.v(7)
	e.load(e.at(b, at), less)
	e.load(e.at(sums, at), sum)
	e.loop(n, 1, func() {
		e.load(e.at(from, at), x)
		e.sub(x, x, less)
		y := e.exp()
		if back {
			e.store(y, e.at(from, at))
			e.load(e.at(to, at), x)
			e.sub(x, x, sum)
			e.mul(y, y, x)
		} else {
			e.add(sum, sum, y)
		}
		e.store(y, e.at(to, at))
		e.plus(stride, to, from)
	})
	if !back {
		e.store(sum, e.at(sums, at))
	}
}

// Offsets in recurrentArgs.
const (
	recurrentX       = 0
	recurrentZ       = 8
	recurrentGates   = 16
	recurrentMemory  = 24
	recurrentKept    = 32
	recurrentY       = 40
	recurrentN       = 48 // bytes of a gate that are computed
	recurrentGate    = 56 // bytes from one gate to the next
	recurrentNumbers = 64
	recurrentBefore  = 72 // what the position before counts for
)

// cell writes kernels of one position of a recurrent layer. Pointers to gates go from the first to the last.
type cell struct {
	exponent
	x, z, gates, memory, kept, y, gate register
}

// cells writes a kernel that calls body for each vector of a gate; count is the number of gates.
func cells(m machine, name string, count int, back bool, body func(c cell)) {
	m.function(name, "*recurrentArgs", func(args register) {
		c := cell{
			exponent: exponent{m, m.field(args, recurrentNumbers)}, z: m.field(args, recurrentZ),
			gates: m.field(args, recurrentGates), memory: m.field(args, recurrentMemory),
			kept: m.field(args, recurrentKept), y: m.field(args, recurrentY), gate: m.field(args, recurrentGate),
		}
		pointers, walking := []register{c.z, c.gates, c.memory, c.kept, c.y}, []register{c.gates}
		if back {
			m.broadcastEach(args, recurrentBefore, m.constant(3))
		} else {
			c.x = m.field(args, recurrentX)
			pointers, walking = append(pointers, c.x), append(walking, c.x, c.z)
		}
		m.loop(m.field(args, recurrentN), m.size(), func() {
			body(c)
			for range count - 1 {
				for _, p := range walking {
					m.minus(c.gate, p)
				}
			}
			m.plus(m.size(), pointers...)
		})
	})
}

// tanh returns 2 sigmoid(2 x) - 1 for x in v(0).
func (e exponent) tanh() vector {
	e.add(e.v(0), e.v(0), e.v(0))
	y := e.sigmoid()
	e.add(y, y, y)
	e.sub(y, y, e.number(one, 0))
	return y
}

// away is to = x (1 - x), the slope of a sigmoid.
func (e exponent) away(to, x vector) {
	e.sub(to, e.number(one, 0), x)
	e.mul(to, to, x)
}

// apart is to = 1 - x x, the slope of a tanh.
func (e exponent) apart(to, x vector) {
	e.mul(to, x, x)
	e.sub(to, e.number(one, 0), to)
}

// sum is v(0) = x + z of the gate at hand.
func (c cell) sum() {
	c.load(c.at(c.x, 0), c.v(0))
	c.add(c.v(0), c.v(0), c.memoryOperand(c.at(c.z, 0), c.v(1)))
}

// next stores a gate and goes to the next one.
func (c cell) next(v, to vector) {
	c.copy(to, v)
	c.store(to, c.at(c.gates, 0))
	c.plus(c.gate, c.x, c.z, c.gates)
}

// given loads all gates, and goes to the last one.
func (c cell) given(to ...vector) {
	for i, v := range to {
		if i > 0 {
			c.plus(c.gate, c.gates)
		}
		c.load(c.at(c.gates, 0), v)
	}
}

// before stores a gate and goes to the one before.
func (c cell) before(v vector) {
	c.store(v, c.at(c.gates, 0))
	c.minus(c.gate, c.gates)
}

func gates(m machine) {
	first, second, third, fourth := m.v(8), m.v(9), m.v(10), m.v(11)
	cells(m, "lstm", 4, false, func(c cell) {
		c.sum()
		c.next(c.sigmoid(), first)
		c.sum()
		c.next(c.sigmoid(), second)
		c.sum()
		c.next(c.tanh(), third)
		c.sum()
		c.copy(fourth, c.sigmoid())
		c.store(fourth, c.at(c.gates, 0))
		memory := m.v(6)
		c.load(c.at(c.memory, 0), memory)
		c.mul(memory, memory, second)
		c.fma(memory, first, third)
		c.store(memory, c.at(c.memory, 0))
		c.store(memory, c.at(c.kept, 0))
		c.copy(m.v(0), memory)
		y := c.tanh()
		c.mul(y, y, fourth)
		c.store(y, c.at(c.y, 0))
	})
	cells(m, "lstmBack", 4, true, func(c cell) {
		c.load(c.at(c.kept, 0), m.v(0))
		tanh, dy, slope, t := m.v(6), m.v(7), m.v(0), m.v(1)
		c.copy(tanh, c.tanh())
		c.given(first, second, third, fourth)
		c.load(c.at(c.y, 0), dy)
		c.apart(slope, tanh)
		c.mul(slope, slope, fourth)
		c.mul(slope, slope, dy)
		c.add(slope, slope, c.memoryOperand(c.at(c.memory, 0), t))
		c.away(t, fourth)
		c.mul(t, t, tanh)
		c.mul(t, t, dy)
		c.before(t)
		c.apart(t, third)
		c.mul(t, t, first)
		c.mul(t, t, slope)
		c.before(t)
		c.away(t, second)
		c.mul(t, t, c.memoryOperand(c.at(c.z, 0), m.v(2)))
		c.mul(t, t, c.constant(3))
		c.mul(t, t, slope)
		c.before(t)
		c.away(t, first)
		c.mul(t, t, third)
		c.mul(t, t, slope)
		c.store(t, c.at(c.gates, 0))
		c.plus(c.gate, c.gates)
		c.plus(c.gate, c.gates)
		c.plus(c.gate, c.gates)
		c.mul(slope, slope, second)
		c.store(slope, c.at(c.memory, 0))
	})
	cells(m, "gru", 3, false, func(c cell) {
		c.sum()
		c.next(c.sigmoid(), first)
		c.sum()
		c.next(c.sigmoid(), second)
		c.load(c.at(c.z, 0), third)
		c.store(third, c.at(c.gates, 0))
		c.load(c.at(c.x, 0), m.v(0))
		c.fma(m.v(0), first, third)
		c.copy(fourth, c.tanh())
		c.store(fourth, c.at(c.kept, 0))
		y, t := m.v(0), m.v(1)
		c.sub(t, c.number(one, 0), second)
		c.mul(y, fourth, t)
		c.load(c.at(c.memory, 0), t)
		c.fma(y, t, second)
		c.store(y, c.at(c.y, 0))
	})
	cells(m, "gruBack", 3, true, func(c cell) {
		c.given(first, second, third)
		dy, n, last, t, u := m.v(0), fourth, m.v(1), m.v(2), m.v(3)
		c.load(c.at(c.y, 0), dy)
		c.load(c.at(c.kept, 0), n)
		c.load(c.at(c.z, 0), last)
		c.mul(last, last, c.constant(3))
		c.load(c.at(c.memory, 0), t)
		c.fma(t, dy, second)
		c.store(t, c.at(c.memory, 0))
		c.sub(last, last, n)
		c.apart(t, n)
		c.sub(u, c.number(one, 0), second)
		c.mul(t, t, u)
		c.mul(t, t, dy) // of the candidate
		c.store(t, c.at(c.kept, 0))
		c.mul(u, t, first)
		c.before(u)
		c.away(u, second)
		c.mul(u, u, last)
		c.mul(u, u, dy)
		c.before(u)
		c.away(u, first)
		c.mul(u, u, third)
		c.mul(u, u, t)
		c.store(u, c.at(c.gates, 0))
		c.plus(c.gate, c.gates)
		c.plus(c.gate, c.gates)
	})
}
