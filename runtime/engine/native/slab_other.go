//go:build !linux

package native

// slab is an array on the Go heap where mapping memory is not worth its code: actions run on Linux.
type slab struct{ values []float32 }

func newSlab(n int) (*slab, error) { return &slab{values: make([]float32, n)}, nil }

func (s *slab) free() error {
	s.values = nil
	return nil
}
