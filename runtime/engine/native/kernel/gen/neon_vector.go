package main

import "fmt"

// vec is a vector of eight values in two registers, or a repeated vector: the same register twice.
type vec struct{ low, high int }

// Asm returns both registers.
func (v vec) Asm() string { return fmt.Sprintf("V%d, V%d", v.low, v.high) }

// size is the bytes of a vec.
const size = 32

// wide returns vector i of sixteen.
func wide(i int) vec { return vec{2 * i, 2*i + 1} }

// same returns the repeated vector in register q.
func same(q int) vec { return vec{q, q} }

func (a *neon) size() int             { return size }
func (a *neon) v(i int) vector        { return wide(i) }
func (a *neon) constant(i int) vector { return same(31 - i) }

func (a *neon) block() int               { return 4 }
func (a *neon) vectorAfter(n, k int) int { return n + (k+1)/2 }

func (a *neon) repeatedVectors(n int) (out []vector) {
	for q := 2 * n; q < 32; q++ {
		out = append(out, same(q))
	}
	return out
}

func (a *neon) load(from place, to vector) {
	v := to.(vec)
	a.put("FLDPQ %s, (F%d, F%d)", from.Asm(), v.low, v.high)
}

func (a *neon) store(v vector, to place) {
	a.put("FSTPQ (F%d, F%d), %s", v.(vec).low, v.(vec).high, to.Asm())
}

func (a *neon) memoryOperand(from place, spare vector) vector {
	a.load(from, spare)
	return spare
}

// both writes an instruction for both registers. named does so for one that the assembler has.
func (a *neon) both(f func(to, x, y int) instruction, to, x, y vector) {
	t, v, w := to.(vec), x.(vec), y.(vec)
	a.word(f(t.low, v.low, w.low))
	a.word(f(t.high, v.high, w.high))
}

func (a *neon) named(name, form string, to, x, y vector) {
	t, v, w := to.(vec), x.(vec), y.(vec)
	a.put("%s V%d.%s, V%d.%s, V%d.%s", name, w.low, form, v.low, form, t.low, form)
	a.put("%s V%d.%s, V%d.%s, V%d.%s", name, w.high, form, v.high, form, t.high, form)
}

// loadFour, storeFour, zeroFour and copyFour are for one register.
func (a *neon) loadFour(base register, offset, to int) {
	a.put("FMOVQ %d(%s), F%d", offset, base, to)
}

func (a *neon) storeFour(from int, base register, offset int) {
	a.put("FMOVQ F%d, %d(%s)", from, offset, base)
}

func (a *neon) zeroFour(q int) { a.put("VEOR V%d.B16, V%d.B16, V%d.B16", q, q, q) }

func (a *neon) copyFour(from, to int) { a.put("VMOV V%d.B16, V%d.B16", from, to) }

func (a *neon) add(to, x, y vector) { a.both(fadd, to, x, y) }
func (a *neon) sub(to, x, y vector) { a.both(fsub, to, x, y) }
func (a *neon) mul(to, x, y vector) { a.both(fmul, to, x, y) }
func (a *neon) div(to, x, y vector) { a.both(fdiv, to, x, y) }
func (a *neon) max(to, x, y vector) { a.both(fmax, to, x, y) }
func (a *neon) min(to, x, y vector) { a.both(fmin, to, x, y) }
func (a *neon) sqrt(to, x vector) {
	a.word(fsqrt(to.(vec).low, x.(vec).low))
	a.word(fsqrt(to.(vec).high, x.(vec).high))
}

func (a *neon) zero(v vector) {
	a.zeroFour(v.(vec).low)
	if v.(vec).high != v.(vec).low {
		a.zeroFour(v.(vec).high)
	}
}

func (a *neon) copy(to, from vector) {
	a.copyFour(from.(vec).low, to.(vec).low)
	a.copyFour(from.(vec).high, to.(vec).high)
}

func (a *neon) fma(to, x, y vector) {
	e, ok := y.(value)
	if !ok {
		a.named("VFMLA", "S4", to, x, y)
		return
	}
	a.word(fmlaElement(to.(vec).low, x.(vec).low, e.register, e.lane))
	a.word(fmlaElement(to.(vec).high, x.(vec).high, e.register, e.lane))
}

func (a *neon) affine(x, p, q, spare vector) vector {
	a.copy(spare, q)
	a.fma(spare, x, p)
	return spare
}

func (a *neon) fms(to, x, y vector) { a.named("VFMLS", "S4", to, x, y) }

func (a *neon) selectWhere(c comparison, to, from, x, y, spare vector) {
	compare := fcmgt
	switch c {
	case equal:
		compare = fcmeq
	case less:
		x, y = y, x
	}
	a.both(compare, spare, x, y)
	a.named("VAND", "B16", to, from, spare)
}

func (a *neon) toPower(v vector) {
	for _, q := range []int{v.(vec).low, v.(vec).high} {
		a.put("VSHL $23, V%d.S4, V%d.S4", q, q)
	}
}

func (a *neon) broadcastEach(base register, offset int, to ...vector) {
	a.scope(func() {
		p := a.register()
		a.put("ADD $%d, %s, %s", offset, base, p)
		for _, v := range to {
			a.broadcastNext(p, v)
		}
	})
}

func (a *neon) broadcastNext(pointer register, to vector) {
	a.put("VLD1R.P 4(%s), [V%d.S4]", pointer, to.(vec).low)
}

// value is one of the four values of a register.
type value struct{ register, lane int }

// Asm returns the register and the lane.
func (v value) Asm() string { return fmt.Sprintf("V%d[%d]", v.register, v.lane) }

func (a *neon) factors(pointer register, n int, spare vector) func(i int) vector {
	all := spare.(vec).low
	if n == 1 {
		a.put("FMOVS (%s), F%d", pointer, all)
	} else {
		a.loadFour(pointer, 0, all)
	}
	return func(i int) vector { return value{all, i} }
}
