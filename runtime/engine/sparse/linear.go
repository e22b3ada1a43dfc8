package sparse

import "github.com/disdel/disdel/dataset"

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
		e.out[r] = e.predicted(sum)
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
		bias.touch(0)[0] = float32(slopes)
	}
	return loss
}

// weighed is the sum of a row's entries, each times the weight of its column.
func weighed(w []float32, index []int32, values []float32) (sum float64) {
	if values == nil {
		for _, c := range index {
			sum += float64(w[c])
		}
		return sum
	}
	values = values[:len(index)]
	for k, c := range index {
		sum += float64(w[c] * values[k])
	}
	return sum
}

// add adds a row's entries, each times slope, to the gradients of their columns, in a table of width 1.
func (t *table) add(index []int32, values []float32, slope float32) {
	if values == nil {
		for _, c := range index {
			t.grad[t.place(c)] += slope
		}
		return
	}
	values = values[:len(index)]
	for k, c := range index {
		t.grad[t.place(c)] += slope * values[k]
	}
}
