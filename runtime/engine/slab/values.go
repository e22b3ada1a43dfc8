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
