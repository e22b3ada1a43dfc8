package kernel

import "unsafe"

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
