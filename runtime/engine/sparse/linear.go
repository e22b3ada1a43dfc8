package sparse

import (
	"math"

	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// rowsAtOnce is how many rows are summed up together.
const rowsAtOnce = 128

// linear is pass for weights of columns.
func (e *Engine) linear(b *dataset.Batch, gradient bool) (loss float64) {
	columns, bias := &e.tables[0], &e.tables[1]
	in, targets := &b.Input, b.Target.Values
	intercept := float64(bias.value[0])
	scale := 1 / float64(in.Rows)
	var slopes float64
	for from := 0; from < in.Rows; from += rowsAtOnce {
		for i, sum := range e.sumsOf(in, from) {
			r := from + i
			sum += intercept
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
				columns.add(in, r, float32(slope))
			}
		}
	}
	if gradient {
		bias.addOnes([]int32{0}, float32(slopes))
	}
	return loss
}

// sumsOf is the sums of up to rowsAtOnce rows, from one on, without the intercept: good until the next.
func (e *Engine) sumsOf(in *dataset.Matrix, from int) []float64 {
	sums := e.sums[:min(rowsAtOnce, in.Rows-from)]
	entries := kernel.Entries{Start: in.Start[from:], Index: in.Index, Values: in.Values}
	e.exact.Sums(&entries, e.tables[0].value, sums)
	return sums
}

// add adds a row's entries, each times slope, to the gradients of their columns, in a table of width 1.
func (t *table) add(in *dataset.Matrix, row int, slope float32) {
	index := in.Index[in.Start[row]:in.Start[row+1]]
	if in.Values == nil {
		t.addOnes(index, slope)
		return
	}
	slot, marks, n := t.slot, t.marks, t.n
	values := in.Values[in.Start[row]:in.Start[row+1]]
	values = values[:len(index)]
	for k, c := range index {
		v := float32(slope * values[k]) // rounded before it is added, on every processor
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
