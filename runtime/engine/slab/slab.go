// Package slab is memory for the arrays of an engine: float32 and int32 values outside the Go heap, which the collector
// neither scans nor counts, so that an engine takes what its footprint says and no more.
//
// Engines make one when they are made and free it when they are closed. It refuses what the system has not. Invariant:
// all of it is there from the start, and zero.
package slab

import "unsafe"

// Values is all of the memory as float32 values.
func (s *Slab) Values() []float32 { return s.values }

// Int32s is n values from index at on as int32, which take as much memory. They are zero until they are set, and the
// same memory must not be used as float32.
func (s *Slab) Int32s(at, n int) []int32 {
	if n == 0 {
		return nil
	}
	part := s.values[at : at+n]
	return unsafe.Slice((*int32)(unsafe.Pointer(&part[0])), n)
}
