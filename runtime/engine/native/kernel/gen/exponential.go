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
