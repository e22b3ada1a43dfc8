package main

import "fmt"

// Offsets of productArgs.
const (
	productA      = 0
	productB      = 8
	productC      = 16
	productRS     = 24 // bytes from row to row of A
	productKS     = 32 // inner step of A
	productLDB    = 40 // and of B
	productK      = 48 // inner steps
	productMiddle = 56
	productAM     = 64
	productBM     = 72
	productOuter  = 80
	productAO     = 88
	productBO     = 96
	productLDC    = 104
	productRows   = 112 // that are stored
	productMode   = 120
	productBias   = 128
	productC2     = 136 // from the first vector of a row to the second; line: from block to block of B
	productReLU   = 144
	productAhead  = 152
	productB2     = 160 // from the end of the first vector of a row of B to the second, where a tile is 32 values wide
)

// tileParts has the parts of a matrix product that depend on the processor.
type tileParts interface {
	// prefetchTile asks for the cache lines of C of a later tile.
	prefetchTile(args register, rows, vectors int)
	// rowVectors returns a function for the places of the vectors in a row of C.
	rowVectors(args register) func(row register, j int) place
	// broadcastTo loads value i behind a pointer into all lanes of vectors. It may advance the pointer: i counts up
	// from 0.
	broadcastTo(pointer register, i int, to ...vector)
	// tileStep returns a function that adds one inner step to a tile of the arguments.
	tileStep(args register, rows, vectors int) func(a, b register)
	// rowPointers returns the places of n rows, and the pointers that move all of them; by is the distance in bytes.
	rowPointers(first, by register, n int) (pointers []register, row func(i int) place)
}

// tile is a part of C in vectors: rows x vectors. The kernel sums A times B for it in three nested loops. See
// productArgs in package kernel.
type tile struct {
	machine
	args          register
	rows, vectors int
}

func product(m machine, rows, vectors int) {
	m.function(fmt.Sprintf("product%dx%d", rows, vectors), "*productArgs", func(args register) {
		t := tile{m, args, rows, vectors}
		t.start()
		m.scope(func() {
			a, b := m.field(args, productA), m.field(args, productB)
			step := m.tileStep(args, rows, vectors)
			sumSteps(m, args, a, []register{b}, func() { step(a, b) })
		})
		t.finish()
	})
}

// c is vector j of row i of the tile.
func (t tile) c(i, j int) vector { return t.v(i*t.vectors + j) }

// eachRow calls f for the rows that C has, and advances a pointer to C, unless it is nil.
func (t tile) eachRow(n register, end string, pointer, by register, f func(i int)) {
	for i := range t.rows {
		f(i)
		if i+1 < t.rows {
			t.compare(n, i+1)
			t.branch(notAbove, end)
			if pointer != nil {
				t.plus(by, pointer)
			}
		}
	}
}

// start fills the tile with zeros, with C, with one value for each row, or with one vector for all rows.
func (t tile) start() {
	for i := range t.rows * t.vectors {
		t.zero(t.v(i))
	}
	t.prefetchTile(t.args, t.rows, t.vectors)
	t.scope(func() {
		mode, n := t.field(t.args, productMode), t.field(t.args, productRows)
		bias, out := t.label("bias"), t.label("sum")
		t.compare(mode, 1)
		t.branch(below, out)
		t.branch(above, bias)
		c, ldc := t.field(t.args, productC), t.field(t.args, productLDC)
		at := t.rowVectors(t.args)
		t.eachRow(n, out, c, ldc, func(i int) {
			for j := range t.vectors {
				t.load(at(c, j), t.c(i, j))
			}
		})
		t.jump(out)
		t.mark(bias)
		p, alike := t.field(t.args, productBias), t.label("same")
		t.compare(mode, 3)
		t.branch(equals, alike)
		t.eachRow(n, out, nil, nil, func(i int) {
			var row []vector
			for j := range t.vectors {
				row = append(row, t.c(i, j))
			}
			t.broadcastTo(p, i, row...)
		})
		t.jump(out)
		t.mark(alike)
		for i := range t.rows {
			for j := range t.vectors {
				t.load(t.at(p, j*t.size()), t.c(i, j))
			}
		}
		t.mark(out)
	})
}

