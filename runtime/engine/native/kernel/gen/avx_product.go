package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// product is the tile of the matrix product: rows x vectors of C in registers, which sum A's broadcast values times B's
// vectors over three nested loops. Arguments: see productArgs in package kernel.
func (s *avx) product(rows, vectors int) {
	args := s.function(fmt.Sprintf("product%dx%d_", rows, vectors), "*productArgs", "sums a tile of a matrix product; see productArgs.")
	acc := func(i, j int) int { return i*vectors + j }
	b0 := rows * vectors
	a0 := b0 + vectors
	s.start(args, rows, vectors, acc, a0)

	a, b := s.field(args, 0), s.field(args, 8)
	row := s.rowsOf(s.field(args, 24), rows)
	ks, ldb := s.field(args, 32), s.field(args, 40)
	outer := s.field(args, 80)
	s.loop(outer, 1, func() {
		middle := s.field(args, 56)
		s.loop(middle, 1, func() {
			k := s.field(args, 48)
			s.loop(k, 1, func() {
				s.step(row, a, b, rows, vectors, acc, b0, a0)
				s.ADDQ(ks, a)
				s.ADDQ(ldb, b)
			})
			s.ADDQ(at(args, 64), a)
			s.ADDQ(at(args, 72), b)
		})
		s.ADDQ(at(args, 88), a)
		s.ADDQ(at(args, 96), b)
	})
	s.finish(args, rows, vectors, acc, a0)
	s.done()
}

// step adds the products of one inner step to the tile. B goes to registers from b0 on, A's values to those from a0 on.
func (s *avx) step(row func(a register, i int) operand.Mem, a, b reg.Register, rows, vectors int,
	acc func(i, j int) int, b0, a0 int,
) {
	spare := s.regs - a0
	for j := range vectors {
		s.load(at(b, j*s.size), b0+j)
	}
	for i := range rows {
		r := a0 + i%spare
		s.broadcast(row(a, i), r)
		for j := range vectors {
			s.fma(r, b0+j, acc(i, j))
		}
	}
}

// rowsOf says where row i of A is, rs bytes from the one before, of as many rows.
func (s *avx) rowsOf(rs register, rows int) func(a register, i int) operand.Mem {
	odd := map[int]register{1: rs} // multiples of rs; even ones are scaled
	for _, m := range []struct{ is, of, scale int }{{3, 1, 2}, {5, 1, 4}, {7, 3, 4}, {9, 1, 8}, {11, 3, 8}} {
		if m.is < rows {
			r := s.GP64()
			s.LEAQ(scaled(odd[m.of], rs, m.scale, 0), r)
			odd[m.is] = r
		}
	}
	return func(a register, i int) operand.Mem {
		if i == 0 {
			return memoryAt(a, 0)
		}
		scale := i & -i // the largest power of two that divides it
		return scaled(a, odd[i/scale], scale, 0)
	}
}

// start fills the tile: with zeros, with C, with a value a row, or with one vector for all rows.
func (s *avx) start(args reg.Register, rows, vectors int, acc func(i, j int) int, spare int) {
	for i := range rows * vectors {
		s.zero(i)
	}
	s.fetch(args, rows, vectors)
	mode, n := s.field(args, 120), s.field(args, 112)
	bias, out := s.label("bias"), s.label("sum")
	s.CMPQ(mode, operand.U32(1))
	s.JB(operand.LabelRef(out))
	s.JA(operand.LabelRef(bias))
	c, ldc, c2 := s.field(args, 16), s.field(args, 104), s.field(args, 136)
	for i := range rows {
		s.load(at(c, 0), acc(i, 0))
		if vectors > 1 {
			s.load(indexed(c, c2, 1, 0), acc(i, 1))
		}
		if i+1 < rows {
			s.CMPQ(n, operand.U32(i+1))
			s.JBE(operand.LabelRef(out))
			s.ADDQ(ldc, c)
		}
	}
	s.JMP(operand.LabelRef(out))
	s.Label(bias)
	p, same := s.field(args, 128), s.label("same")
	s.CMPQ(mode, operand.U32(3))
	s.JE(operand.LabelRef(same))
	for i := range rows {
		for j := range vectors {
			s.broadcast(at(p, 4*i), acc(i, j))
		}
		if i+1 < rows {
			s.CMPQ(n, operand.U32(i+1))
			s.JBE(operand.LabelRef(out))
		}
	}
	s.JMP(operand.LabelRef(out))
	s.Label(same)
	for i := range rows {
		for j := range vectors {
			s.load(at(p, j*s.size), acc(i, j))
		}
	}
	s.Label(out)
}

// fetch asks for the lines of C of a tile that comes soon, which are on their way while this one is computed. Addresses
// beyond C do no harm.
func (s *avx) fetch(args reg.Register, rows, vectors int) {
	ahead, none := s.field(args, 152), s.label("fetched")
	s.TESTQ(ahead, ahead)
	s.JZ(operand.LabelRef(none))
	ldc, c2 := s.field(args, 104), s.field(args, 136)
	s.ADDQ(at(args, 16), ahead)
	for i := range rows {
		s.PREFETCHT0(at(ahead, 0))
		if vectors > 1 {
			s.PREFETCHT0(indexed(ahead, c2, 1, 0))
		}
		if i+1 < rows {
			s.ADDQ(ldc, ahead)
		}
	}
	s.Label(none)
}

