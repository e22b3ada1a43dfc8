package main

// transpose moves a square block of eight by eight values: arguments dst 0, src 8, bytes of a row of dst 16 and of src
// 24. It is four squares of four: pairs of rows interleaved, then pairs of pairs.
func (a *neon) transpose() {
	const n, middle = 8, 16
	doc := "transposes a block of 8 x 8 values; see transposeArgs."
	a.function("transpose", "*transposeArgs", doc, func(args register) {
		f := a.fields(args, 0, 8, 16, 24)
		dst, src, ds, ss := f[0], f[1], f[2], f[3]
		for r := range n {
			a.load(src, 0, wide(r))
			if r+1 < n {
				a.add(ss, src)
			}
		}
		for square := range 4 { // rows 4 (square/2) and up, columns 4 (square%2) and up
			row := func(i int) int { return 2*(square/2*4+i) + square%2 }
			for pair := range 2 {
				to := middle + 4*square + 2*pair
				a.put("VTRN1 V%d.S4, V%d.S4, V%d.S4", row(2*pair+1), row(2*pair), to)
				a.put("VTRN2 V%d.S4, V%d.S4, V%d.S4", row(2*pair+1), row(2*pair), to+1)
			}
		}
		for square := range 4 {
			from := middle + 4*square
			column := func(i int) int { return 2*(square%2*4+i) + square/2 }
			for i := range 2 {
				a.put("VTRN1 V%d.D2, V%d.D2, V%d.D2", from+2+i, from+i, column(i))
				a.put("VTRN2 V%d.D2, V%d.D2, V%d.D2", from+2+i, from+i, column(2+i))
			}
		}
		for c := range n {
			a.store(wide(c), dst, 0)
			if c+1 < n {
				a.add(ds, dst)
			}
		}
	})
}
