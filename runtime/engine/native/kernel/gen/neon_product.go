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
	productC2     = 136 // line: bytes from block to block of B
	productReLU   = 144
)

// columns is how many registers a row of a tile takes: 16 values.
const columns = 4

// product is the tile of the matrix product: rows x 16 values of C in registers, which sum values of A times B's
// vectors over three nested loops. A value of A is loaded alone and multiplied as an element: to fill a register with
// it would take one of the units that multiply. Six rows take 24 registers, B four and A four.
func (a *neon) product(rows int) {
	a.function(fmt.Sprintf("product%d", rows), "*productArgs", "sums a tile of a matrix product; see productArgs.",
		func(args register) {
			for q := range rows * columns {
				a.zeroFour(q)
			}
			a.scope(func() { a.startTile(args, rows) })
			a.scope(func() { a.sumTile(args, rows) })
			a.scope(func() { a.linear(args, rows*columns, rows*columns) })
			a.scope(func() { a.finishTile(args, rows) })
		})
}

// startTile fills the tile: with zeros, which it has, with C, with a value a row, or with one vector for all rows.
func (a *neon) startTile(args register, rows int) {
	bias, vector, out := a.label("bias"), a.label("vector"), a.label("sum")
	mode, n := a.field(args, productMode), a.field(args, productRows)
	a.put("CMP $1, %s", mode)
	a.put("BLO %s", out)
	a.put("BHI %s", bias)
	c, ldc := a.field(args, productC), a.field(args, productLDC)
	for i := range rows {
		a.load(c, 0, wide(2*i))
		a.load(c, size, wide(2*i+1))
		if i+1 < rows {
			a.stopAt(i+1, n, out)
			a.add(ldc, c)
		}
	}
	a.put("B %s", out)
	a.mark(bias)
	p := a.field(args, productBias)
	a.put("CMP $3, %s", mode)
	a.put("BEQ %s", vector)
	for i := range rows {
		a.broadcast(p, i*columns)
		for j := 1; j < columns; j++ {
			a.copyFour(i*columns, i*columns+j)
		}
		if i+1 < rows {
			a.stopAt(i+1, n, out)
		}
	}
	a.put("B %s", out)
	a.mark(vector)
	a.load(p, 0, wide(0))
	a.load(p, size, wide(1))
	for q := columns; q < rows*columns; q++ {
		a.copyFour(q%columns, q)
	}
	a.mark(out)
}

// nested runs step for all of the sum, moving the pointers to A and to parts of B.
func (a *neon) nested(args, pa register, pb []register, step func()) {
	f := a.fields(args, productKS, productLDB, productAM, productBM, productAO, productBO)
	outer, middle, k := a.field(args, productOuter), a.register(), a.register()
	a.loop(outer, 1, func() {
		a.get(args, productMiddle, middle)
		a.loop(middle, 1, func() {
			a.get(args, productK, k)
			a.loop(k, 1, func() {
				step()
				a.add(f[0], pa)
				a.add(f[1], pb...)
			})
			a.add(f[2], pa)
			a.add(f[3], pb...)
		})
		a.add(f[4], pa)
		a.add(f[5], pb...)
	})
}

// sumTile adds the products. Values of A lie some multiple of the rows' distance behind the first.
func (a *neon) sumTile(args register, rows int) {
	pa, pb := a.field(args, productA), a.field(args, productB)
	distance := make([]register, rows) // of row i from the first
	distance[1] = a.field(args, productRS)
	for i := 2; i < rows; i++ {
		distance[i] = a.register()
		a.plus(distance[i-1], distance[1], distance[i])
	}
	b := rows * columns
	values := min(rows, 32-b-columns)
	value := func(i int) int { return b + columns + i%values }
	get := func(i int) {
		if i == 0 {
			a.put("FMOVS (%s), F%d", pa, value(i))
			return
		}
		a.put("FMOVS (%s)(%s), F%d", pa, distance[i], value(i))
	}
	a.nested(args, pa, []register{pb}, func() {
		a.load(pb, 0, wide(b/2))
		a.load(pb, size, wide(b/2+1))
		for i := range values {
			get(i)
		}
		for i := range rows {
			for j := range columns {
				a.word(fmlaElement(i*columns+j, b+j, value(i), 0))
			}
			if i+values < rows {
				get(i + values)
			}
		}
	})
}

// linear leaves registers as they are, or makes them max(0, x) where that is asked for, with another for the zero.
func (a *neon) linear(args register, registers, zero int) {
	out, relu := a.label("store"), a.field(args, productReLU)
	a.put("CBZ %s, %s", relu, out)
	a.zeroFour(zero)
	for q := range registers {
		a.word(fmax(q, q, zero))
	}
	a.mark(out)
}

