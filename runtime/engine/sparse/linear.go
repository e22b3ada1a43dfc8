package sparse

import (
	"math"

	"github.com/disdel/disdel/dataset"
)

// linear is pass for weights of columns.
func (e *Engine) linear(b *dataset.Batch, gradient bool) (loss float64) {
	columns, bias := &e.tables[0], &e.tables[1]
	in, targets := &b.Input, b.Target.Values
	w, intercept := columns.value, float64(bias.value[0])
	scale := 1 / float64(in.Rows)
	var slopes float64
	for r := range in.Rows {
		index := in.Index[in.Start[r]:in.Start[r+1]]
		var values []float32
		if in.Values != nil {
			values = in.Values[in.Start[r]:in.Start[r+1]]
		}
		sum := intercept + weighed(w, index, values)
		if !gradient {
			e.out[r] = e.predicted(sum)
		}
		if targets == nil {
			continue
		}
		l, slope := e.loss(sum, targets[r])
		loss += l
		if gradient {
			slope *= scale
			slopes += slope
			columns.add(index, values, float32(slope))
		}
	}
	if gradient {
		bias.addOnes([]int32{0}, float32(slopes))
	}
	return loss
}

// weighed is the sum of a row's entries, each times the weight of its column, in four sums that do not wait for each
// other.
func weighed(w []float32, index []int32, values []float32) float64 {
	var a, b, c, d float64
	if values == nil {
		for ; len(index) >= 4; index = index[4:] {
			a += float64(w[index[0]])
			b += float64(w[index[1]])
			c += float64(w[index[2]])
			d += float64(w[index[3]])
		}
		for _, column := range index {
			a += float64(w[column])
		}
		return (a + b) + (c + d)
	}
	values = values[:len(index)]
	for ; len(index) >= 4; index, values = index[4:], values[4:] {
		a += float64(w[index[0]] * values[0])
		b += float64(w[index[1]] * values[1])
		c += float64(w[index[2]] * values[2])
		d += float64(w[index[3]] * values[3])
	}
	for k, column := range index {
		a += float64(w[column] * values[k])
	}
	return (a + b) + (c + d)
}

// add adds a row's entries, each times slope, to the gradients of their columns, in a table of width 1. values are nil
// where all of them are 1.
func (t *table) add(index []int32, values []float32, slope float32) {
	if values == nil {
		t.addOnes(index, slope)
		return
	}
	slot, marks, n := t.slot, t.marks, t.n
	values = values[:len(index)]
	for k, c := range index {
		v := slope * values[k]
		if s := uint(uint32(slot[c])); s < uint(n) {
			if m := marks[2*s : 2*s+2 : 2*s+2]; m[0] == c {
				m[1] = int32(math.Float32bits(math.Float32frombits(uint32(m[1])) + v))
				continue
			}
		}
		slot[c], marks[2*n], marks[2*n+1] = int32(n), c, int32(math.Float32bits(v))
		n++
	}
	t.n = n
}

// addOnes is add of entries that are all 1.
func (t *table) addOnes(index []int32, slope float32) {
	slot, marks, n := t.slot, t.marks, t.n
	for _, c := range index {
		if s := uint(uint32(slot[c])); s < uint(n) {
			if m := marks[2*s : 2*s+2 : 2*s+2]; m[0] == c {
				m[1] = int32(math.Float32bits(math.Float32frombits(uint32(m[1])) + slope))
				continue
			}
		}
		slot[c], marks[2*n], marks[2*n+1] = int32(n), c, int32(math.Float32bits(slope))
		n++
	}
	t.n = n
}
