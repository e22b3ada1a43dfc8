package kernel

import (
	"math"
	"unsafe"
)

// exactPortable is plain Go. Products are converted to float32 before they are added: what is not, processors with an
// instruction for both may round once, and these bits have to be the same on all.
func exactPortable() exactFunctions {
	return exactFunctions{
		products: pairProducts, slopes: pairSlopes, plain: rowsPlain, momentum: rowsMomentum, nesterov: rowsNesterov,
		adam: rowsAdam, squares: exactSquares, changes: changesOf, sums: entrySums, addEntries: addEntries,
	}
}

func floats(p unsafe.Pointer, n int64) []float32 { return unsafe.Slice((*float32)(p), n) }

// pair is the user's row and the item's of pair i.
func (a *pairArgs) pair(i int64) (user, item []float32) {
	at, width := unsafe.Slice((*int32)(ptr(a.index, 8*i)), 2), a.row/4
	return floats(ptr(a.users, int64(at[0])*a.row), width), floats(ptr(a.items, (int64(at[1])-a.first)*a.row), width)
}

func pairProducts(a *pairArgs) {
	last := a.row/4 - 1
	for i, out := int64(0), floats(a.values, a.n); i < a.n; i++ {
		u, v := a.pair(i)
		out[i] = a.offset + u[last] + v[last] + dot(u[:last], v[:last])
	}
}

// dot is the product of two vectors of one length, in four sums that do not wait for each other.
func dot(x, y []float32) float32 {
	y = y[:len(x)]
	var a, b, c, d float32
	k := 0
	for ; k+4 <= len(x); k += 4 {
		x4, y4 := x[k:k+4:k+4], y[k:k+4:k+4]
		a += float32(x4[0] * y4[0])
		b += float32(x4[1] * y4[1])
		c += float32(x4[2] * y4[2])
		d += float32(x4[3] * y4[3])
	}
	for ; k < len(x); k++ {
		a += float32(x[k] * y[k])
	}
	return (a + b) + (c + d)
}

func pairSlopes(a *pairArgs) {
	width := a.row / 4
	for i, slopes := int64(0), floats(a.values, a.n); i < a.n; i++ {
		u, v := a.pair(i)
		at := unsafe.Slice((*int32)(ptr(a.places, 8*i)), 2)
		gu := floats(ptr(a.userGradients, int64(at[0])*a.row), width)
		gv := floats(ptr(a.itemGradients, int64(at[1])*a.row), width)
		addBoth(gu, gv, u, v, slopes[i])
	}
}

func addBoth(gu, gv, u, v []float32, slope float32) {
	last := len(u) - 1
	gu, gv, v = gu[:len(u)], gv[:len(u)], v[:len(u)]
	for k := range last {
		gu[k] += float32(slope * v[k])
		gv[k] += float32(slope * u[k])
	}
	gu[last] += slope
	gv[last] += slope
}

func exactSquares(e *elementArgs) {
	sums := unsafe.Slice((*float64)(e.dst), squareLanes)
	for x := floats(e.a, e.n/4); len(x) > 0; x = x[squareLanes:] {
		for l, v := range x[:squareLanes] {
			sums[l] += float64(v) * float64(v) // which is exact: fused or not, the sum is rounded once
		}
	}
}

func changesOf(a *changeArgs) {
	x, began, local := floats(a.x, a.n), floats(a.began, a.n), floats(a.local, a.n)
	marks := unsafe.Slice((*byte)(a.marks), (a.n+7)/8)
	clear(marks)
	var sent []float32
	if a.sent != nil {
		sent = floats(a.sent, a.n)
	}
	for k, v := range x {
		owed := v - began[k]
		local[k] = owed
		if sent != nil {
			owed -= sent[k]
		}
		if owed != 0 && !(magnitude(owed) < float32(a.factor*magnitude(v))) {
			marks[k/8] |= 1 << (k % 8)
		}
	}
}

// magnitude is |v|.
func magnitude(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }
