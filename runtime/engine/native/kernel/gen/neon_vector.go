package main

// vec is eight values in two registers, or, with the same register twice, a constant of four times one value.
type vec struct{ low, high int }

// size is the bytes of a vec.
const size = 32

// wide is vector i of sixteen.
func wide(i int) vec { return vec{2 * i, 2*i + 1} }

// same is a register that holds one value four times.
func same(q int) vec { return vec{q, q} }

func (a *neon) load(base register, offset int, to vec) {
	a.put("FLDPQ %d(%s), (F%d, F%d)", offset, base, to.low, to.high)
}

func (a *neon) store(from vec, base register, offset int) {
	a.put("FSTPQ (F%d, F%d), %d(%s)", from.low, from.high, offset, base)
}

// loadFour and storeFour are for a register alone.
func (a *neon) loadFour(base register, offset, to int) {
	a.put("FMOVQ %d(%s), F%d", offset, base, to)
}

func (a *neon) storeFour(from int, base register, offset int) {
	a.put("FMOVQ F%d, %d(%s)", from, offset, base)
}

// constants loads values that lie one behind the other, from an offset on, into registers of their own.
func (a *neon) constants(base register, offset int, to ...int) {
	a.scope(func() {
		p := a.register()
		a.put("ADD $%d, %s, %s", offset, base, p)
		for _, q := range to {
			a.broadcast(p, q)
		}
	})
}

// broadcast fills a register with a value and moves the pointer to the next.
func (a *neon) broadcast(p register, to int) { a.put("VLD1R.P 4(%s), [V%d.S4]", p, to) }

func (a *neon) zeroFour(q int) { a.put("VEOR V%d.B16, V%d.B16, V%d.B16", q, q, q) }

func (a *neon) copyFour(from, to int) { a.put("VMOV V%d.B16, V%d.B16", from, to) }

func (a *neon) zero(v vec) {
	a.zeroFour(v.low)
	if v.high != v.low {
		a.zeroFour(v.high)
	}
}

// copy is to = from.
func (a *neon) copy(to, from vec) {
	a.copyFour(from.low, to.low)
	a.copyFour(from.high, to.high)
}

// both writes an instruction for either half.
func (a *neon) both(f func(to, x, y int) instruction, to, x, y vec) {
	a.word(f(to.low, x.low, y.low))
	a.word(f(to.high, x.high, y.high))
}

func (a *neon) sum(to, x, y vec)        { a.both(fadd, to, x, y) }
func (a *neon) difference(to, x, y vec) { a.both(fsub, to, x, y) } // x - y
func (a *neon) times(to, x, y vec)      { a.both(fmul, to, x, y) }
func (a *neon) quotient(to, x, y vec)   { a.both(fdiv, to, x, y) }
func (a *neon) larger(to, x, y vec)     { a.both(fmax, to, x, y) } // NaN stays NaN
func (a *neon) smaller(to, x, y vec)    { a.both(fmin, to, x, y) }

func (a *neon) root(to, x vec) {
	a.word(fsqrt(to.low, x.low))
	a.word(fsqrt(to.high, x.high))
}

// fma is to += x y, rounded once.
func (a *neon) fma(to, x, y vec) {
	a.put("VFMLA V%d.S4, V%d.S4, V%d.S4", y.low, x.low, to.low)
	a.put("VFMLA V%d.S4, V%d.S4, V%d.S4", y.high, x.high, to.high)
}

// fms is to -= x y, rounded once.
func (a *neon) fms(to, x, y vec) {
	a.put("VFMLS V%d.S4, V%d.S4, V%d.S4", y.low, x.low, to.low)
	a.put("VFMLS V%d.S4, V%d.S4, V%d.S4", y.high, x.high, to.high)
}

// keep is to = from where compare holds of x and y, else 0; mask is overwritten.
func (a *neon) keep(compare func(to, x, y int) instruction, mask, x, y, from, to vec) {
	a.both(compare, mask, x, y)
	a.put("VAND V%d.B16, V%d.B16, V%d.B16", mask.low, from.low, to.low)
	a.put("VAND V%d.B16, V%d.B16, V%d.B16", mask.high, from.high, to.high)
}
