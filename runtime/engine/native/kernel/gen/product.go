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
)

// multiplier is what products have of a processor.
type multiplier interface {
	// fetch asks for the lines of C of a tile that comes soon, which are on their way while this one is computed.
	fetch(args register, rows, vectors int)
	// vectorsOf is the vectors of a row of C.
	vectorsOf(args register) func(row register, j int) place
	// repeat fills vectors by value i behind a pointer, which may move: values come in their order.
	repeat(pointer register, i int, to ...vector)
	// steps is what adds one inner step to a tile, with rows of A so many bytes apart.
	steps(rowStep register, rows, vectors int) func(a, b register)
	// spread is n rows, so many bytes apart, and the pointers that move them all.
	spread(first, by register, n int) (pointers []register, row func(i int) place)
}

// tile is the tile of the matrix product: rows x vectors of C in registers, which sum A's values times B's vectors over
// three nested loops. See productArgs in package kernel.
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
			step := m.steps(m.field(args, productRS), rows, vectors)
			sumSteps(m, args, a, []register{b}, func() { step(a, b) })
		})
		t.finish()
	})
}

// c is vector j of row i.
func (t tile) c(i, j int) vector { return t.v(i*t.vectors + j) }

// eachRow calls f for the rows that there are, and moves a pointer along, unless it is nil.
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

// start fills the tile: with zeros, with C, with a value a row, or with one vector for all rows.
func (t tile) start() {
	for i := range t.rows * t.vectors {
		t.zero(t.v(i))
	}
	t.fetch(t.args, t.rows, t.vectors)
	t.scope(func() {
		mode, n := t.field(t.args, productMode), t.field(t.args, productRows)
		bias, out := t.label("bias"), t.label("sum")
		t.compare(mode, 1)
		t.branch(below, out)
		t.branch(above, bias)
		c, ldc := t.field(t.args, productC), t.field(t.args, productLDC)
		at := t.vectorsOf(t.args)
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
			t.repeat(p, i, row...)
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

// finish stores the first rows of the tile, through max(0, x) where that is asked for.
func (t tile) finish() {
	linear(t.machine, t.args, t.rows*t.vectors)
	t.scope(func() {
		c, ldc := t.field(t.args, productC), t.field(t.args, productLDC)
		at, n, out := t.vectorsOf(t.args), t.field(t.args, productRows), t.label("end")
		t.eachRow(n, out, c, ldc, func(i int) {
			for j := range t.vectors {
				t.store(t.c(i, j), at(c, j))
			}
		})
		t.mark(out)
	})
}

// linear leaves the first n vectors as they are, or makes them max(0, x) where that is asked for.
func linear(m machine, args register, n int) {
	plain, zero := m.label("store"), m.singles(n)[0]
	m.scope(func() { m.ifZero(m.field(args, productReLU), plain) })
	m.zero(zero)
	for i := range n {
		m.max(m.v(i), m.v(i), zero)
	}
	m.mark(plain)
}

// nested does body for all middle and outer steps, and moves the pointers to A and to parts of B.
func nested(m machine, args, a register, b []register, body func()) {
	am, bm := m.held(args, productAM), m.held(args, productBM)
	ao, bo := m.held(args, productAO), m.held(args, productBO)
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

// sumSteps runs step for all of the sum.
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

// lineBlocks is how many blocks of 16 filters a line takes.
const lineBlocks = 4

// line is the product of one row of A and lineBlocks blocks of 16 columns of B, c2 bytes apart: a single output pixel of
// a row. Arguments are those of product, with the modes from zero and from a vector.
func line(m machine) {
	per := 64 / m.size() // vectors of a block
	n := lineBlocks * per
	m.function("line", "*productArgs", func(args register) {
		for i := range n {
			m.zero(m.v(i))
		}
		sum := m.label("sum")
		m.scope(func() { m.ifZero(m.held(args, productMode), sum) })
		m.scope(func() {
			bias := m.field(args, productBias)
			for i := range n {
				m.load(m.at(bias, i*m.size()), m.v(i))
			}
		})
		m.mark(sum)
		m.scope(func() {
			a, b, c2 := m.field(args, productA), m.field(args, productB), m.field(args, productC2)
			pointers, block := m.spread(b, c2, lineBlocks)
			sumSteps(m, args, a, pointers, func() {
				value, values := m.elements(a, 1, m.v(12))(0), make([]vector, per)
				for i := range lineBlocks {
					for j := range values {
						values[j] = m.source(m.behind(block(i), j*m.size()), m.v(8+i%2*per+j))
					}
					for j, b := range values {
						m.fma(m.v(i*per+j), b, value)
					}
				}
			})
		})
		linear(m, args, n)
		c := m.field(args, productC)
		for i := range n {
			m.store(m.v(i), m.at(c, i*m.size()))
		}
	})
}

// peak runs 12 chains of multiply-adds on registers only, four a turn: what the core can do at most.
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
