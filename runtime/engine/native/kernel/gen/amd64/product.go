package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// product is the tile of the matrix product: rows x vectors of C in registers, which sum A's broadcast values times B's
// vectors over three nested loops. Arguments: see productArgs in package kernel.
func (s isa) product(rows, vectors int) {
	args := s.function(fmt.Sprintf("product%dx%d_", rows, vectors), "sums a tile of a matrix product; see productArgs.")
	acc := func(i, j int) int { return i*vectors + j }
	b0 := rows * vectors
	a0 := b0 + vectors
	s.start(args, rows, vectors, acc, a0)

	a, b := field(args, 0), field(args, 8)
	row := rowsOf(field(args, 24), rows)
	ks, ldb := field(args, 32), field(args, 40)
	outer := field(args, 80)
	loop(outer, 1, func() {
		middle := field(args, 56)
		loop(middle, 1, func() {
			k := field(args, 48)
			loop(k, 1, func() {
				s.step(row, a, b, rows, vectors, acc, b0, a0)
				ADDQ(ks, a)
				ADDQ(ldb, b)
			})
			ADDQ(at(args, 64), a)
			ADDQ(at(args, 72), b)
		})
		ADDQ(at(args, 88), a)
		ADDQ(at(args, 96), b)
	})
	s.finish(args, rows, vectors, acc, a0)
	done()
}

