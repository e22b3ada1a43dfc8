package aggregator

import (
	"context"
	"errors"
	"testing"
)

// Of several errors the first one is told that no other has caused: that of the smallest index, wherever it stands.
func TestTheFirstFaultIsTold(t *testing.T) {
	one, two, stopped := errors.New("one"), errors.New("two"), context.Canceled
	for what, c := range map[string]struct {
		faults []error
		at     []int
		want   error
	}{
		"the smaller index, first":   {[]error{one, two}, []int{3, 5}, one},
		"the smaller index, last":    {[]error{one, two}, []int{5, 3}, two},
		"what stopped the others":    {[]error{stopped, two}, []int{3, 5}, two},
		"not what was stopped later": {[]error{one, stopped}, []int{5, 3}, one},
		"no error in between":        {[]error{nil, two, nil}, []int{0, 5, 0}, two},
		"none at all":                {[]error{nil, nil}, []int{0, 0}, nil},
	} {
		if got := firstFault(t.Context(), c.faults, c.at); got != c.want {
			t.Errorf("%s: %v, not %v", what, got, c.want)
		}
	}
}
