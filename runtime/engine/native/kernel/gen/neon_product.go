package main

// tileStep multiplies by elements of registers. To broadcast a value would use one of the units that multiply. A tile
// of six rows takes 24 registers, B takes four, and the values of A the last four.
func (a *neon) tileStep(args register, rows, vectors int) func(x, y register) {
	rowStep := a.field(args, productRS)
	distance := []register{nil, rowStep} // of row i from the first
	for i := 2; i < rows; i++ {
		distance = append(distance, a.sumOf(distance[i-1], rowStep))
	}
	b := rows * vectors
	first := 2 * (b + vectors)
	held := min(rows, 32-first) // values at a time
	get := func(x register, i int) {
		if i == 0 {
			a.put("FMOVS (%s), F%d", x, first)
			return
		}
		a.put("FMOVS (%s)(%s), F%d", x, distance[i], first+i%held)
	}
	return func(x, y register) {
		for j := range vectors {
			a.load(a.at(y, j*size), wide(b+j))
		}
		for i := range held {
			get(x, i)
		}
		for i := range rows {
			for j := range vectors {
				a.fma(wide(i*vectors+j), wide(b+j), value{first + i%held, 0})
			}
			if i+held < rows {
				get(x, i+held)
			}
		}
	}
}

// rowPointers has a pointer for each row.
func (a *neon) rowPointers(first, by register, n int) (pointers []register, row func(i int) place) {
	pointers = []register{first}
	for i := 1; i < n; i++ {
		pointers = append(pointers, a.sumOf(pointers[i-1], by))
	}
	return pointers, func(i int) place { return a.at(pointers[i], 0) }
}

func (a *neon) rowVectors(register) func(row register, j int) place {
	return func(row register, j int) place { return a.at(row, j*size) }
}

func (a *neon) broadcastTo(pointer register, _ int, to ...vector) {
	a.broadcastNext(pointer, to[0])
	first := to[0].(vec).low
	for _, v := range to {
		for _, q := range []int{v.(vec).low, v.(vec).high} {
			if q != first {
				a.copyFour(first, q)
			}
		}
	}
}

func (a *neon) prefetchTile(register, int, int) {}

// correlate computes a tile of the gradient of few filters: the sums of x times dy, for each lane. The arguments are
// those of product: a and rs for x, b and ldb for dy, k vectors of four lanes, middle pixels. c is [rows][filters][16],
// and it adds to the first four values of each sum.
func (a *neon) correlate(rows, filters int) {
	const partial = 64 // bytes of a sum
	sums := rows * filters
	dy, value := sums, sums+filters
	a.function("correlate", "*productArgs", func(args register) {
		c, am, bm := a.field(args, productC), a.field(args, productAM), a.field(args, productBM)
		for q := range sums {
			a.loadFour(c, q*partial, q)
		}
		x, _ := a.rowPointers(a.field(args, productA), a.field(args, productRS), rows)
		d, _ := a.rowPointers(a.field(args, productB), a.field(args, productLDB), filters)
		a.loop(a.field(args, productMiddle), 1, func() {
			a.loop(a.field(args, productK), 1, func() {
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
			a.plus(am, x...)
			a.plus(bm, d...)
		})
		for q := range sums {
			a.storeFour(q, c, q*partial)
		}
	})
}
