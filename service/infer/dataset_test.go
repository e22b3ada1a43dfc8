package infer

import (
	"testing"
)

// An action gets as many rows as its bounds leave it, and no action is started for a few.
func TestRowsOfAnAction(t *testing.T) {
	for _, c := range []struct {
		n, sample, answer int
		products          int64
		want              int
	}{
		{10, 64, 40, 1e6, 10},
		{1000, 64, 40, 1e6, 256},
		{1797, 64, 40, 1e6, 450},
		{1 << 30, 64, 40, 1e4, 16 << 20 / 40},
		{1 << 30, 64 << 10, 40, 1e4, 512},
		{10_000, 150_528, 4000, 1e9, 100},
		{10_000, 150_528, 4000, 15e9, 16},
		{10, 1, 1, 1e15, 10},
	} {
		if got := rowsOfAction(c.n, c.sample, c.answer, c.products); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
