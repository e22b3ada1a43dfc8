//go:build !linux

package slab

// Slab is an array on the Go heap where mapping memory is not worth its code: actions run on Linux.
type Slab struct{ values []float32 }

// New makes n zero values.
func New(n int) (*Slab, error) { return &Slab{values: make([]float32, n)}, nil }

// Free leaves the memory to the collector.
func (s *Slab) Free() error {
	s.values = nil
	return nil
}
