package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rounded chooses the quiet ones at the end.
func (s *avx) roundToHalf(x, tie, sum, odd, nan vector) vector {
	const unordered = 0x03 // the comparison that holds for what is not a number
	s.VPSLLD(operand.U8(15), x, sum)
	s.VPSRLD(operand.U8(31), sum, sum)
	s.VPADDD(tie, sum, sum)
	s.VPADDD(x, sum, sum)
	s.add(nan, x, x)
	if s.size() == 64 {
		s.VCMPPS(operand.U8(unordered), x, x, reg.K1)
		s.VMOVAPS(nan, reg.K1, sum)
	} else {
		s.VCMPPS(operand.U8(unordered), x, x, odd)
		s.VBLENDVPS(odd, nan, sum, sum)
	}
	s.VPSRLD(operand.U8(16), sum, sum)
	s.VPSLLD(operand.U8(16), sum, sum)
	return sum
}

func (s *avx) shorten(from, to place) {
	first := s.v(0)
	for i := range 64 / s.size() {
		s.load(s.offset(from, i*s.size()), s.v(i))
		s.VPSRLD(operand.U8(16), s.v(i), s.v(i))
	}
	if s.size() == 64 {
		s.VPMOVDW(first, to)
		return
	}
	s.VPACKUSDW(s.v(1), first, first)
	s.VPERMQ(operand.U8(0xd8), first, first) // which took turns between the two
	s.store(first, to)
}

func (s *avx) prepareWiden() func(from, to place) {
	return func(from, to place) {
		for i := range 64 / s.size() {
			s.VPMOVZXWD(s.offset(from, i*s.size()/2), s.v(i))
			s.VPSLLD(operand.U8(16), s.v(i), s.v(i))
			s.store(s.v(i), s.offset(to, i*s.size()))
		}
	}
}

func (s *avx) transposeSquare() int {
	if s.size() == 64 {
		s.shuffle16()
		return 0
	}
	s.shuffle8()
	return 8
}

// unpack interleaves pairs of rows, then pairs of pairs: from registers in to registers mid and back.
func (s *avx) unpack(n, in, mid int) {
	for i := 0; i < n; i += 2 {
		s.VUNPCKLPS(s.v(in+i+1), s.v(in+i), s.v(mid+i))
		s.VUNPCKHPS(s.v(in+i+1), s.v(in+i), s.v(mid+i+1))
	}
	for i := 0; i < n; i += 4 {
		s.VUNPCKLPD(s.v(mid+i+2), s.v(mid+i), s.v(in+i))
		s.VUNPCKHPD(s.v(mid+i+2), s.v(mid+i), s.v(in+i+1))
		s.VUNPCKLPD(s.v(mid+i+3), s.v(mid+i+1), s.v(in+i+2))
		s.VUNPCKHPD(s.v(mid+i+3), s.v(mid+i+1), s.v(in+i+3))
	}
}

func (s *avx) shuffle16() {
	s.unpack(16, 0, 16)
	even, odd := operand.U8(0x88), operand.U8(0xdd)
	for c := range 4 {
		s.VSHUFF32X4(even, s.v(4+c), s.v(c), s.v(16+c))
		s.VSHUFF32X4(odd, s.v(4+c), s.v(c), s.v(20+c))
		s.VSHUFF32X4(even, s.v(12+c), s.v(8+c), s.v(24+c))
		s.VSHUFF32X4(odd, s.v(12+c), s.v(8+c), s.v(28+c))
	}
	for c := range 4 {
		s.VSHUFF32X4(even, s.v(24+c), s.v(16+c), s.v(c))
		s.VSHUFF32X4(odd, s.v(24+c), s.v(16+c), s.v(8+c))
		s.VSHUFF32X4(even, s.v(28+c), s.v(20+c), s.v(4+c))
		s.VSHUFF32X4(odd, s.v(28+c), s.v(20+c), s.v(12+c))
	}
}

func (s *avx) shuffle8() {
	s.unpack(8, 0, 8)
	for c := range 4 {
		s.VPERM2F128(operand.U8(0x20), s.v(4+c), s.v(c), s.v(8+c))
		s.VPERM2F128(operand.U8(0x31), s.v(4+c), s.v(c), s.v(12+c))
	}
}
