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

// row is where the values of the row that was touched i-th lie, in bytes, and its gradient.
func (a *rowArgs) row(i int64) (at int64, gradient []float32) {
	row := *(*int32)(ptr(a.rows, i*a.rowStep))
	return int64(row) * a.width, floats(ptr(a.gradients, i*a.gradientStep), a.width/4)
}

// of is the row of an array that lies so many bytes behind its start.
func (a *rowArgs) of(array unsafe.Pointer, at int64) []float32 {
	return floats(ptr(array, at), a.width/4)
}

// The scalars of rowArgs.
const (
	scalarRate = iota
	scalarScale
	scalarDecay
	scalarMomentum // or the first of Adam's

	scalarBeta1   = 3
	scalarRest1   = 4 // 1 - beta1
	scalarBeta2   = 5
	scalarRest2   = 6
	scalarUnbias  = 7 // of the squares; that of the means is in the rate
	scalarEpsilon = 8
	scalarKeep    = 9 // what AdamW's decay leaves
)

// slope is a gradient, scaled and with decay.
func (a *rowArgs) slope(g, w float32) float32 {
	return float32(a.s[scalarScale]*g) + float32(a.s[scalarDecay]*w)
}

func rowsPlain(a *rowArgs) {
	for i := range a.n {
		at, g := a.row(i)
		x := a.of(a.values, at)
		for k, w := range x {
			x[k] = w - float32(a.s[scalarRate]*a.slope(g[k], w))
		}
	}
}

func rowsMomentum(a *rowArgs) { withVelocity(a, false) }
func rowsNesterov(a *rowArgs) { withVelocity(a, true) }

func withVelocity(a *rowArgs, nesterov bool) {
	momentum := a.s[scalarMomentum]
	for i := range a.n {
		at, g := a.row(i)
		x, velocity := a.of(a.values, at), a.of(a.first, at)
		for k, w := range x {
			slope := a.slope(g[k], w)
			v := float32(momentum*velocity[k]) + slope
			velocity[k] = v
			if nesterov {
				v = slope + float32(momentum*v)
			}
			x[k] = w - float32(a.s[scalarRate]*v)
		}
	}
}

func rowsAdam(a *rowArgs) {
	s := &a.s
	for i := range a.n {
		at, g := a.row(i)
		x, mean, square := a.of(a.values, at), a.of(a.first, at), a.of(a.second, at)
		for k, w := range x {
			slope := a.slope(g[k], w)
			m := float32(s[scalarBeta1]*mean[k]) + float32(s[scalarRest1]*slope)
			v := float32(s[scalarBeta2]*square[k]) + float32(float32(s[scalarRest2]*slope)*slope)
			mean[k], square[k] = m, v
			root := float32(math.Sqrt(float64(float32(v * s[scalarUnbias]))))
			x[k] = float32(s[scalarKeep]*w) - float32(s[scalarRate]*m)/(root+s[scalarEpsilon])
		}
	}
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
