package main

import (
	"github.com/mmcloughlin/avo/operand"
)

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
