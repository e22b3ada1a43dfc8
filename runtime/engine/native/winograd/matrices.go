package winograd

import (
	"math"
	"slices"
)

// Matrix is [rows][columns].
type Matrix [][]float64

// Matrices transform what a side has: pixels and taps to points, [points][In] and [points][Taps], and points to
// outputs, [Out][points]. For gradients they are used transposed.
type Matrices struct{ Input, Kernel, Output Matrix }

// infinity is the point where a polynomial's value is its last coefficient.
var infinity = math.Inf(1)

// points are those of so many, at which values are small and rounding errors with them: of all sets of 0, infinity and
// pairs of 1, 2 and 1/2 that were tried, those with the least error of sums. A number and its negative follow each
// other, which programs make use of.
func points(n int) []float64 {
	switch n {
	case 1:
		return []float64{infinity}
	case 3:
		return []float64{0, 1, -1}
	case 4:
		return []float64{0, 1, -1, infinity}
	case 5:
		return []float64{0, 1, -1, 2, -2}
	case 6:
		return []float64{0, 1, -1, 2, -2, infinity}
	case 7:
		return []float64{1, -1, 2, -2, 0.5, -0.5, infinity}
	default:
		panic("winograd: a side has 1 or 3 to 7 points")
	}
}

// values is the matrix of a polynomial of n coefficients at points: row p is 1, p, p^2 and so on.
func values(at []float64, n int) Matrix {
	m := make(Matrix, len(at))
	for i, p := range at {
		m[i] = make([]float64, n)
		for j, power := 0, 1.0; j < n; j++ {
			if m[i][j] = power; math.IsInf(p, 1) {
				m[i][j] = 0
			}
			power *= p
		}
		if math.IsInf(p, 1) {
			m[i][n-1] = 1
		}
	}
	return m
}

// lagrange is, for each point, the polynomial that is 0 at all others, and its value at that point: the rows over these
// values are the inverse of values(at, len(at)), transposed.
func lagrange(at []float64) (rows Matrix, there []float64) {
	for i, p := range at {
		row, value := []float64{1}, 1.0
		for j, q := range at {
			if j == i || math.IsInf(q, 1) {
				continue
			}
			row = append([]float64{0}, row...) // times (t - q)
			for k := range row[1:] {
				row[k] -= q * row[k+1]
			}
			if !math.IsInf(p, 1) {
				value *= p - q
			}
		}
		for len(row) < len(at) {
			row = append(row, 0)
		}
		rows, there = append(rows, row), append(there, value)
	}
	return rows, there
}

// Matrices of a side. All of their numbers are exact, but for those of the kernel, which are quotients.
func (s Side) Matrices() Matrices {
	at := points(s.Points())
	rows, there := lagrange(at)
	out := values(at, s.Out)
	if !s.IsWhole() {
		kernel := values(at, s.Taps)
		for i := range kernel {
			divide(kernel[i], there[i])
		}
		return Matrices{Input: rows, Kernel: kernel, Output: out.Transposed()}
	}
	for i := range rows {
		divide(rows[i], there[i])
	}
	turned := out.Transposed()
	slices.Reverse(turned)
	return Matrices{Input: values(at, s.In), Kernel: rows, Output: turned}
}

func divide(row []float64, by float64) {
	for i := range row {
		if row[i] != 0 { // never -0
			row[i] /= by
		}
	}
}

// Transposed is the matrix' columns as rows.
func (m Matrix) Transposed() Matrix {
	out := make(Matrix, len(m[0]))
	for j := range out {
		for i := range m {
			out[j] = append(out[j], m[i][j])
		}
	}
	return out
}
