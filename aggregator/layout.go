package aggregator

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// columnValues is how many values lie in one key: in every format they stay, with Redis' own bytes about a value,
// within a class of its allocator (1 MiB, 512 KiB and 256 KiB; a byte more would cost a quarter more memory), small
// enough to stay in the processors' caches on their way, and whole blocks of int8.
const columnValues = 1000 * blockValues

// layout is where the values of weights lie: one tensor after another, cut into columns of so many values. Column k of
// every member of a reduction holds the same values, whatever the wire format.
type layout struct {
	tensors []disdel.Tensor // without data
	starts  []int           // first value of every tensor, then their number
	column  int
}

func newLayout(w disdel.Weights, column int) layout {
	l := layout{tensors: make([]disdel.Tensor, len(w)), starts: make([]int, len(w)+1), column: column}
	for i, t := range w {
		l.tensors[i] = disdel.Tensor{Name: t.Name, Shape: t.Shape}
		n := 1
		for _, side := range t.Shape {
			n *= side
		}
		l.starts[i+1] = l.starts[i] + n
	}
	return l
}

func (l layout) values() int { return l.starts[len(l.starts)-1] }

// columns is at least 1, so that weights without values are a value too.
func (l layout) columns() int { return max(1, (l.values()+l.column-1)/l.column) }

// span is the values of column k.
func (l layout) span(k int) (from, to int) {
	return k * l.column, min((k+1)*l.column, l.values())
}

// runs are the pieces of column k that belong to one tensor each, in values. Blocks of int8 do not cross them.
func (l layout) runs(k int) []int {
	from, to := l.span(k)
	var out []int
	i, _ := slices.BinarySearch(l.starts, from+1)
	for i--; from < to; i++ {
		end := min(to, l.starts[i+1])
		if end > from {
			out = append(out, end-from)
		}
		from = max(from, end)
	}
	return out
}

// gather copies column k of w into dst and returns it.
func (l layout) gather(dst []float32, w disdel.Weights, k int) []float32 {
	from, to := l.span(k)
	dst = dst[:0]
	i, _ := slices.BinarySearch(l.starts, from+1)
	for i--; from < to; i++ {
		end := min(to, l.starts[i+1])
		dst = append(dst, w[i].Data[from-l.starts[i]:end-l.starts[i]]...)
		from = end
	}
	return dst
}

// over makes weights that are slices of one array.
func (l layout) over(values []float32) disdel.Weights {
	out := make(disdel.Weights, len(l.tensors))
	for i, t := range l.tensors {
		a, b := l.starts[i], l.starts[i+1]
		out[i] = disdel.Tensor{Name: t.Name, Shape: t.Shape, Data: values[a:b:b]}
	}
	return out
}

// at names the value that is number i of all.
func (l layout) at(i int) string {
	t, _ := slices.BinarySearch(l.starts, i+1)
	return fmt.Sprintf("value %d of %s", i-l.starts[t-1], l.tensors[t-1].Name)
}

// check says whether w has data for its shapes.
func (l layout) check(w disdel.Weights) error {
	for i, t := range w {
		if len(t.Data) != l.starts[i+1]-l.starts[i] || len(t.Shape) > maxRank ||
			slices.ContainsFunc(t.Shape, func(n int) bool { return n < 0 }) {
			return fmt.Errorf("tensor %s of %v has %d values", t.Name, t.Shape, len(t.Data))
		}
	}
	return nil
}

// same compares names and shapes.
func (l layout) same(like disdel.Weights) error {
	if len(l.tensors) != len(like) {
		return fmt.Errorf("%d tensors, not %d", len(l.tensors), len(like))
	}
	for i, t := range l.tensors {
		if t.Name != like[i].Name || !slices.Equal(t.Shape, like[i].Shape) {
			return fmt.Errorf("tensor %d is %s %v, not %s %v", i, t.Name, t.Shape, like[i].Name, like[i].Shape)
		}
	}
	return nil
}
