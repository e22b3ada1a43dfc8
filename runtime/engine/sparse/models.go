package sparse

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
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

// pairsAtOnce is how many ratings go through a step's parts together: few enough that their rows are near still when
// what was predicted by them becomes their gradient.
const pairsAtOnce = 128

// factors is pass for ratings: a prediction is the offset, the biases of user and item, and the product of their
// factors.
func (e *Engine) factors(b *dataset.Batch, gradient bool) (loss float64) {
	users, items := &e.tables[0], &e.tables[1]
	in, targets := &b.Input, b.Target.Values
	pairs := kernel.Pairs{Users: users.value, Items: items.value, Width: users.width, First: int32(e.net.Users)}
	scale := 1 / float64(in.Rows)
	for from := 0; from < in.Rows; from += pairsAtOnce {
		end := min(from+pairsAtOnce, in.Rows)
		pairs.Index = in.Index[2*from : 2*end]
		out := e.out[from:end]
		e.exact.Products(&pairs, e.offset, out)
		for i, sum := range out {
			if !gradient {
				out[i] = e.predicted(float64(sum))
			}
			if targets == nil {
				continue
			}
			l, slope := e.loss(float64(sum), targets[from+i])
			loss += l
			if gradient {
				out[i] = float32(slope * scale)
			}
		}
		if gradient {
			e.addPairs(&pairs, out)
		}
	}
	return loss
}

// addPairs adds ratings, by their slopes, to the gradients of their users and items. The rows that are touched for the
// first time are cleared together, before.
func (e *Engine) addPairs(p *kernel.Pairs, slopes []float32) {
	users, items := &e.tables[0], &e.tables[1]
	knownUsers, knownItems := users.n, items.n
	places := e.places[:2*len(slopes)]
	for i := 0; i < len(places); i += 2 {
		places[i], places[i+1] = users.place(p.Index[i]), items.place(p.Index[i+1]-p.First)
	}
	clear(users.grad[knownUsers*users.width : users.n*users.width])
	clear(items.grad[knownItems*items.width : items.n*items.width])
	e.exact.Slopes(p, slopes, places, users.grad, items.grad)
}

// loss is the loss of a row, and its slope by the row's sum.
func (e *Engine) loss(sum float64, target float32) (loss, slope float64) {
	if e.probability {
		return logistic(sum, float64(target))
	}
	d := sum - float64(target)
	return d * d, 2 * d
}

// logistic is -y log p - (1-y) log(1-p) with p = 1/(1+exp(-z)), and its slope p - y. It goes by z itself, so that
// neither logarithm sees a probability that was rounded to 0 or 1.
func logistic(z, y float64) (loss, slope float64) {
	tail := math.Exp(-math.Abs(z))
	return math.Log1p(tail) + math.Max(z, 0) - y*z, sigmoid(z, tail) - y
}

// sigmoid is 1/(1+exp(-z)), tail being exp(-|z|).
func sigmoid(z, tail float64) float64 {
	if z < 0 {
		return tail / (1 + tail)
	}
	return 1 / (1 + tail)
}

// predicted is what a row's sum stands for.
func (e *Engine) predicted(sum float64) float32 {
	if e.probability {
		return float32(sigmoid(sum, math.Exp(-math.Abs(sum))))
	}
	return float32(sum)
}

// direct tells whether a step of so many rows can move each weight as often as rows have an entry for it: plain
// gradients of a logistic regression, whose slopes are at most 1. Sums are then taken on the weights themselves, not in
// a gradient beside them, which is most of what a step does otherwise. A bound for the gradient's length, and decay of
// touched weights, need the gradient.
func (e *Engine) direct(rows int) bool {
	o := e.layout.spec.Optimizer.SGD
	return o != nil && o.Momentum == 0 && o.WeightDecay == 0 && e.layout.spec.ClipNorm == 0 && e.probability &&
		e.rate <= float64(rows) // so that no product of a finite entry and its slope is infinite
}

// stepDirect is Step where direct says so. All slopes are taken before any weight is moved.
func (e *Engine) stepDirect(b *dataset.Batch) (disdel.Metrics, error) {
	rows := b.Input.Rows
	loss := e.slopes(b) / float64(rows)
	if !finite(loss) {
		return disdel.Metrics{}, &disdel.Error{
			Kind: disdel.Diverged, Op: "train", Msg: fmt.Sprintf("the loss is %v", loss),
			Hint: "lower the learning rate, or check the data's scale",
		}
	}
	e.steps++
	scale, all := -e.rate/float64(rows), 0.0
	for r, slope := range e.out[:rows] {
		all += float64(slope)
		e.out[r] = float32(scale * float64(slope))
	}
	entries := kernel.Entries{Start: b.Input.Start, Index: b.Input.Index, Values: b.Input.Values}
	e.exact.AddEntries(&entries, e.out[:rows], e.tables[0].value)
	e.tables[1].value[0] += float32(scale * all)
	return disdel.Metrics{Rows: rows, Loss: loss}, nil
}

// logRows is of how many rows one logarithm is taken: each adds a factor of 1 to 2 to what it is taken of.
const logRows = 512

// slopes writes every row's slope into out, and returns the sum of their losses.
func (e *Engine) slopes(b *dataset.Batch) (loss float64) {
	in, targets := &b.Input, b.Target.Values
	intercept := float64(e.tables[1].value[0])
	product := 1.0
	for from := 0; from < in.Rows; from += rowsAtOnce {
		for i, sum := range e.sumsOf(in, from) {
			r := from + i
			z, y := intercept+sum, float64(targets[r])
			tail := math.Exp(-math.Abs(z))
			e.out[r] = float32(sigmoid(z, tail) - y)
			loss += max(z, 0) - y*z
			if product *= 1 + tail; r%logRows == logRows-1 {
				loss, product = loss+math.Log(product), 1
			}
		}
	}
	return loss + math.Log(product)
}