// finish stores the rows of the tile that C has, after ReLU if the arguments ask for it.
func (t tile) finish() {
	relu(t.machine, t.args, t.rows*t.vectors)
	t.scope(func() {
		c, ldc := t.field(t.args, productC), t.field(t.args, productLDC)
		at, n, out := t.rowVectors(t.args), t.field(t.args, productRows), t.label("end")
		t.eachRow(n, out, c, ldc, func(i int) {
			for j := range t.vectors {
				t.store(t.c(i, j), at(c, j))
			}
		})
		t.mark(out)
	})
}

// relu applies ReLU to the first n vectors if the arguments ask for it.
func relu(m machine, args register, n int) {
	plain, zero := m.label("store"), m.repeatedVectors(n)[0]
	m.scope(func() { m.branchIfZero(m.field(args, productReLU), plain) })
	m.zero(zero)
	for i := range n {
		m.max(m.v(i), m.v(i), zero)
	}
	m.mark(plain)
}

// nested repeats body for the middle and outer steps, and moves the pointers to A and B.
func nested(m machine, args, a register, b []register, body func()) {
	am, bm := m.fieldOperand(args, productAM), m.fieldOperand(args, productBM)
	ao, bo := m.fieldOperand(args, productAO), m.fieldOperand(args, productBO)
	m.loop(m.field(args, productOuter), 1, func() {
		m.loop(m.field(args, productMiddle), 1, func() {
			body()
			m.plus(am, a)
			m.plus(bm, b...)
		})
		m.plus(ao, a)
		m.plus(bo, b...)
	})
}

// sumSteps repeats step for all steps of the sum.
func sumSteps(m machine, args, a register, b []register, step func()) {
	ks, ldb := m.field(args, productKS), m.field(args, productLDB)
	nested(m, args, a, b, func() {
		m.loop(m.field(args, productK), 1, func() {
			step()
			m.plus(ks, a)
			m.plus(ldb, b...)
		})
	})
}

// lineBlocks is the number of blocks of 16 filters in a line.
const lineBlocks = 4

// line computes one output pixel of a row: the product of one row of A and lineBlocks blocks of 16 columns of B. The
// blocks are c2 bytes apart. It has the modes of product that start with zeros and with a vector.
func line(m machine) {
	per := 64 / m.size() // vectors of a block
	n := lineBlocks * per
	m.function("line", "*productArgs", func(args register) {
		for i := range n {
			m.zero(m.v(i))
		}
		sum := m.label("sum")
		m.scope(func() { m.branchIfZero(m.fieldOperand(args, productMode), sum) })
		m.scope(func() {
			bias := m.field(args, productBias)
			for i := range n {
				m.load(m.at(bias, i*m.size()), m.v(i))
			}
		})
		m.mark(sum)
		m.scope(func() {
			a, b, c2 := m.field(args, productA), m.field(args, productB), m.field(args, productC2)
			pointers, block := m.rowPointers(b, c2, lineBlocks)
			sumSteps(m, args, a, pointers, func() {
				value, values := m.factors(a, 1, m.v(12))(0), make([]vector, per)
				for i := range lineBlocks {
					for j := range values {
						values[j] = m.memoryOperand(m.offset(block(i), j*m.size()), m.v(8+i%2*per+j))
					}
					for j, b := range values {
						m.fma(m.v(i*per+j), b, value)
					}
				}
			})
		})
		relu(m, args, n)
		c := m.field(args, productC)
		for i := range n {
			m.store(m.v(i), m.at(c, i*m.size()))
		}
	})
}

// peak measures the highest speed of a core: 12 chains of multiply-adds that read no memory, four in each turn.
func peak(m machine) {
	const chains = 12
	m.function("peak", "int", func(turns register) {
		for i := range chains + 2 {
			m.zero(m.v(i))
		}
		m.loop(turns, 1, func() {
			for range 4 {
				for i := range chains {
					m.fma(m.v(i), m.v(chains+1), m.v(chains))
				}
			}
		})
	})
}
