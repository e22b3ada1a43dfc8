package kernel

import (
	"math"
	"unsafe"
)

// Exact computes with few rows of large tables, and with vectors of any length, to the same bits on every path: nothing
// is multiplied and added at once, and sums have an order that does not depend on how many values an instruction takes.
// What is NaN is NaN everywhere, whatever its bits. It is for one goroutine and allocates nothing.
type Exact struct {
	add     func(*elementArgs) // whose sums are rounded once, on every path
	f       exactFunctions
	pairs   pairArgs
	rows    rowArgs
	changes changeArgs
	entries entryArgs
	elem    elementArgs
	sums    [squareLanes]float64
}

// NewExact makes the kernels of a set.
func NewExact(s Set) *Exact { return &Exact{f: s.exact, add: s.f.add} }

// exactFunctions is one implementation of Exact. Each of them is called for at least one row, pair or eight values.
type exactFunctions struct {
	products, slopes                func(*pairArgs)
	plain, momentum, nesterov, adam func(*rowArgs)
	squares                         func(*elementArgs)
	changes                         func(*changeArgs)
	sums, addEntries                func(*entryArgs)
}

// Pairs are rows of two tables of one width that belong together, as a user and an item that he has rated: factors, and
// a bias in the last column.
type Pairs struct {
	Users, Items []float32 // tables [rows Width]
	Width        int       // at least 1
	Index        []int32   // of each pair: the user's row, and First + the item's
	First        int32
}

// pairsOf sets the arguments that all kernels of pairs take, and tells whether there is anything to do.
func (e *Exact) pairsOf(p *Pairs, values []float32) bool {
	if len(values) == 0 {
		return false
	}
	a := &e.pairs
	a.users, a.items, a.index = p32(p.Users), p32(p.Items), unsafe.Pointer(&p.Index[0])
	a.values, a.n = p32(values), int64(len(p.Index[:2*len(values)])/2)
	a.row, a.first = int64(4*p.Width), int64(p.First)
	return true
}

// Products writes for each pair offset + the user's bias + the item's + the product of their factors. The product is
// four sums of every fourth factor, of which the first has also those that are left over, and (a + b) + (c + d).
func (e *Exact) Products(p *Pairs, offset float32, out []float32) {
	e.pairs.offset = offset
	if e.pairsOf(p, out) {
		e.f.products(&e.pairs)
	}
}

// Slopes adds the gradients of all pairs. The slope of a pair times the item's factors is added to the gradient of the
// user. The slope times the user's factors is added to the gradient of the item. The slope itself is added to the
// gradients of both biases. Gradients are rows [rows Width]; places has the rows of the user and of the item of each
// pair.
func (e *Exact) Slopes(p *Pairs, slopes []float32, places []int32, users, items []float32) {
	if e.pairsOf(p, slopes) {
		e.pairs.places = unsafe.Pointer(&places[:2*len(slopes)][0])
		e.pairs.userGradients, e.pairs.itemGradients = p32(users), p32(items)
		e.f.slopes(&e.pairs)
	}
}

// Add is dst = a + b.
func (e *Exact) Add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	vectorized := len(dst) &^ (lanes - 1)
	if vectorized > 0 {
		e.elem.dst, e.elem.a, e.elem.b, e.elem.n = p32(dst), p32(a), p32(b), int64(4*vectorized)
		e.add(&e.elem)
	}
	for k := vectorized; k < len(dst); k++ {
		dst[k] = a[k] + b[k]
	}
}

// squareLanes is how many sums SquareSum has: of every eighth value each.
const squareLanes = 8

