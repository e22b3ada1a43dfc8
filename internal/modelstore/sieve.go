package modelstore

import (
	"crypto/sha256"
	"hash"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// sieve reads some of a file's arrays in their order, and all of its bytes for their checksum.
type sieve struct {
	given  Given
	in     io.Reader
	sum    hash.Hash
	taken  disdel.Weights // names and shapes
	from   map[string]int64
	at     int64
	buffer []byte
	err    error // that read had
}

// newSieve reads the header of a file of so many bytes.
func newSieve(r io.Reader, size int64, g Given, takes func(array string) bool) (*sieve, error) {
	s := &sieve{given: g, sum: sha256.New()}
	s.in = io.TeeReader(r, s.sum)
	f, from, err := safetensors.Index(s.in, size)
	if err != nil {
		return nil, err
	}
	s.from = from
	largest := 0
	for i, t := range f.Tensors {
		if i == 0 {
			s.at = from[t.Name]
		}
		if t.DType == safetensors.F32 && takes(t.Name) {
			s.taken = append(s.taken, disdel.Tensor{Name: t.Name, Shape: t.Shape})
			largest = max(largest, 4*lengthOf(t.Shape))
		}
	}
	s.buffer = make([]byte, largest)
	return s, nil
}

// read is the values of array i of those that are taken; none where something is wrong, which err has then. With the
// last one the rest of the file is read and held against its checksum.
func (s *sieve) read(i int) []float32 {
	if s.err != nil {
		return nil
	}
	t := s.taken[i]
	data := s.buffer[:4*lengthOf(t.Shape)]
	_, err := io.CopyN(io.Discard, s.in, s.from[t.Name]-s.at)
	if err == nil {
		_, err = io.ReadFull(s.in, data)
	}
	if s.at = s.from[t.Name] + int64(len(data)); err == nil && i == len(s.taken)-1 {
		_, err = io.Copy(io.Discard, s.in)
	}
	if err != nil {
		s.err = blobs.Wrap(err, "read weights", s.given.Key)
		return nil
	}
	if got := checksum(s.sum.Sum(nil)); i == len(s.taken)-1 && got != s.given.Checksum {
		s.err = changed(s.given.Key, got, s.given.Checksum)
		return nil
	}
	out, err := safetensors.Float32s(safetensors.Tensor{Name: t.Name, DType: safetensors.F32, Data: data})
	s.err = err
	return out
}

// lengthOf is how many values an array of a shape has.
func lengthOf(shape []int) int {
	n := 1
	for _, side := range shape {
		n *= side
	}
	return n
}
