package main

import (
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type avxm struct{ *avx }

// function writes one that takes a pointer to its arguments, of a type of package kernel; body gets it in a register.
func (s avxm) function(name, arguments string, body func(args register)) {
	if strings.ContainsAny(name[len(name)-1:], "0123456789") {
		name += "_"
	}
	body(s.avx.function(name, arguments, ""))
	s.done()
}

func (s avxm) size() int             { return s.avx.size }
func (s avxm) v(i int) vector        { return s.avx.v(i) }
func (s avxm) constant(i int) vector { return s.avx.v(15 - i) }

func (s avxm) block() int         { return s.avx.block }
func (s avxm) after(n, k int) int { return n + k }

func (s avxm) singles(n int) (out []vector) {
	for i := n; i < s.regs; i++ {
		out = append(out, s.v(i))
	}
	return out
}

// General registers are avo's, which finds processors' ones for them.

func (s avxm) register() register { return s.GP64() }
func (s avxm) scope(body func())  { body() }

func (s avxm) field(args register, offset int) register { return s.copyOf(s.held(args, offset)) }
func (s avxm) held(args register, offset int) register  { return memoryAt(args, offset) }

func (s avxm) copyOf(r register) register {
	to := s.GP64()
	s.MOVQ(r, to)
	return to
}

func (s avxm) sum(x, y register) register {
	to := s.copyOf(x)
	s.plus(y, to)
	return to
}

func (s avxm) clear(r register) { s.XORQ(r, r) }

// immediate is a number as an operand; registers are operands.
func immediate(x any) operand.Op {
	if n, ok := x.(int); ok {
		return operand.U32(n)
	}
	return x.(operand.Op)
}

func (s avxm) plus(by any, to ...register) {
	for _, r := range to {
		s.ADDQ(immediate(by), r)
	}
}

func (s avxm) minus(by any, to register) { s.SUBQ(immediate(by), to) }
func (s avxm) times(by, to register)     { s.IMULQ(by, to) }
func (s avxm) compare(x register, y any) { s.CMPQ(x, immediate(y)) }
func (s avxm) mark(label string)         { s.Label(label) }
func (s avxm) jump(label string)         { s.JMP(operand.LabelRef(label)) }

func (s avxm) number(from place) register {
	to := s.GP64()
	s.MOVLQSX(from, to)
	return to
}

func (s avxm) difference(x, y, to register) {
	s.MOVQ(x, to)
	s.SUBQ(y, to)
}

func (s avxm) following(list register) register {
	to := s.field(list, 0)
	s.plus(8, list)
	return to
}

func (s avxm) listed(base, list register, i int) place { return s.indexed(base, s.field(list, 8*i)) }

// rows has multiples of the distance in registers.
func (s avxm) rows(by register, n int) func(base register, f func(p place, i int)) {
	row := s.rowsOf(by, n)
	return func(base register, f func(p place, i int)) {
		for i := range n {
			f(row(base, i), i)
		}
	}
}

func (s avxm) branch(c condition, label string) {
	map[condition]func(operand.Op){below: s.JB, notBelow: s.JAE, above: s.JA, notAbove: s.JBE, equals: s.JE}[c](
		operand.LabelRef(label))
}

func (s avxm) ifZero(r register, label string) {
	if _, ok := r.(operand.Mem); ok {
		s.CMPQ(r, operand.U8(0))
		s.JE(operand.LabelRef(label))
		return
	}
	s.TESTQ(r, r)
	s.JZ(operand.LabelRef(label))
}

func (s avxm) loop(counter register, step int, body func()) {
	l := s.label("loop")
	s.mark(l)
	body()
	s.minus(step, counter)
	s.JNZ(operand.LabelRef(l))
}

// memoryAt is the memory so many bytes behind base, and scaled that at base + index x scale + bytes.
func memoryAt(base register, bytes int) operand.Mem {
	return operand.Mem{Base: base.(reg.Register), Disp: bytes}
}

func scaled(base, index register, scale, bytes int) operand.Mem {
	return operand.Mem{Base: base.(reg.Register), Index: index.(reg.Register), Scale: uint8(scale), Disp: bytes}
}

func (s avxm) at(base register, bytes int) place   { return memoryAt(base, bytes) }
func (s avxm) behind(p place, bytes int) place     { return p.(operand.Mem).Offset(bytes) }
func (s avxm) indexed(base, offset register) place { return scaled(base, offset, 1, 0) }

// Memory may only be the first operand of an instruction.

func memoryFirst(x, y vector) (first, second vector) {
	if _, ok := x.(operand.Mem); ok {
		return x, y
	}
	return y, x
}

func (s avxm) load(from place, to vector)         { s.VMOVUPS(from, to) }
func (s avxm) store(v vector, to place)           { s.VMOVUPS(v, to) }
func (s avxm) source(from place, _ vector) vector { return from }

func (s avxm) add(to, x, y vector) {
	x, y = memoryFirst(x, y)
	s.VADDPS(x, y, to)
}

func (s avxm) mul(to, x, y vector) {
	x, y = memoryFirst(x, y)
	s.VMULPS(x, y, to)
}

func (s avxm) sub(to, x, y vector) { s.VSUBPS(y, x, to) }
func (s avxm) div(to, x, y vector) { s.VDIVPS(y, x, to) }
func (s avxm) sqrt(to, x vector)   { s.VSQRTPS(x, to) }

func (s avxm) copy(to, from vector) { s.VMOVAPS(from, to) }

func (s avxm) fma(to, x, y vector) {
	x, y = memoryFirst(x, y)
	s.VFMADD231PS(x, y, to)
}

func (s avxm) affine(x, p, q, _ vector) vector {
	s.VFMADD213PS(q, p, x)
	return x
}

func (s avxm) fms(to, x, y vector) { s.VFNMADD231PS(y, x, to) }

// max is the first operand where one is NaN.
func (s avxm) max(to, x, y vector) {
	if _, ok := y.(operand.Mem); ok {
		x, y = y, x
	}
	s.VMAXPS(x, y, to)
}

func (s avxm) min(to, x, y vector) { s.VMINPS(x, y, to) }

func (s avxm) zero(v vector) {
	if s.avx.size == 64 {
		s.VPXORQ(v, v, v)
		return
	}
	s.VXORPS(v, v, v)
}

func (s avxm) keep(c comparison, to, from, x, y, spare vector) {
	code := operand.U8([]int{equal: 0x00, less: 0x11, greater: 0x1e}[c]) // ordered and quiet
	if s.avx.size == 64 {
		s.VCMPPS(code, y, x, reg.K1)
		s.VMOVAPS_Z(from, reg.K1, to)
		return
	}
	s.VCMPPS(code, y, x, spare)
	s.VANDPS(spare, from, to)
}

func (s avxm) constants(base register, offset int, to ...vector) {
	for i, v := range to {
		s.VBROADCASTSS(memoryAt(base, offset+4*i), v)
	}
}

func (s avxm) next(pointer register, to vector) {
	s.VBROADCASTSS(memoryAt(pointer, 0), to)
	s.plus(4, pointer)
}

func (s avxm) elements(pointer register, _ int, spare vector) func(i int) vector {
	return func(i int) vector {
		s.constants(pointer, 4*i, spare)
		return spare
	}
}