// SquareSum is the sum of the squares of x in float64. It is NaN or infinite only if one of x is.
func (e *Exact) SquareSum(x []float32) float64 {
	e.sums = [squareLanes]float64{}
	vectorized := len(x) &^ (squareLanes - 1)
	if vectorized > 0 {
		e.elem.dst, e.elem.a, e.elem.n = unsafe.Pointer(&e.sums), p32(x), int64(4*vectorized)
		e.f.squares(&e.elem)
	}
	s := &e.sums
	for k, v := range x[vectorized:] {
		s[k] += float64(v) * float64(v)
	}
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

// Changes writes to local how far x is from began, and tells of which values more than a share of x is owed: the bit
// k % 8 of marks[k/8] says of value k that local - sent is neither 0 nor below factor |x|. sent may be nil, for zeros;
// NaN is owed. The product is rounded to float32.
func (e *Exact) Changes(x, began, sent, local []float32, factor float32, marks []byte) {
	vectorized := len(x) &^ 7
	for _, part := range [...]struct {
		from, end int
		f         func(*changeArgs)
	}{{0, vectorized, e.f.changes}, {vectorized, len(x), changesOf}} {
		if part.from == part.end {
			continue
		}
		a := &e.changes
		a.x, a.began, a.local, a.sent = p(x, part.from), p(began[:len(x)], part.from), p(local[:len(x)], part.from), nil
		if sent != nil {
			a.sent = p(sent[:len(x)], part.from)
		}
		a.marks, a.n, a.factor = unsafe.Pointer(&marks[:(len(x)+7)/8][part.from/8]), int64(part.end-part.from), factor
		part.f(a)
	}
}

// p32 is the address of a slice, nil of an empty one.
func p32(x []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }

// pairArgs are those of kernels of pairs.
type pairArgs struct {
	users, items                 unsafe.Pointer // tables
	userGradients, itemGradients unsafe.Pointer
	index, places                unsafe.Pointer // two int32 a pair
	values                       unsafe.Pointer // one a pair: products, or slopes
	n                            int64          // pairs
	row                          int64          // bytes
	first                        int64          // what the second index of a pair is more than the item's row
	offset                       float32
}

// changeArgs are those of changes.
type changeArgs struct {
	x, began, sent, local unsafe.Pointer
	marks                 unsafe.Pointer // bytes
	n                     int64          // values
	factor                float32
}

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

// Entries are rows that have values in few of many columns: row i has those from Start[i] to Start[i+1].
type Entries struct {
	Start  []int32
	Index  []int32   // columns
	Values []float32 // nil: all are 1
}

// entryArgs are those of kernels of entries.
type entryArgs struct {
	start, index, values unsafe.Pointer
	weights              unsafe.Pointer
	out                  unsafe.Pointer // one a row: float64 sums, or float32 factors
	n                    int64          // rows
}

func (e *Exact) entriesOf(in *Entries, weights []float32, rows int) bool {
	if rows == 0 || in.Start[:rows+1][0] == in.Start[rows] {
		return false
	}
	a := &e.entries
	a.start, a.index, a.values = unsafe.Pointer(&in.Start[0]), unsafe.Pointer(&in.Index[0]), p32(in.Values)
	a.weights, a.n = p32(weights), int64(rows)
	return true
}

// Sums writes for each row the sum of its entries, each times the weight of its column: products of float32, and four
// sums of float64 of every fourth product, of which the first has also those that are left over, and (a + b) + (c + d).
func (e *Exact) Sums(in *Entries, weights []float32, out []float64) {
	if !e.entriesOf(in, weights, len(out)) {
		clear(out)
		return
	}
	e.entries.out = unsafe.Pointer(&out[0])
	e.f.sums(&e.entries)
}

// AddEntries adds to the weights, entry by entry, what the entry is times its row's factor.
func (e *Exact) AddEntries(in *Entries, factors, weights []float32) {
	if e.entriesOf(in, weights, len(factors)) {
		e.entries.out = p32(factors)
		e.f.addEntries(&e.entries)
	}
}

// row is the entries of a row.
func (a *entryArgs) row(i int64) (index []int32, values []float32) {
	start := unsafe.Slice((*int32)(ptr(a.start, 4*i)), 2)
	n := int64(start[1]) - int64(start[0])
	if n == 0 { // of the last row they would begin where the array ends
		return nil, nil
	}
	if a.values != nil {
		values = floats(ptr(a.values, 4*int64(start[0])), n)
	}
	return unsafe.Slice((*int32)(ptr(a.index, 4*int64(start[0]))), n), values
}

func entrySums(a *entryArgs) {
	out := unsafe.Slice((*float64)(a.out), a.n)
	for i := range out {
		index, values := a.row(int64(i))
		out[i] = weighed(a.weights, index, values)
	}
}

// weighed is the sum of a row's entries, each times the weight of its column, in four sums that do not wait for each
// other.
func weighed(w unsafe.Pointer, index []int32, values []float32) float64 {
	var a, b, c, d float64
	if values == nil {
		for ; len(index) >= 4; index = index[4:] {
			a += float64(weight(w, index[0]))
			b += float64(weight(w, index[1]))
			c += float64(weight(w, index[2]))
			d += float64(weight(w, index[3]))
		}
		for _, column := range index {
			a += float64(weight(w, column))
		}
		return (a + b) + (c + d)
	}
	values = values[:len(index)]
	for ; len(index) >= 4; index, values = index[4:], values[4:] {
		a += float64(float32(weight(w, index[0]) * values[0]))
		b += float64(float32(weight(w, index[1]) * values[1]))
		c += float64(float32(weight(w, index[2]) * values[2]))
		d += float64(float32(weight(w, index[3]) * values[3]))
	}
	for k, column := range index {
		a += float64(float32(weight(w, column) * values[k]))
	}
	return (a + b) + (c + d)
}

func weight(w unsafe.Pointer, column int32) float32 { return *(*float32)(ptr(w, 4*int64(column))) }

func addEntries(a *entryArgs) {
	for i, factor := range floats(a.out, a.n) {
		index, values := a.row(int64(i))
		if values == nil {
			for _, column := range index {
				*(*float32)(ptr(a.weights, 4*int64(column))) += factor
			}
			continue
		}
		values = values[:len(index)]
		for k, column := range index {
			*(*float32)(ptr(a.weights, 4*int64(column))) += float32(factor * values[k])
		}
	}
}
