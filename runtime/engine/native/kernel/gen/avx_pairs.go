package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
)

// bf16Pairs is product of values that are bfloat16 already, whose lower halves are zero: two inner steps at once, by
// VDPBF16PS. A pair is the upper halves of the values of two steps and is put together here: operands lie as those of
// product do. The instruction adds the product of upper halves first and rounds, then that of lower ones. Products of
// bfloat16 are exact as float32, so that with the first step's value above these are product's sums, bit for bit, but
// for numbers below the normal ones, which it takes for zero.
func (s *avx) bf16Pairs(rows, vectors int) {
	args := s.function(fmt.Sprintf("pairs%dx%d_", rows, vectors), "*productArgs",
		"sums a tile of a matrix product of bfloat16; see productArgs.")
	acc := func(i, j int) int { return i*vectors + j }
	b0 := rows * vectors
	a0 := b0 + vectors
	spare := s.regs - a0
	s.start(args, rows, vectors, acc, a0)

	a, b, next := s.field(args, 0), s.field(args, 8), s.GP64()
	row := s.rowsOf(s.field(args, 24), rows)
	ks, ldb := s.field(args, 32), s.field(args, 40)
	outer := s.field(args, 80)
	s.loop(outer, 1, func() {
		middle := s.field(args, 56)
		s.loop(middle, 1, func() {
			k := s.field(args, 48)
			odd, end := s.label("odd"), s.label("end")
			s.SHRQ(operand.U8(1), k)
			s.JZ(operand.LabelRef(odd))
			s.loop(k, 1, func() {
				s.LEAQ(indexed(a, ks, 1, 0), next)
				for j := range vectors {
					s.VPSRLD(operand.U8(16), indexed(b, ldb, 1, j*s.size), s.v(b0+j))
					s.VPORD(at(b, j*s.size), s.v(b0+j), s.v(b0+j))
				}
				for i := range rows {
					r := a0 + i%spare
					s.VPSRLD_BCST(operand.U8(16), row(next, i), s.v(r))
					s.VPORD_BCST(row(a, i), s.v(r), s.v(r))
					for j := range vectors {
						s.dot(r, b0+j, acc(i, j))
					}
				}
				s.LEAQ(indexed(next, ks, 1, 0), a)
				s.LEAQ(indexed(b, ldb, 2, 0), b)
			})
			s.Label(odd)
			s.MOVQ(at(args, 48), k)
			s.TESTQ(operand.U32(1), k)
			s.JZ(operand.LabelRef(end))
			s.step(row, a, b, rows, vectors, acc, b0, a0)
			s.ADDQ(ks, a)
			s.ADDQ(ldb, b)
			s.Label(end)
			s.ADDQ(at(args, 64), a)
			s.ADDQ(at(args, 72), b)
		})
		s.ADDQ(at(args, 88), a)
		s.ADDQ(at(args, 96), b)
	})
	s.finish(args, rows, vectors, acc, a0)
	s.done()
}

// dot is to += a * b of pairs of bfloat16, in 512 bits: VDPBF16PS, which Go's assembler does not know. These are its
// bytes (EVEX.512.F3.0F38.W0 52 /r; Intel's manual, volume 2, 2.7 and VDPBF16PS).
func (s *avx) dot(a, b, to int) {
	not := func(register, bit int) int { return ^register >> bit & 1 } // as EVEX has the upper bits of registers
	prefix := 0x62 |
		(not(to, 3)<<7|not(b, 4)<<6|not(b, 3)<<5|not(to, 4)<<4|2)<<8 |
		(^a&15<<3|1<<2|2)<<16 |
		(2<<5|not(a, 4)<<3)<<24
	code := 0x52 | (3<<6|to&7<<3|b&7)<<8
	s.Instruction(&ir.Instruction{Opcode: "LONG", Operands: []operand.Op{operand.U32(prefix)}})
	s.Instruction(&ir.Instruction{Opcode: "WORD", Operands: []operand.Op{operand.U16(code)}})
}
