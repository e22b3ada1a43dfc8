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
	b0 := rows * vectors
	a0 := b0 + vectors
	s.function(fmt.Sprintf("pairs%dx%d", rows, vectors), "*productArgs", func(args register) {
		t := tile{s, args, rows, vectors}
		t.start()
		a, b, next := s.field(args, productA), s.field(args, productB), s.register()
		row, single := s.rowsOf(s.field(args, productRS), rows), s.step(s.adjacent, rows, vectors)
		ks, ldb := s.field(args, productKS), s.field(args, productLDB)
		nested(s, args, a, []register{b}, func() {
			k := s.field(args, productK)
			odd, end := s.label("odd"), s.label("end")
			s.SHRQ(operand.U8(1), k)
			s.JZ(operand.LabelRef(odd))
			s.loop(k, 1, func() {
				s.LEAQ(scaled(a, ks, 1, 0), next)
				for j := range vectors {
					s.VPSRLD(operand.U8(16), scaled(b, ldb, 1, j*s.size()), s.v(b0+j))
					s.VPORD(memoryAt(b, j*s.size()), s.v(b0+j), s.v(b0+j))
				}
				for i := range rows {
					r := a0 + i%(s.regs-a0)
					s.VPSRLD_BCST(operand.U8(16), row(next, i), s.v(r))
					s.VPORD_BCST(row(a, i), s.v(r), s.v(r))
					for j := range vectors {
						s.dotPairs(r, b0+j, i*vectors+j)
					}
				}
				s.LEAQ(scaled(next, ks, 1, 0), a)
				s.LEAQ(scaled(b, ldb, 2, 0), b)
			})
			s.mark(odd)
			s.MOVQ(s.fieldOperand(args, productK), k)
			s.TESTQ(operand.U32(1), k)
			s.JZ(operand.LabelRef(end))
			single(row, a, b)
			s.plus(ks, a)
			s.plus(ldb, b)
			s.mark(end)
		})
		t.finish()
	})
}

// dotPairs is to += a * b of pairs of bfloat16, in 512 bits: VDPBF16PS, which Go's assembler does not know. These are
// its bytes (EVEX.512.F3.0F38.W0 52 /r; Intel's manual, volume 2, 2.7 and VDPBF16PS).
func (s *avx) dotPairs(a, b, to int) {
	not := func(register, bit int) int { return ^register >> bit & 1 } // as EVEX has the upper bits of registers
	prefix := 0x62 |
		(not(to, 3)<<7|not(b, 4)<<6|not(b, 3)<<5|not(to, 4)<<4|2)<<8 |
		(^a&15<<3|1<<2|2)<<16 |
		(2<<5|not(a, 4)<<3)<<24
	code := 0x52 | (3<<6|to&7<<3|b&7)<<8
	s.Instruction(&ir.Instruction{Opcode: "LONG", Operands: []operand.Op{operand.U32(prefix)}})
	s.Instruction(&ir.Instruction{Opcode: "WORD", Operands: []operand.Op{operand.U16(code)}})
}
