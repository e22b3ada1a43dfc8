package aggregator

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2

// first is the first of the bytes of n values. It panics if b is shorter, since assembly checks no bounds.
func first(b []byte, n int) *byte { return &b[:4*n][0] }

// addVector adds the values that fill whole vectors and returns their number, or -1 if one is not finite.
func addVector(s sums, b []byte, weight float64) int {
	n := len(s) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	if addAVX2(&s[0], first(b, n), n, weight) != 0 {
		return -1
	}
	return n
}

// addAVX2 adds weight times n values, a multiple of 16. It returns a nonzero value if one is not finite.
//
//go:noescape
func addAVX2(s *float64, b *byte, n int, weight float64) uint32

// meanVector writes the means that fill whole vectors and returns their number, or -1 if one is not finite.
func meanVector(dst []float32, s sums, total float64) int {
	n := len(dst) &^ 7
	if !hasAVX2 || n == 0 {
		return 0
	}
	if meanAVX2(&dst[0], &s[0], n, total) != 0 {
		return -1
	}
	return n
}

// meanAVX2 divides n sums, a multiple of 8, by total. It returns a nonzero value if a quotient is not finite.
//
//go:noescape
func meanAVX2(dst *float32, s *float64, n int, total float64) uint32

// setVector sets the sums that fill whole vectors and returns their number, or -1 if a value is not finite.
func setVector(s sums, b []byte, weight float64) int {
	n := len(s) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	if setAVX2(&s[0], first(b, n), n, weight) != 0 {
		return -1
	}
	return n
}

// setAVX2 sets n sums, a multiple of 16, to weight times a value. It returns a nonzero value if one is not finite.
//
//go:noescape
func setAVX2(s *float64, b *byte, n int, weight float64) uint32

// lastVector adds weight times a value to the sums that fill whole vectors and writes their means. It returns their
// number, and whether all values and all means are finite.
func lastVector(dst []float32, s sums, b []byte, weight, total float64) (n int, values, means bool) {
	n = len(s) &^ 7
	if !hasAVX2 || n == 0 {
		return 0, true, true
	}
	v, m := lastAVX2(&dst[0], &s[0], first(b, n), n, weight, total)
	return n, v == 0, m == 0
}

// lastAVX2 does so for n sums, a multiple of 8. It returns what is not 0 if a value is not finite, and if a mean is
// not.
//
//go:noescape
func lastAVX2(dst *float32, s *float64, b *byte, n int, weight, total float64) (values, means uint32)

// addTwoVector is addVector for two members in one pass.
func addTwoVector(s sums, a, b column) int {
	n := len(s) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	if addTwoAVX2(&s[0], first(a.bytes, n), first(b.bytes, n), n, a.weight, b.weight) != 0 {
		return -1
	}
	return n
}

// addTwoAVX2 adds n values of each of two members, a multiple of 16, times their weights. It returns what is not 0 if
// one is not finite.
//
//go:noescape
func addTwoAVX2(s *float64, a, b *byte, n int, weightA, weightB float64) uint32

// setTwoVector is setVector for two members in one pass.
func setTwoVector(s sums, a, b column) int {
	n := len(s) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	if setTwoAVX2(&s[0], first(a.bytes, n), first(b.bytes, n), n, a.weight, b.weight) != 0 {
		return -1
	}
	return n
}

// setTwoAVX2 is addTwoAVX2 to sums that are 0, whatever they are.
//
//go:noescape
func setTwoAVX2(s *float64, a, b *byte, n int, weightA, weightB float64) uint32

// lastTwoVector is lastVector for two members in one pass.
func lastTwoVector(dst []float32, s sums, a, b column, total float64) (n int, values, means bool) {
	n = len(s) &^ 7
	if !hasAVX2 || n == 0 {
		return 0, true, true
	}
	v, m := lastTwoAVX2(&dst[0], &s[0], first(a.bytes, n), first(b.bytes, n), n, a.weight, b.weight, total)
	return n, v == 0, m == 0
}

// lastTwoAVX2 does so for n sums, a multiple of 8. It returns what is not 0 if a value is not finite, and if a mean is
// not.
//
//go:noescape
func lastTwoAVX2(
	dst *float32, s *float64, a, b *byte, n int, weightA, weightB, total float64,
) (values, means uint32)
