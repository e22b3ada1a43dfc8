package main

import "fmt"

type neonm struct{ *neon }

// address is memory so many bytes behind a register.
type address struct {
	base  register
	bytes int
}

// Asm is how Go's assembler writes it.
func (p address) Asm() string { return fmt.Sprintf("%d(%s)", p.bytes, p.base) }

// Asm names both registers.
func (v vec) Asm() string { return fmt.Sprintf("V%d, V%d", v.low, v.high) }

func (a neonm) function(name, arguments string, body func(args register)) {
	a.neon.function(name, arguments, "", body)
}

func (a neonm) size() int             { return size }
func (a neonm) v(i int) vector        { return wide(i) }
func (a neonm) constant(i int) vector { return same(31 - i) }

func (a neonm) block() int         { return 4 }
func (a neonm) after(n, k int) int { return n + (k+1)/2 }

func (a neonm) singles(n int) (out []vector) {
	for q := 2 * n; q < 32; q++ {
		out = append(out, same(q))
	}
	return out
}

func (a neonm) register() register                       { return a.neon.register() }
func (a neonm) field(args register, offset int) register { return a.neon.field(args, offset) }
func (a neonm) held(args register, offset int) register  { return a.neon.field(args, offset) }

func (a neonm) copyOf(r register) register {
	to := a.register()
	a.put("MOVD %s, %s", r, to)
	return to
}

func (a neonm) sum(x, y register) register {
	to := a.register()
	a.put("ADD %s, %s, %s", y, x, to)
	return to
}

func (a neonm) clear(r register) { a.put("MOVD $0, %s", r) }

// number is one as an operand; registers are operands.
func number(x any) any {
	if n, ok := x.(int); ok {
		return fmt.Sprintf("$%d", n)
	}
	return x
}

func (a neonm) plus(by any, to ...register) {
	for _, r := range to {
		a.put("ADD %s, %s", number(by), r)
	}
}

func (a neonm) minus(by any, to register) { a.put("SUB %s, %s", number(by), to) }
func (a neonm) times(by, to register)     { a.put("MUL %s, %s", by, to) }
func (a neonm) compare(x register, y any) { a.put("CMP %s, %s", number(y), x) }
func (a neonm) jump(label string)         { a.put("B %s", label) }

func (a neonm) number(from place) register {
	to := a.register()
	a.put("MOVW %s, %s", from.Asm(), to)
	return to
}

func (a neonm) difference(x, y, to register) { a.put("SUB %s, %s, %s", y, x, to) }

func (a neonm) following(list register) register {
	to := a.register()
	a.put("MOVD.P 8(%s), %s", list, to)
	return to
}

func (a neonm) listed(base, list register, i int) place {
	p := a.field(list, 8*i)
	a.plus(base, p)
	return a.at(p, 0)
}

// rows moves base.
func (a neonm) rows(by register, n int) func(base register, f func(p place, i int)) {
	return func(base register, f func(p place, i int)) {
		for i := range n {
			f(a.at(base, 0), i)
			if i+1 < n {
				a.plus(by, base)
			}
		}
	}
}

func (a neonm) branch(c condition, label string) {
	a.put("%s %s", []string{below: "BLO", notBelow: "BHS", above: "BHI", notAbove: "BLS", equals: "BEQ"}[c], label)
}

func (a neonm) ifZero(r register, label string) { a.put("CBZ %s, %s", r, label) }

func (a neonm) loop(counter register, step int, body func()) {
	a.scope(func() { a.neon.loop(counter, step, body) })
}

func (a neonm) at(base register, bytes int) place { return address{base, bytes} }

func (a neonm) behind(p place, bytes int) place {
	return address{p.(address).base, p.(address).bytes + bytes}
}

func (a neonm) indexed(base, offset register) place { return a.at(a.sum(base, offset), 0) }

func (a neonm) load(from place, to vector) {
	v := to.(vec)
	a.put("FLDPQ %s, (F%d, F%d)", from.Asm(), v.low, v.high)
}

func (a neonm) store(v vector, to place) {
	a.put("FSTPQ (F%d, F%d), %s", v.(vec).low, v.(vec).high, to.Asm())
}

func (a neonm) source(from place, spare vector) vector {
	a.load(from, spare)
	return spare
}

// both writes an instruction for either half.
func (a neonm) both(f func(to, x, y int) instruction, to, x, y vector) {
	a.neon.both(f, to.(vec), x.(vec), y.(vec))
}

func (a neonm) add(to, x, y vector) { a.both(fadd, to, x, y) }
func (a neonm) sub(to, x, y vector) { a.both(fsub, to, x, y) }
func (a neonm) mul(to, x, y vector) { a.both(fmul, to, x, y) }
func (a neonm) div(to, x, y vector) { a.both(fdiv, to, x, y) }
func (a neonm) max(to, x, y vector) { a.both(fmax, to, x, y) }
func (a neonm) min(to, x, y vector) { a.both(fmin, to, x, y) }
func (a neonm) sqrt(to, x vector)   { a.root(to.(vec), x.(vec)) }

func (a neonm) zero(v vector) { a.neon.zero(v.(vec)) }

func (a neonm) copy(to, from vector) { a.neon.copy(to.(vec), from.(vec)) }

func (a neonm) fma(to, x, y vector) {
	e, ok := y.(value)
	if !ok {
		a.neon.fma(to.(vec), x.(vec), y.(vec))
		return
	}
	a.word(fmlaElement(to.(vec).low, x.(vec).low, e.register, e.lane))
	a.word(fmlaElement(to.(vec).high, x.(vec).high, e.register, e.lane))
}

func (a neonm) affine(x, p, q, spare vector) vector {
	a.copy(spare, q)
	a.fma(spare, x, p)
	return spare
}

func (a neonm) fms(to, x, y vector) { a.neon.fms(to.(vec), x.(vec), y.(vec)) }

func (a neonm) keep(c comparison, to, from, x, y, spare vector) {
	compare := fcmgt
	switch c {
	case equal:
		compare = fcmeq
	case less:
		x, y = y, x
	}
	a.neon.keep(compare, spare.(vec), x.(vec), y.(vec), from.(vec), to.(vec))
}

func (a neonm) constants(base register, offset int, to ...vector) {
	a.scope(func() {
		p := a.register()
		a.put("ADD $%d, %s, %s", offset, base, p)
		for _, v := range to {
			a.next(p, v)
		}
	})
}

func (a neonm) next(pointer register, to vector) {
	a.put("VLD1R.P 4(%s), [V%d.S4]", pointer, to.(vec).low)
}

// value is one of the four of a register.
type value struct{ register, lane int }

// Asm is how Arm writes it.
func (v value) Asm() string { return fmt.Sprintf("V%d[%d]", v.register, v.lane) }

func (a neonm) elements(pointer register, n int, spare vector) func(i int) vector {
	all := spare.(vec).low
	if n == 1 {
		a.put("FMOVS (%s), F%d", pointer, all)
	} else {
		a.loadFour(pointer, 0, all)
	}
	return func(i int) vector { return value{all, i} }
}
