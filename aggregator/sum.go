package aggregator

import (
	"encoding/binary"
	"math"
)

// sums is a running weighted sum of columns in float64. Values are added in a fixed order: equal orders give equal
// bits. float64 keeps the error from growing with the number of members. DiSDeL III-B.1 averages; the order is ours.
type sums []float64

const exponent = 0x7f800000

// add adds weight times the little-endian float32 values of b, four bytes for each sum. It returns whether all are
// finite; if not, the sums are invalid.
func (s sums) add(b []byte, weight float64) bool {
	n := addVector(s, b, weight)
	if n < 0 {
		return false
	}
	return addScalar(s[n:], b[4*n:], weight)
}

// set is add to sums of 0, whatever they contain. It saves a pass for the first member of a column.
func (s sums) set(b []byte, weight float64) bool {
	n := setVector(s, b, weight)
	if n < 0 {
		return false
	}
	clear(s[n:])
	return addScalar(s[n:], b[4*n:], weight)
}

// last is add and then mean, without changing the sums. It saves two passes for the last member. It returns whether all
// values and all means are finite.
func (s sums) last(dst []float32, b []byte, weight, total float64) (values, means bool) {
	n, values, means := lastVector(dst, s, b, weight, total)
	rest := s[n:]
	values = addScalar(rest, b[4*n:], weight) && values
	return values, meanScalar(dst[n:], rest, total) && means
}

// column is one member's column of little-endian float32 values, and its weight.
type column struct {
	bytes  []byte
	weight float64
}

func (c column) from(n int) column { return column{c.bytes[4*n:], c.weight} }

// addTwo is add for a and then for b, with the same bits, in one pass: the sums are twice as wide as the values and do
// not stay in a core's cache between members.
func (s sums) addTwo(a, b column) bool {
	n := addTwoVector(s, a, b)
	return n >= 0 && addTwoScalar(s[n:], a.from(n), b.from(n))
}

// setTwo is set for a and then add for b.
func (s sums) setTwo(a, b column) bool {
	n := setTwoVector(s, a, b)
	if n < 0 {
		return false
	}
	clear(s[n:])
	return addTwoScalar(s[n:], a.from(n), b.from(n))
}

// lastTwo is add for a and then last for b.
func (s sums) lastTwo(dst []float32, a, b column, total float64) (values, means bool) {
	n, values, means := lastTwoVector(dst, s, a, b, total)
	rest := s[n:]
	values = addTwoScalar(rest, a.from(n), b.from(n)) && values
	return values, meanScalar(dst[n:], rest, total) && means
}

func addTwoScalar(s sums, a, b column) bool {
	first := addScalar(s, a.bytes, a.weight)
	return addScalar(s, b.bytes, b.weight) && first
}

// addScalar rounds the product before it adds, on every processor, like the vector code.
func addScalar(s sums, b []byte, weight float64) bool {
	le, bad := binary.LittleEndian, uint32(0)
	for len(s) >= 4 && len(b) >= 16 {
		x0, x1, x2, x3 := le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:])
		bad |= overflow(x0) | overflow(x1) | overflow(x2) | overflow(x3)
		s[0] += float64(weight * float64(math.Float32frombits(x0)))
		s[1] += float64(weight * float64(math.Float32frombits(x1)))
		s[2] += float64(weight * float64(math.Float32frombits(x2)))
		s[3] += float64(weight * float64(math.Float32frombits(x3)))
		s, b = s[4:], b[16:]
	}
	for i := range s {
		x := le.Uint32(b[4*i:])
		bad |= overflow(x)
		s[i] += float64(weight * float64(math.Float32frombits(x)))
	}
	return bad>>31 == 0
}

// overflow sets the top bit for NaN and infinity.
func overflow(x uint32) uint32 { return x&exponent + 0x00800000 }

// addFloats is add for decoded values.
func (s sums) addFloats(v []float32, weight float64) bool {
	bad := uint32(0)
	for i, x := range v {
		bad |= overflow(math.Float32bits(x))
		s[i] += float64(weight * float64(x))
	}
	return bad>>31 == 0
}

// mean writes the sums over the total weight, and returns whether all means are finite.
func (s sums) mean(dst []float32, total float64) bool {
	n := meanVector(dst, s, total)
	if n < 0 {
		return false
	}
	return meanScalar(dst[n:], s[n:], total)
}

func meanScalar(dst []float32, s sums, total float64) bool {
	bad := uint32(0)
	for i := range dst {
		dst[i] = float32(s[i] / total)
		bad |= overflow(math.Float32bits(dst[i]))
	}
	return bad>>31 == 0
}
