package main

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestServeLimitsItsHeap checks that a server collects garbage before one tenant's requests double its memory, and that
// an operator's own limit stays.
func TestServeLimitsItsHeap(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "1GiB")
	if limitHeap(); debug.SetMemoryLimit(-1) != math.MaxInt64 {
		t.Error("the limit of the operator was changed")
	}
	t.Setenv("GOMEMLIMIT", "")
	if limitHeap(); debug.SetMemoryLimit(-1) != serverHeap {
		t.Errorf("the limit is %d", debug.SetMemoryLimit(-1))
	}
}