// finish stores the first rows of the tile, through max(0, x) where that is asked for.
func (s *avx) finish(args reg.Register, rows, vectors int, acc func(i, j int) int, spare int) {
	plain := s.label("store")
	relu := s.field(args, 144)
	s.TESTQ(relu, relu)
	s.JZ(operand.LabelRef(plain))
	s.zero(spare)
	for i := range rows * vectors {
		s.max(i, spare, i) // in this order NaN stays NaN
	}
	s.Label(plain)
	c, ldc, c2, n := s.field(args, 16), s.field(args, 104), s.field(args, 136), s.field(args, 112)
	out := s.label("end")
	for i := range rows {
		s.store(acc(i, 0), at(c, 0))
		if vectors > 1 {
			s.store(acc(i, 1), indexed(c, c2, 1, 0))
		}
		if i+1 < rows {
			s.CMPQ(n, operand.U32(i+1))
			s.JBE(operand.LabelRef(out))
			s.ADDQ(ldc, c)
		}
	}
	s.Label(out)
}

// peak runs multiply-adds on registers only: what the core can do at most.
func (s *avx) peak() {
	args := s.function("peak", "int", "runs 12 chains of multiply-adds; the argument is how often.")
	for i := range 14 {
		s.zero(i)
	}
	s.loop(args, 1, func() {
		for range 4 {
			for i := range 12 {
				s.fma(12, 13, i)
			}
		}
	})
	s.done()
}

// correlate is the tile of a weights' gradient with few filters: sums of products of rows of x and rows of dy, lane by
// lane. Arguments are those of product: a and rs are x, b and ldb dy, k vectors of lanes (inner), middle pixels; c is
// [rows][filters][16], added to.
func (s *avx) correlate(rows, filters int) {
	args := s.function("correlate", "*productArgs", "sums products of rows of x and of dy, lane by lane; see productArgs.")
	acc := func(i, j int) int { return i*filters + j }
	dy, x := rows*filters, rows*filters+filters
	a, b, c := s.field(args, 0), s.field(args, 8), s.field(args, 16)
	rs, ldb := s.field(args, 24), s.field(args, 40)
	ldb3, ldb5 := s.GP64(), s.GP64()
	s.LEAQ(indexed(ldb, ldb, 2, 0), ldb3)
	s.LEAQ(indexed(ldb, ldb, 4, 0), ldb5)
	for i := range rows * filters {
		s.load(at(c, i*64), i)
	}
	middle := s.field(args, 56)
	s.loop(middle, 1, func() {
		k := s.field(args, 48)
		s.loop(k, 1, func() {
			for j, m := range []operand.Mem{at(b, 0), indexed(b, ldb, 1, 0), indexed(b, ldb, 2, 0), indexed(b, ldb3, 1, 0), indexed(b, ldb, 4, 0), indexed(b, ldb5, 1, 0)}[:filters] {
				s.load(m, dy+j)
			}
			for i, m := range []operand.Mem{at(a, 0), indexed(a, rs, 1, 0), indexed(a, rs, 2, 0)}[:rows] {
				s.load(m, x)
				for j := range filters {
					s.fma(x, dy+j, acc(i, j))
				}
			}
			s.advance(s.size, a, b)
		})
		s.ADDQ(at(args, 64), a)
		s.ADDQ(at(args, 72), b)
	})
	for i := range rows * filters {
		s.store(i, at(c, i*64))
	}
	s.done()
}

// lineRows are the rows of a tile that is one vector wide and used for outputs of a line alone: two of the usual
// heights would be filled by half.
const lineRows = 10

// lineBlocks is how many blocks of 16 filters a line takes.
const lineBlocks = 4

// line is the product of one row of A, broadcast, and lineBlocks blocks of 16 columns of B, c2 bytes apart: a single
// output pixel of a row. Arguments are those of product, with the modes from zero and from a vector.
func (s *avx) line() {
	args := s.function("line", "*productArgs", "sums one row of a product for 64 columns; see productArgs.")
	per := 64 / s.size // vectors of a block
	wide := lineBlocks * per
	for i := range wide {
		s.zero(i)
	}
	sum := s.label("sum")
	s.CMPQ(at(args, 120), operand.U8(0))
	s.JE(operand.LabelRef(sum))
	bias := s.field(args, 128)
	for i := range wide {
		s.load(at(bias, i*s.size), i)
	}
	s.Label(sum)
	a, b, c2 := s.field(args, 0), s.field(args, 8), s.field(args, 136)
	c23 := s.GP64()
	s.LEAQ(indexed(c2, c2, 2, 0), c23)
	ks, ldb := s.field(args, 32), s.field(args, 40)
	outer := s.field(args, 80)
	s.loop(outer, 1, func() {
		middle := s.field(args, 56)
		s.loop(middle, 1, func() {
			k := s.field(args, 48)
			s.loop(k, 1, func() {
				s.broadcast(at(a, 0), 15)
				for v := range per {
					disp := v * s.size
					rows := []operand.Mem{at(b, disp), indexed(b, c2, 1, disp), indexed(b, c2, 2, disp), indexed(b, c23, 1, disp)}
					for j, m := range rows {
						s.fma(m, 15, j*per+v)
					}
				}
				s.ADDQ(ks, a)
				s.ADDQ(ldb, b)
			})
			s.ADDQ(at(args, 64), a)
			s.ADDQ(at(args, 72), b)
		})
		s.ADDQ(at(args, 88), a)
		s.ADDQ(at(args, 96), b)
	})
	linear := s.label("store")
	s.CMPQ(at(args, 144), operand.U8(0))
	s.JE(operand.LabelRef(linear))
	s.zero(15)
	for i := range wide {
		s.max(i, 15, i) // in this order NaN stays NaN
	}
	s.Label(linear)
	c := s.field(args, 16)
	for i := range wide {
		s.store(i, at(c, i*s.size))
	}
	s.done()
}
