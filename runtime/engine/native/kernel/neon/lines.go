package main

// inputLine is one side of the input's transform: vectors 0 and up to vectors 6 and up. Numbers are 4, -4, -5 and 2.
func (a *assembly) inputLine(m int) {
	v := wide
	if m == 2 {
		a.difference(v(6), v(0), v(2))
		a.sum(v(7), v(1), v(2))
		a.difference(v(8), v(2), v(1))
		a.difference(v(9), v(1), v(3))
		return
	}
	a.copy(v(6), v(4))
	a.fma(v(6), v(0), number(0))
	a.fma(v(6), v(2), number(2)) // 4 d0 - 5 d2 + d4
	a.copy(v(11), v(5))
	a.fma(v(11), v(1), number(0))
	a.fma(v(11), v(3), number(2)) // 4 d1 - 5 d3 + d5
	a.copy(v(0), v(4))
	a.fma(v(0), v(2), number(1)) // d4 - 4 d2
	a.copy(v(5), v(3))
	a.fma(v(5), v(1), number(1)) // d3 - 4 d1
	a.sum(v(7), v(0), v(5))
	a.difference(v(8), v(0), v(5))
	a.difference(v(4), v(4), v(2))
	a.difference(v(3), v(3), v(1))
	a.times(v(3), v(3), number(3)) // 2 (d3 - d1)
	a.sum(v(9), v(4), v(3))
	a.difference(v(10), v(4), v(3))
}

// outputLine is one side of the output's transform: vectors 0 and up to vectors 0 and up. Numbers are 4, 8 and 2.
func (a *assembly) outputLine(m int) {
	v := wide
	if m == 2 {
		a.sum(v(0), v(0), v(1))
		a.sum(v(0), v(0), v(2))
		a.difference(v(1), v(1), v(2))
		a.difference(v(1), v(1), v(3))
		return
	}
	a.sum(v(6), v(1), v(2))
	a.difference(v(7), v(1), v(2))
	a.sum(v(8), v(3), v(4))
	a.difference(v(9), v(3), v(4))
	a.sum(v(0), v(0), v(6))
	a.sum(v(0), v(0), v(8)) // m0 + (m1 + m2) + (m3 + m4)
	a.copy(v(1), v(7))
	a.fma(v(1), v(9), number(2)) // (m1 - m2) + 2 (m3 - m4)
	a.copy(v(2), v(6))
	a.fma(v(2), v(8), number(0)) // (m1 + m2) + 4 (m3 + m4)
	a.sum(v(3), v(5), v(7))
	a.fma(v(3), v(9), number(1)) // (m1 - m2) + m5 + 8 (m3 - m4)
}

// weightLine is one side of the weights' transform: vectors 0 to 2 to vectors 6 and up. Numbers are 1/2, or 1/4, -1/6,
// 1/24, 1/6 and 1/12.
func (a *assembly) weightLine(m int) {
	v := wide
	a.sum(v(4), v(0), v(2))
	if m == 2 {
		a.times(v(4), v(4), number(0))
		a.times(v(5), v(1), number(0))
		a.copy(v(6), v(0))
		a.sum(v(7), v(4), v(5))
		a.difference(v(8), v(4), v(5))
		a.copy(v(9), v(2))
		return
	}
	a.times(v(6), v(0), number(0))
	a.times(v(4), v(4), number(1)) // -(g0 + g2) / 6
	a.times(v(5), v(1), number(1)) // -g1 / 6
	a.sum(v(7), v(4), v(5))
	a.difference(v(8), v(4), v(5))
	a.times(v(4), v(0), number(2))
	a.fma(v(4), v(2), number(3))   // g0 / 24 + g2 / 6
	a.times(v(5), v(1), number(4)) // g1 / 12
	a.sum(v(9), v(4), v(5))
	a.difference(v(10), v(4), v(5))
	a.copy(v(11), v(2))
}

// spreadLine is one side of the output's transform, transposed: vectors 0 and up to vectors 6 and up. Numbers are 2, 4
// and 8.
func (a *assembly) spreadLine(m int) {
	v := wide
	a.copy(v(6), v(0))
	if m == 2 {
		a.sum(v(7), v(0), v(1))
		a.difference(v(8), v(0), v(1))
		a.zero(v(9))
		a.difference(v(9), v(9), v(1))
		return
	}
	a.sum(v(4), v(0), v(2))
	a.sum(v(5), v(1), v(3))
	a.sum(v(7), v(4), v(5))
	a.difference(v(8), v(4), v(5))
	a.copy(v(4), v(0))
	a.fma(v(4), v(2), number(1)) // y0 + 4 y2
	a.times(v(5), v(1), number(0))
	a.fma(v(5), v(3), number(2)) // 2 y1 + 8 y3
	a.sum(v(9), v(4), v(5))
	a.difference(v(10), v(4), v(5))
	a.copy(v(11), v(3))
}

// gatherLine is one side of the weights' transform, transposed: vectors 0 and up to vectors 6 to 8. Numbers are
// weightLine's.
func (a *assembly) gatherLine(m int) {
	v := wide
	a.sum(v(9), v(1), v(2))
	if m == 2 {
		a.times(v(9), v(9), number(0))
		a.sum(v(6), v(0), v(9))
		a.difference(v(7), v(1), v(2))
		a.times(v(7), v(7), number(0))
		a.sum(v(8), v(3), v(9))
		return
	}
	a.sum(v(10), v(3), v(4))
	a.times(v(9), v(9), number(1)) // -(t1 + t2) / 6
	a.times(v(6), v(0), number(0))
	a.sum(v(6), v(6), v(9))
	a.fma(v(6), v(10), number(2)) // t0 / 4 - (t1 + t2) / 6 + (t3 + t4) / 24
	a.difference(v(7), v(2), v(1))
	a.times(v(7), v(7), number(3))
	a.difference(v(3), v(3), v(4))
	a.fma(v(7), v(3), number(4)) // (t2 - t1) / 6 + (t3 - t4) / 12
	a.sum(v(8), v(5), v(9))
	a.fma(v(8), v(10), number(3)) // t5 - (t1 + t2) / 6 + (t3 + t4) / 6
}