// step adds the products of one inner step to the tile. B goes to registers from b0 on, A's values to those from a0 on.
func (s isa) step(row func(a reg.Register, i int) operand.Mem, a, b reg.Register, rows, vectors int,
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
func rowsOf(rs reg.Register, rows int) func(a reg.Register, i int) operand.Mem {
	odd := map[int]reg.Register{1: rs} // multiples of rs; even ones are scaled
	for _, m := range []struct{ is, of, scale int }{{3, 1, 2}, {5, 1, 4}, {7, 3, 4}, {9, 1, 8}, {11, 3, 8}} {
		if m.is < rows {
			r := GP64()
			LEAQ(indexed(odd[m.of], rs, uint8(m.scale), 0), r)
			odd[m.is] = r
		}
	}
	return func(a reg.Register, i int) operand.Mem {
		if i == 0 {
			return at(a, 0)
		}
		scale := i & -i // the largest power of two that divides it
		return indexed(a, odd[i/scale], uint8(scale), 0)
	}
}

// start fills the tile: with zeros, with C, with a value a row, or with one vector for all rows.
func (s isa) start(args reg.Register, rows, vectors int, acc func(i, j int) int, spare int) {
	for i := range rows * vectors {
		s.zero(i)
	}
	s.fetch(args, rows, vectors)
	mode, n := field(args, 120), field(args, 112)
	bias, out := label("bias"), label("sum")
	CMPQ(mode, operand.U32(1))
	JB(operand.LabelRef(out))
	JA(operand.LabelRef(bias))
	c, ldc, c2 := field(args, 16), field(args, 104), field(args, 136)
	for i := range rows {
		s.load(at(c, 0), acc(i, 0))
		if vectors > 1 {
			s.load(indexed(c, c2, 1, 0), acc(i, 1))
		}
		if i+1 < rows {
			CMPQ(n, operand.U32(i+1))
			JBE(operand.LabelRef(out))
			ADDQ(ldc, c)
		}
	}
	JMP(operand.LabelRef(out))
	Label(bias)
	p, same := field(args, 128), label("same")
	CMPQ(mode, operand.U32(3))
	JE(operand.LabelRef(same))
	for i := range rows {
		for j := range vectors {
			s.broadcast(at(p, 4*i), acc(i, j))
		}
		if i+1 < rows {
			CMPQ(n, operand.U32(i+1))
			JBE(operand.LabelRef(out))
		}
	}
	JMP(operand.LabelRef(out))
	Label(same)
	for i := range rows {
		for j := range vectors {
			s.load(at(p, j*s.size), acc(i, j))
		}
	}
	Label(out)
}

// fetch asks for the lines of C of a tile that comes soon, which are on their way while this one is computed. Addresses
// beyond C do no harm.
func (s isa) fetch(args reg.Register, rows, vectors int) {
	ahead, none := field(args, 152), label("fetched")
	TESTQ(ahead, ahead)
	JZ(operand.LabelRef(none))
	ldc, c2 := field(args, 104), field(args, 136)
	ADDQ(at(args, 16), ahead)
	for i := range rows {
		PREFETCHT0(at(ahead, 0))
		if vectors > 1 {
			PREFETCHT0(indexed(ahead, c2, 1, 0))
		}
		if i+1 < rows {
			ADDQ(ldc, ahead)
		}
	}
	Label(none)
}

// finish stores the first rows of the tile, through max(0, x) where that is asked for.
func (s isa) finish(args reg.Register, rows, vectors int, acc func(i, j int) int, spare int) {
	plain := label("store")
	relu := field(args, 144)
	TESTQ(relu, relu)
	JZ(operand.LabelRef(plain))
	s.zero(spare)
	for i := range rows * vectors {
		s.max(i, spare, i) // in this order NaN stays NaN
	}
	Label(plain)
	c, ldc, c2, n := field(args, 16), field(args, 104), field(args, 136), field(args, 112)
	out := label("end")
	for i := range rows {
		s.store(acc(i, 0), at(c, 0))
		if vectors > 1 {
			s.store(acc(i, 1), indexed(c, c2, 1, 0))
		}
		if i+1 < rows {
			CMPQ(n, operand.U32(i+1))
			JBE(operand.LabelRef(out))
			ADDQ(ldc, c)
		}
	}
	Label(out)
}

// peak runs multiply-adds on registers only: what the core can do at most.
func peak() {
	for _, s := range []isa{avx512, avx2} {
		args := s.function("peak", "runs 12 chains of multiply-adds; the argument is how often.")
		for i := range 14 {
			s.zero(i)
		}
		loop(args, 1, func() {
			for range 4 {
				for i := range 12 {
					s.fma(12, 13, i)
				}
			}
		})
		done()
	}
}

// correlate is the tile of a weights' gradient with few filters: sums of products of rows of x and rows of dy, lane by
// lane. Arguments are those of product: a and rs are x, b and ldb dy, k vectors of lanes (inner), middle pixels; c is
// [rows][filters][16], added to.
func (s isa) correlate(rows, filters int) {
	args := s.function("correlate", "sums products of rows of x and of dy, lane by lane; see productArgs.")
	acc := func(i, j int) int { return i*filters + j }
	dy, x := rows*filters, rows*filters+filters
	a, b, c := field(args, 0), field(args, 8), field(args, 16)
	rs, ldb := field(args, 24), field(args, 40)
	ldb3, ldb5 := GP64(), GP64()
	LEAQ(indexed(ldb, ldb, 2, 0), ldb3)
	LEAQ(indexed(ldb, ldb, 4, 0), ldb5)
	for i := range rows * filters {
		s.load(at(c, i*64), i)
	}
	middle := field(args, 56)
	loop(middle, 1, func() {
		k := field(args, 48)
		loop(k, 1, func() {
			for j, m := range []operand.Mem{at(b, 0), indexed(b, ldb, 1, 0), indexed(b, ldb, 2, 0), indexed(b, ldb3, 1, 0), indexed(b, ldb, 4, 0), indexed(b, ldb5, 1, 0)}[:filters] {
				s.load(m, dy+j)
			}
			for i, m := range []operand.Mem{at(a, 0), indexed(a, rs, 1, 0), indexed(a, rs, 2, 0)}[:rows] {
				s.load(m, x)
				for j := range filters {
					s.fma(x, dy+j, acc(i, j))
				}
			}
			advance(s.size, a, b)
		})
		ADDQ(at(args, 64), a)
		ADDQ(at(args, 72), b)
	})
	for i := range rows * filters {
		s.store(i, at(c, i*64))
	}
	done()
}

// lineRows are the rows of a tile that is one vector wide and used for outputs of a line alone: two of the usual
// heights would be filled by half.
const lineRows = 10

// lineBlocks is how many blocks of 16 filters a line takes.
const lineBlocks = 4

// line is the product of one row of A, broadcast, and lineBlocks blocks of 16 columns of B, c2 bytes apart: a single
// output pixel of a row. Arguments are those of product, with the modes from zero and from a vector.
func (s isa) line() {
	args := s.function("line", "sums one row of a product for 64 columns; see productArgs.")
	per := 64 / s.size // vectors of a block
	wide := lineBlocks * per
	for i := range wide {
		s.zero(i)
	}
	sum := label("sum")
	CMPQ(at(args, 120), operand.U8(0))
	JE(operand.LabelRef(sum))
	bias := field(args, 128)
	for i := range wide {
		s.load(at(bias, i*s.size), i)
	}
	Label(sum)
	a, b, c2 := field(args, 0), field(args, 8), field(args, 136)
	c23 := GP64()
	LEAQ(indexed(c2, c2, 2, 0), c23)
	ks, ldb := field(args, 32), field(args, 40)
	outer := field(args, 80)
	loop(outer, 1, func() {
		middle := field(args, 56)
		loop(middle, 1, func() {
			k := field(args, 48)
			loop(k, 1, func() {
				s.broadcast(at(a, 0), 15)
				for v := range per {
					disp := v * s.size
					rows := []operand.Mem{at(b, disp), indexed(b, c2, 1, disp), indexed(b, c2, 2, disp), indexed(b, c23, 1, disp)}
					for j, m := range rows {
						s.fma(m, 15, j*per+v)
					}
				}
				ADDQ(ks, a)
				ADDQ(ldb, b)
			})
			ADDQ(at(args, 64), a)
			ADDQ(at(args, 72), b)
		})
		ADDQ(at(args, 88), a)
		ADDQ(at(args, 96), b)
	})
	linear := label("store")
	CMPQ(at(args, 144), operand.U8(0))
	JE(operand.LabelRef(linear))
	s.zero(15)
	for i := range wide {
		s.max(i, 15, i) // in this order NaN stays NaN
	}
	Label(linear)
	c := field(args, 16)
	for i := range wide {
		s.store(i, at(c, i*s.size))
	}
	done()
}
