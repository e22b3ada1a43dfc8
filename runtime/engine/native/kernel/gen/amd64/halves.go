package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// halves are the kernels of bfloat16, which is the upper half of a float32.
func (s isa) halves() {
	s.round()
	s.shorten()
	s.widen()
}

// unordered is the comparison that holds for what is not a number.
const unordered = 0x03

// round adds just below a half of the last place that is kept, and the bit of that place: ties go to even. A value that
// is not a number is added to itself instead, which makes it a quiet one.
func (s isa) round() {
	const tie = 15
	s.each("round", "is dst = a, rounded to bfloat16.", 2, func(args reg.Register) {
		s.broadcast(at(args, scalars), tie)
	}, func(m func(array, i int) operand.Mem, i int) {
		x, sum, odd, nan := 4*i, 4*i+1, 4*i+2, 4*i+3
		s.load(m(srcA, i), x)
		VPSLLD(operand.U8(15), s.v(x), s.v(sum))
		VPSRLD(operand.U8(31), s.v(sum), s.v(sum))
		VPADDD(s.v(tie), s.v(sum), s.v(sum))
		VPADDD(s.v(x), s.v(sum), s.v(sum))
		s.add(x, x, nan)
		if s.size == 64 {
			VCMPPS(operand.U8(unordered), s.v(x), s.v(x), reg.K1)
			VMOVAPS(s.v(nan), reg.K1, s.v(sum))
		} else {
			VCMPPS(operand.U8(unordered), s.v(x), s.v(x), s.v(odd))
			VBLENDVPS(s.v(odd), s.v(nan), s.v(sum), s.v(sum))
		}
		VPSRLD(operand.U8(16), s.v(sum), s.v(sum))
		VPSLLD(operand.U8(16), s.v(sum), s.v(sum))
		s.store(sum, m(dst, i))
	})
}

// shorten writes upper halves. It walks from the start, so that dst may be the memory of a.
func (s isa) shorten() {
	args := s.function("shorten", "is dst = the upper halves of a.")
	dst, a, n := field(args, 0), field(args, 8), field(args, 32)
	loop(n, 64, func() {
		for i := range 64 / s.size {
			s.load(at(a, i*s.size), i)
			VPSRLD(operand.U8(16), s.v(i), s.v(i))
		}
		if s.size == 64 {
			VPMOVDW(s.v(0), at(dst, 0))
		} else {
			VPACKUSDW(s.v(1), s.v(0), s.v(0))
			VPERMQ(operand.U8(0xd8), s.v(0), s.v(0)) // which took turns between the two
			s.store(0, at(dst, 0))
		}
		advance(64, a)
		advance(32, dst)
	})
	done()
}

// widen writes rows of halves as values. Arguments: see halvesArgs.
func (s isa) widen() {
	args := s.function("widen", "is dst = src, as float32; see halvesArgs.")
	dst, src, rows := field(args, 0), field(args, 8), field(args, 16)
	loop(rows, 1, func() {
		to, from := GP64(), GP64()
		MOVQ(dst, to)
		MOVQ(src, from)
		n := field(args, 24)
		loop(n, 64, func() {
			for i := range 64 / s.size {
				VPMOVZXWD(at(from, i*s.size/2), s.v(i))
				VPSLLD(operand.U8(16), s.v(i), s.v(i))
				s.store(i, at(to, i*s.size))
			}
			advance(64, to)
			advance(32, from)
		})
		ADDQ(at(args, 32), dst)
		ADDQ(at(args, 40), src)
	})
	done()
}