// finishTile stores the first rows of the tile.
func (a *neon) finishTile(args register, rows int) {
	f := a.fields(args, productC, productLDC, productRows)
	c, ldc, n, out := f[0], f[1], f[2], a.label("end")
	for i := range rows {
		a.store(wide(2*i), c, 0)
		a.store(wide(2*i+1), c, size)
		if i+1 < rows {
			a.stopAt(i+1, n, out)
			a.add(ldc, c)
		}
	}
	a.mark(out)
}

// line is the product of one row of A and lineBlocks blocks of 16 columns of B, c2 bytes apart: a single output pixel
// of a row. Arguments are those of product, with the modes from zero and from a vector.
func (a *neon) line() {
	const sums, b, value = lineBlocks * columns, 16, 24
	a.function("line", "*productArgs", "sums one row of a product for 64 columns; see productArgs.", func(args register) {
		for q := range sums {
			a.zeroFour(q)
		}
		a.scope(func() {
			out, mode := a.label("sum"), a.field(args, productMode)
			a.put("CBZ %s, %s", mode, out)
			bias := a.field(args, productBias)
			for i := range sums / 2 {
				a.load(bias, i*size, wide(i))
			}
			a.mark(out)
		})
		a.scope(func() {
			pa, c2 := a.field(args, productA), a.field(args, productC2)
			pb := []register{a.field(args, productB)}
			for i := 1; i < lineBlocks; i++ {
				pb = append(pb, a.register())
				a.plus(pb[i-1], c2, pb[i])
			}
			a.nested(args, pa, pb, func() {
				a.put("FMOVS (%s), F%d", pa, value)
				for i, p := range pb {
					part := b + i%2*columns
					a.load(p, 0, wide(part/2))
					a.load(p, size, wide(part/2+1))
					for j := range columns {
						a.word(fmlaElement(i*columns+j, part+j, value, 0))
					}
				}
			})
		})
		a.scope(func() { a.linear(args, sums, b) })
		c := a.field(args, productC)
		for i := range sums / 2 {
			a.store(wide(i), c, i*size)
		}
	})
}

// correlate is the tile of a weights' gradient with few filters: sums of products of rows of x and rows of dy, lane by
// lane. Arguments are those of product: a and rs are x, b and ldb dy, k vectors of four lanes (inner), middle pixels; c
// is [rows][filters][16], whose first four values are added to.
func (a *neon) correlate(rows, filters int) {
	const partial = 64 // bytes of a sum
	sums := rows * filters
	dy, value := sums, sums+filters
	a.function("correlate", "*productArgs", "sums products of rows of x and of dy, lane by lane; see productArgs.",
		func(args register) {
			f := a.fields(args, productC, productAM, productBM)
			c, am, bm := f[0], f[1], f[2]
			for q := range sums {
				a.loadFour(c, q*partial, q)
			}
			x := a.spread(args, productA, productRS, rows)
			d := a.spread(args, productB, productLDB, filters)
			middle, k := a.field(args, productMiddle), a.register()
			a.loop(middle, 1, func() {
				a.get(args, productK, k)
				a.loop(k, 1, func() {
					for j, p := range d {
						a.put("FMOVQ.P 16(%s), F%d", p, dy+j)
					}
					for i, p := range x {
						q := value + i%(32-value)
						a.put("FMOVQ.P 16(%s), F%d", p, q)
						for j := range filters {
							a.put("VFMLA V%d.S4, V%d.S4, V%d.S4", dy+j, q, i*filters+j)
						}
					}
				})
				a.add(am, x...)
				a.add(bm, d...)
			})
			for q := range sums {
				a.storeFour(q, c, q*partial)
			}
		})
}

// spread is pointers to n rows, whose first and whose distance are fields.
func (a *neon) spread(args register, first, distance, n int) []register {
	by := a.field(args, distance)
	out := []register{a.field(args, first)}
	for i := 1; i < n; i++ {
		out = append(out, a.register())
		a.plus(out[i-1], by, out[i])
	}
	return out
}

// peak runs multiply-adds on registers only: what the core can do at most. 24 chains wait for nothing.
func (a *neon) peak() {
	const chains = 24
	a.function("peak", "int", "runs 24 chains of multiply-adds, four a turn; the argument is how many turns.",
		func(turns register) {
			for q := range chains + 2 {
				a.zeroFour(q)
			}
			a.loop(turns, 1, func() {
				for range 4 {
					for q := range chains {
						a.put("VFMLA V%d.S4, V%d.S4, V%d.S4", chains, chains+1, q)
					}
				}
			})
		})
}
