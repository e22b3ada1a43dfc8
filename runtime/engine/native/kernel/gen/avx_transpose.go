package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// transpose moves square blocks, one vector wide: arguments dst 0, src 8, bytes of a row of dst 16 and of src 24.
func (s *avx) transpose() {
	args := s.function("transpose", "*transposeArgs", "transposes one square block of a vector's width; see transposeArgs.")
	dst, src, ds, ss := s.field(args, 0), s.field(args, 8), s.field(args, 16), s.field(args, 24)
	n := s.size / 4
	for i := range n {
		s.load(at(src, 0), i)
		if i+1 < n {
			s.ADDQ(ss, src)
		}
	}
	if s.size == 64 {
		s.shuffle16()
	} else {
		s.shuffle8()
	}
	base := 0
	if s.size == 32 {
		base = 8
	}
	for i := range n {
		s.store(base+i, at(dst, 0))
		if i+1 < n {
			s.ADDQ(ds, dst)
		}
	}
	s.done()
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
