package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// halves are the kernels of bfloat16, which is the upper half of a float32.
func (s *avx) halves() {
	s.round()
	s.shorten()
	s.widen()
}

// unordered is the comparison that holds for what is not a number.
const unordered = 0x03

// round adds just below a half of the last place that is kept, and the bit of that place: ties go to even. A value that
// is not a number is added to itself instead, which makes it a quiet one.
func (s *avx) round() {
	const tie = 15
	s.each("round", "is dst = a, rounded to bfloat16.", 2, func(args reg.Register) {
		s.broadcast(at(args, scalars), tie)
	}, func(m func(array, i int) operand.Mem, i int) {
		x, sum, odd, nan := 4*i, 4*i+1, 4*i+2, 4*i+3
		s.load(m(srcA, i), x)
		s.VPSLLD(operand.U8(15), s.v(x), s.v(sum))
		s.VPSRLD(operand.U8(31), s.v(sum), s.v(sum))
		s.VPADDD(s.v(tie), s.v(sum), s.v(sum))
		s.VPADDD(s.v(x), s.v(sum), s.v(sum))
		s.add(x, x, nan)
		if s.size == 64 {
			s.VCMPPS(operand.U8(unordered), s.v(x), s.v(x), reg.K1)
			s.VMOVAPS(s.v(nan), reg.K1, s.v(sum))
		} else {
			s.VCMPPS(operand.U8(unordered), s.v(x), s.v(x), s.v(odd))
			s.VBLENDVPS(s.v(odd), s.v(nan), s.v(sum), s.v(sum))
		}
		s.VPSRLD(operand.U8(16), s.v(sum), s.v(sum))
		s.VPSLLD(operand.U8(16), s.v(sum), s.v(sum))
		s.store(sum, m(dst, i))
	})
}

// shorten writes upper halves. It walks from the start, so that dst may be the memory of a.
func (s *avx) shorten() {
	args := s.function("shorten", "*elementArgs", "is dst = the upper halves of a.")
	dst, a, n := s.field(args, 0), s.field(args, 8), s.field(args, 32)
	s.loop(n, 64, func() {
		for i := range 64 / s.size {
			s.load(at(a, i*s.size), i)
			s.VPSRLD(operand.U8(16), s.v(i), s.v(i))
		}
		if s.size == 64 {
			s.VPMOVDW(s.v(0), at(dst, 0))
		} else {
			s.VPACKUSDW(s.v(1), s.v(0), s.v(0))
			s.VPERMQ(operand.U8(0xd8), s.v(0), s.v(0)) // which took turns between the two
			s.store(0, at(dst, 0))
		}
		s.advance(64, a)
		s.advance(32, dst)
	})
	s.done()
}

// widen writes rows of halves as values. Arguments: see halvesArgs.
func (s *avx) widen() {
	args := s.function("widen", "*halvesArgs", "is dst = src, as float32; see halvesArgs.")
	dst, src, rows := s.field(args, 0), s.field(args, 8), s.field(args, 16)
	s.loop(rows, 1, func() {
		to, from := s.GP64(), s.GP64()
		s.MOVQ(dst, to)
		s.MOVQ(src, from)
		n := s.field(args, 24)
		s.loop(n, 64, func() {
			for i := range 64 / s.size {
				s.VPMOVZXWD(at(from, i*s.size/2), s.v(i))
				s.VPSLLD(operand.U8(16), s.v(i), s.v(i))
				s.store(i, at(to, i*s.size))
			}
			s.advance(64, to)
			s.advance(32, from)
		})
		s.ADDQ(at(args, 32), dst)
		s.ADDQ(at(args, 40), src)
	})
	s.done()
}
