package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// lineRows is the height of a tile that is one vector wide. Only outputs of a line use it: two tiles of the usual
// heights would be half empty.
const lineRows = 10

// tileStep broadcasts the values of A.
func (s *avx) tileStep(args register, rows, vectors int) func(a, b register) {
	row, step := s.rowsOf(s.field(args, productRS), rows), s.step(s.vectorsOf(args, vectors), rows, vectors)
	return func(a, b register) { step(row, a, b) }
}

// vectorsOf returns the address of vector j of a row of B.
func (s *avx) vectorsOf(args register, vectors int) func(b register, j int) operand.Mem {
	if vectors*s.size() <= 64 {
		return s.adjacent
	}
	b2 := s.field(args, productB2)
	return func(b register, j int) operand.Mem {
		if j == 0 {
			return memoryAt(b, 0)
		}
		return scaled(b, b2, 1, j*s.size())
	}
}

// adjacent is vectorsOf where one vector lies behind the other.
func (s *avx) adjacent(b register, j int) operand.Mem { return memoryAt(b, j*s.size()) }

// step loads B into the vectors behind the tile, and values of A into the vectors behind those.
func (s *avx) step(column func(b register, j int) operand.Mem, rows, vectors int,
) func(row func(a register, i int) operand.Mem, a, b register) {
	b0 := rows * vectors
	a0 := b0 + vectors
	return func(row func(a register, i int) operand.Mem, a, b register) {
		for j := range vectors {
			s.load(column(b, j), s.v(b0+j))
		}
		for i := range rows {
			value := s.v(a0 + i%(s.regs-a0))
			s.VBROADCASTSS(row(a, i), value)
			for j := range vectors {
				s.fma(s.v(i*vectors+j), s.v(b0+j), value)
			}
		}
	}
}

// rowsOf returns the address of row i. It computes odd multiples of the distance now; addresses scale them.
func (s *avx) rowsOf(by register, rows int) func(a register, i int) operand.Mem {
	odd := map[int]register{1: by}
	for _, m := range []struct{ is, of, scale int }{{3, 1, 2}, {5, 1, 4}, {7, 3, 4}, {9, 1, 8}, {11, 3, 8}} {
		if m.is < rows {
			odd[m.is] = s.register()
			s.LEAQ(scaled(odd[m.of], by, m.scale, 0), odd[m.is])
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

func (s *avx) rowPointers(first, by register, n int) (pointers []register, row func(i int) place) {
	rows := s.rowsOf(by, n)
	return []register{first}, func(i int) place { return rows(first, i) }
}

func (s *avx) rowVectors(args register) func(row register, j int) place {
	c2 := s.field(args, productC2)
	return func(row register, j int) place {
		if j == 0 {
			return s.at(row, 0)
		}
		return s.indexed(row, c2)
	}
}

func (s *avx) broadcastTo(pointer register, i int, to ...vector) {
	for _, v := range to {
		s.broadcastEach(pointer, 4*i, v)
	}
}

// prefetchTile may ask for addresses behind C, which is harmless.
func (s *avx) prefetchTile(args register, rows, vectors int) {
	ahead, none := s.field(args, productAhead), s.label("fetched")
	s.branchIfZero(ahead, none)
	ldc, c2 := s.field(args, productLDC), s.field(args, productC2)
	s.plus(s.fieldOperand(args, productC), ahead)
	for i := range rows {
		s.PREFETCHT0(memoryAt(ahead, 0))
		if vectors > 1 {
			s.PREFETCHT0(s.indexed(ahead, c2))
		}
		if i+1 < rows {
			s.plus(ldc, ahead)
		}
	}
	s.mark(none)
}

// correlate computes a tile of the gradient of few filters: the sums of x times dy, for each lane. The arguments are
// those of product: a and rs for x, b and ldb for dy, k vectors of lanes, middle pixels. c is [rows][filters][16], and
// it adds to c.
func (s *avx) correlate(rows, filters int) {
	sums := rows * filters
	x := s.v(sums + filters)
	s.function("correlate", "*productArgs", func(args register) {
		a, b, c := s.field(args, productA), s.field(args, productB), s.field(args, productC)
		rowX, rowDY := s.rowsOf(s.field(args, productRS), rows), s.rowsOf(s.field(args, productLDB), filters)
		for i := range sums {
			s.load(s.at(c, i*64), s.v(i))
		}
		s.loop(s.field(args, productMiddle), 1, func() {
			s.loop(s.field(args, productK), 1, func() {
				for j := range filters {
					s.load(rowDY(b, j), s.v(sums+j))
				}
				for i := range rows {
					s.load(rowX(a, i), x)
					for j := range filters {
						s.fma(s.v(i*filters+j), s.v(sums+j), x)
					}
				}
				s.plus(s.size(), a, b)
			})
			s.plus(s.fieldOperand(args, productAM), a)
			s.plus(s.fieldOperand(args, productBM), b)
		})
		for i := range sums {
			s.store(s.v(i), s.at(c, i*64))
		}
	})
}
