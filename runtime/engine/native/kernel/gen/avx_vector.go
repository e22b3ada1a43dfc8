package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// zmm has the vector registers; those of AVX2 are their lower halves.
var zmm = []reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13,
	reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26,
	reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

func (s *avx) v(i int) vector {
	if s.bytes == 64 {
		return zmm[i]
	}
	return zmm[i].AsY()
}

func (s *avx) size() int             { return s.bytes }
func (s *avx) constant(i int) vector { return s.v(15 - i) }

func (s *avx) block() int               { return s.inBlock }
func (s *avx) vectorAfter(n, k int) int { return n + k }

func (s *avx) repeatedVectors(n int) (out []vector) {
	for i := n; i < s.regs; i++ {
		out = append(out, s.v(i))
	}
	return out
}

// memoryFirst orders the operands of a sum or a product: only the first may be in memory.
func memoryFirst(x, y vector) (first, second vector) {
	if _, ok := x.(operand.Mem); ok {
		return x, y
	}
	return y, x
}

func (s *avx) load(from place, to vector)                { s.VMOVUPS(from, to) }
func (s *avx) store(v vector, to place)                  { s.VMOVUPS(v, to) }
func (s *avx) memoryOperand(from place, _ vector) vector { return from }

func (s *avx) add(to, x, y vector) {
	x, y = memoryFirst(x, y)
	s.VADDPS(x, y, to)
}

func (s *avx) mul(to, x, y vector) {
	x, y = memoryFirst(x, y)
	s.VMULPS(x, y, to)
}

func (s *avx) sub(to, x, y vector) { s.VSUBPS(y, x, to) }
func (s *avx) div(to, x, y vector) { s.VDIVPS(y, x, to) }
func (s *avx) sqrt(to, x vector)   { s.VSQRTPS(x, to) }

func (s *avx) copy(to, from vector) { s.VMOVAPS(from, to) }

func (s *avx) fma(to, x, y vector) {
	x, y = memoryFirst(x, y)
	s.VFMADD231PS(x, y, to)
}

func (s *avx) affine(x, p, q, _ vector) vector {
	s.VFMADD213PS(q, p, x)
	return x
}

func (s *avx) fms(to, x, y vector) { s.VFNMADD231PS(y, x, to) }

// max relies on VMAXPS, which returns its first operand if one is NaN.
func (s *avx) max(to, x, y vector) {
	if _, ok := y.(operand.Mem); ok {
		x, y = y, x
	}
	s.VMAXPS(x, y, to)
}

func (s *avx) min(to, x, y vector) { s.VMINPS(x, y, to) }

func (s *avx) zero(v vector) {
	if s.bytes == 64 {
		s.VPXORQ(v, v, v)
		return
	}
	s.VXORPS(v, v, v)
}

func (s *avx) selectWhere(c comparison, to, from, x, y, spare vector) {
	code := operand.U8([]int{equal: 0x00, less: 0x11, greater: 0x1e}[c]) // ordered and quiet
	if s.bytes == 64 {
		s.VCMPPS(code, y, x, reg.K1)
		s.VMOVAPS_Z(from, reg.K1, to)
		return
	}
	s.VCMPPS(code, y, x, spare)
	s.VANDPS(spare, from, to)
}

func (s *avx) toPower(v vector) { s.VPSLLD(operand.U8(23), v, v) }

func (s *avx) broadcastEach(base register, offset int, to ...vector) {
	for i, v := range to {
		s.VBROADCASTSS(memoryAt(base, offset+4*i), v)
	}
}

func (s *avx) broadcastNext(pointer register, to vector) {
	s.VBROADCASTSS(memoryAt(pointer, 0), to)
	s.plus(4, pointer)
}

func (s *avx) factors(pointer register, _ int, spare vector) func(i int) vector {
	return func(i int) vector {
		s.broadcastEach(pointer, 4*i, spare)
		return spare
	}
}
