package main

// The kernels here have the same bits as plain Go: a product and a sum are two instructions, never one, and sums have
// an order that does not depend on the vectors. They take arrays of any length, so that the last values go four at a
// time, and one by one.

// span is how many values an instruction takes: 8, which are two instructions, 4 or 1.
type neonSpan int

// bytes of the span's values.
func (n neonSpan) bytes() int { return 4 * int(n) }

func (a *neon) three(n neonSpan, packed func(to, x, y int) instruction, single string, to, x, y vec) {
	switch n {
	case 8:
		a.both(packed, to, x, y)
	case 4:
		a.word(packed(to.low, x.low, y.low))
	default:
		a.put("%s F%d, F%d, F%d", single, y.low, x.low, to.low)
	}
}

func (a *neon) plusOf(n neonSpan, to, x, y vec)    { a.three(n, fadd, "FADDS", to, x, y) }
func (a *neon) minusOf(n neonSpan, to, x, y vec)   { a.three(n, fsub, "FSUBS", to, x, y) } // x - y
func (a *neon) productOf(n neonSpan, to, x, y vec) { a.three(n, fmul, "FMULS", to, x, y) }
func (a *neon) shareOf(n neonSpan, to, x, y vec)   { a.three(n, fdiv, "FDIVS", to, x, y) } // x / y

func (a *neon) rootOf(n neonSpan, to, x vec) {
	switch n {
	case 8:
		a.root(to, x)
	case 4:
		a.word(fsqrt(to.low, x.low))
	default:
		a.put("FSQRTS F%d, F%d", x.low, to.low)
	}
}

func (a *neon) loadOf(n neonSpan, base register, to vec) {
	switch n {
	case 8:
		a.load(base, 0, to)
	case 4:
		a.loadFour(base, 0, to.low)
	default:
		a.put("FMOVS (%s), F%d", base, to.low)
	}
}

func (a *neon) storeOf(n neonSpan, from vec, base register) {
	switch n {
	case 8:
		a.store(from, base, 0)
	case 4:
		a.storeFour(from.low, base, 0)
	default:
		a.put("FMOVS F%d, (%s)", from.low, base)
	}
}

// spans does body while so many bytes are left, first the widest, and advances pointers.
func (a *neon) spans(left register, widths []neonSpan, pointers []register, body func(n neonSpan)) {
	for _, n := range widths {
		again, less := a.label("span"), a.label("less")
		a.mark(again)
		a.put("CMP $%d, %s", n.bytes(), left)
		a.put("BLO %s", less)
		body(n)
		a.advance(n.bytes(), pointers...)
		a.put("SUB $%d, %s", n.bytes(), left)
		a.put("B %s", again)
		a.mark(less)
	}
}

func (a *neon) exact() {
	a.pairProducts()
	a.pairSlopes()
	a.rowOptimizers()
}

// rowAt is the address of a row that an int32 in memory has the number of, first less than it says.
func (a *neon) rowAt(args, numbers register, offset, table int, first bool) register {
	r := a.register()
	a.put("MOVW %d(%s), %s", offset, numbers, r)
	a.scope(func() {
		if first {
			a.put("SUB %s, %s", a.field(args, pairFirst), r)
		}
		a.put("MUL %s, %s", a.field(args, pairRow), r)
		a.add(a.field(args, table), r)
	})
	return r
}

func (a *neon) pairProducts() {
	const sum, factor, other, first, second, third, fourth = 0, 1, 2, 4, 5, 6, 7
	one := func(name string, x, to int) { a.put("%s F%d, F%d, F%d", name, x, to, to) }
	doc := "writes offset + both biases + the product of factors, in four sums, for every pair."
	a.function("pairProducts", "*pairArgs", doc, func(args register) {
		index, values := a.field(args, pairIndex), a.field(args, pairValues)
		n, bytes, left := a.field(args, pairN), a.field(args, pairRow), a.register()
		a.put("SUB $4, %s", bytes)
		a.loop(n, 1, func() {
			a.scope(func() {
				u, v := a.rowAt(args, index, 0, pairUsers, false), a.rowAt(args, index, 4, pairItems, true)
				a.move(bytes, left)
				a.zeroFour(sum)
				a.spans(left, []neonSpan{4}, []register{u, v}, func(neonSpan) {
					a.loadFour(u, 0, factor)
					a.loadFour(v, 0, other)
					a.word(fmul(factor, factor, other))
					a.word(fadd(sum, sum, factor))
				})
				a.copyFour(sum, first)
				for i, to := range []int{second, third, fourth} {
					a.put("VDUP V%d.S[%d], V%d.S4", sum, i+1, to)
				}
				a.spans(left, []neonSpan{1}, []register{u, v}, func(neonSpan) {
					a.put("FMOVS (%s), F%d", u, factor)
					a.put("FMOVS (%s), F%d", v, other)
					one("FMULS", other, factor)
					one("FADDS", factor, first)
				})
				one("FADDS", second, first)
				one("FADDS", fourth, third)
				one("FADDS", third, first)
				a.put("FMOVS %d(%s), F%d", pairOffset, args, sum)
				for _, bias := range []register{u, v} {
					a.put("FMOVS (%s), F%d", bias, factor)
					one("FADDS", factor, sum)
				}
				one("FADDS", first, sum)
				a.put("FMOVS F%d, (%s)", sum, values)
			})
			a.advance(8, index)
			a.advance(4, values)
		})
	})
}

func (a *neon) pairSlopes() {
	slope := same(31)
	a.function("pairSlopes", "*pairArgs", "adds every pair's slope times its factors to gradients.", func(args register) {
		index, places, values := a.field(args, pairIndex), a.field(args, pairPlaces), a.field(args, pairValues)
		n, bytes, left := a.field(args, pairN), a.field(args, pairRow), a.register()
		a.put("SUB $4, %s", bytes)
		a.loop(n, 1, func() {
			a.scope(func() {
				u, v := a.rowAt(args, index, 0, pairUsers, false), a.rowAt(args, index, 4, pairItems, true)
				gu, gv := a.rowAt(args, places, 0, pairUserGradients, false), a.rowAt(args, places, 4, pairItemGradients, false)
				a.broadcast(values, slope.low) // and the pointer moves on
				a.move(bytes, left)
				a.spans(left, []neonSpan{8, 4, 1}, []register{u, v, gu, gv}, func(n neonSpan) {
					for i, row := range [][2]register{{v, gu}, {u, gv}} {
						x, g := wide(2*i), wide(2*i+1)
						a.loadOf(n, row[0], x)
						a.loadOf(n, row[1], g)
						a.productOf(n, x, slope, x)
						a.plusOf(n, g, g, x)
					}
					a.storeOf(n, wide(1), gu)
					a.storeOf(n, wide(3), gv)
				})
				for _, bias := range []register{gu, gv} {
					a.loadOf(1, bias, wide(0))
					a.plusOf(1, wide(0), wide(0), slope)
					a.storeOf(1, wide(0), bias)
				}
			})
			a.advance(8, index, places)
		})
	})
}
