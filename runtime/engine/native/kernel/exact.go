package kernel

import "unsafe"

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

// Slopes adds, pair by pair, its slope times the item's factors to the gradient of the user and times the user's to
// that of the item, and the slope itself to those of both biases. Gradients are rows [rows Width]; places has of each
// pair the user's and the item's.
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
	whole := len(dst) &^ (lanes - 1)
	if whole > 0 {
		e.elem.dst, e.elem.a, e.elem.b, e.elem.n = p32(dst), p32(a), p32(b), int64(4*whole)
		e.add(&e.elem)
	}
	for k := whole; k < len(dst); k++ {
		dst[k] = a[k] + b[k]
	}
}

// squareLanes is how many sums SquareSum has: of every eighth value each.
const squareLanes = 8

// SquareSum is the sum of the squares of x in float64. It is NaN or infinite only if one of x is.
func (e *Exact) SquareSum(x []float32) float64 {
	e.sums = [squareLanes]float64{}
	whole := len(x) &^ (squareLanes - 1)
	if whole > 0 {
		e.elem.dst, e.elem.a, e.elem.n = unsafe.Pointer(&e.sums), p32(x), int64(4*whole)
		e.f.squares(&e.elem)
	}
	s := &e.sums
	for k, v := range x[whole:] {
		s[k] += float64(v) * float64(v)
	}
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

// Changes writes to local how far x is from began, and tells of which values more than a share of x is owed: the bit
// k % 8 of marks[k/8] says of value k that local - sent is neither 0 nor below factor |x|. sent may be nil, for zeros;
// NaN is owed. The product is rounded to float32.
func (e *Exact) Changes(x, began, sent, local []float32, factor float32, marks []byte) {
	whole := len(x) &^ 7
	for _, part := range [...]struct {
		from, end int
		f         func(*changeArgs)
	}{{0, whole, e.f.changes}, {whole, len(x), changesOf}} {
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
