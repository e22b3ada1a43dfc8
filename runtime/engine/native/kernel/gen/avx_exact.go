package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var xmm = []reg.VecPhysical{
	reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7,
	reg.X8, reg.X9, reg.X10, reg.X11, reg.X12, reg.X13, reg.X14, reg.X15,
}

// exactSquares adds the squares of a, in eight sums of float64 at dst, to what is there.
func (s *avx) exactSquares() {
	args := s.function("exactSquares", "*elementArgs", "adds a a in eight sums of float64 at dst.")
	out, a, n := s.field(args, 0), s.field(args, 8), s.field(args, 32)
	for i := range 2 {
		s.VMOVUPD(at(out, 32*i), ymm[i])
	}
	s.loop(n, 32, func() {
		for i := range 2 {
			s.VCVTPS2PD(at(a, 16*i), ymm[2+i])
			s.VMULPD(ymm[2+i], ymm[2+i], ymm[2+i])
			s.VADDPD(ymm[2+i], ymm[i], ymm[i])
		}
		s.advance(32, a)
	})
	for i := range 2 {
		s.VMOVUPD(ymm[i], at(out, 32*i))
	}
	s.done()
}

// changes marks what is owed, eight values a byte. The arguments: see changeArgs.
func (s *avx) changes(sent bool) {
	name, doc := "changes", "writes x - began to local, and marks what of it is at least factor |x|."
	if sent {
		name, doc = "changesSent", "is changes of what was not sent."
	}
	args := s.function(name, "*changeArgs", doc)
	x, began, local, marks, n := s.field(args, 0), s.field(args, 8), s.field(args, 24), s.field(args, 32), s.field(args, 40)
	arrays := []reg.Register{x, began, local}
	var sentBefore reg.Register
	if sent {
		sentBefore = s.field(args, 16)
		arrays = append(arrays, sentBefore)
	}
	const zeros, sign, factor = 15, 14, 13
	const notLess, notEqual = 0x15, 0x04 // also of what cannot be compared
	s.broadcast(at(args, 48), factor)
	s.zero(zeros)
	s.VPCMPEQD(ymm[sign], ymm[sign], ymm[sign])
	s.VPSRLD(operand.U8(1), ymm[sign], ymm[sign]) // all bits but the sign
	mask := s.GP32()
	s.loop(n, 8, func() {
		s.load(at(x, 0), 0)
		s.sub(at(began, 0), 0, 1)
		s.store(1, at(local, 0))
		if sent {
			s.sub(at(sentBefore, 0), 1, 1)
		}
		s.VANDPS(ymm[0], ymm[sign], ymm[2])
		s.mul(factor, 2, 2)
		s.VANDPS(ymm[1], ymm[sign], ymm[3])
		s.VCMPPS(operand.U8(notLess), ymm[2], ymm[3], ymm[3])
		s.VCMPPS(operand.U8(notEqual), ymm[zeros], ymm[1], ymm[1])
		s.VANDPS(ymm[1], ymm[3], ymm[3])
		s.VMOVMSKPS(ymm[3], mask)
		s.MOVB(mask.As8(), at(marks, 0))
		s.advance(32, arrays...)
		s.advance(1, marks)
	})
	s.done()
}
