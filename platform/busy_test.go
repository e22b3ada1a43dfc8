package platform

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// The reader itself runs while it looks and is no load; a burst that one look sees is none either.
func TestBusyCountsOtherThreads(t *testing.T) {
	for name, c := range map[string]struct {
		looks []string
		want  float64
	}{
		"quiet":       {[]string{"0.10 0.20 0.30 1/107 99"}, 0},
		"two threads": {[]string{"0.10 0.20 0.30 3/107 99"}, 2},
		"one burst": {append([]string{"0 0 0 9/107 99"},
			"0 0 0 2/107 99", "0 0 0 2/107 99", "0 0 0 2/107 99", "0 0 0 2/107 99"), 1},
		"no such file": {nil, 0},
		"other text":   {[]string{"0.10 0.20"}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			i := 0
			read := func() (string, error) {
				if len(c.looks) == 0 {
					return "", errors.New("no such file")
				}
				i++
				return c.looks[(i-1)%len(c.looks)], nil
			}
			if got := busy(t.Context(), read); got != c.want {
				t.Errorf("%s: %v threads, want %v", name, got, c.want)
			}
		})
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if got := Busy(ended); got != 0 {
		t.Errorf("after its context: %v threads", got)
	}
}
