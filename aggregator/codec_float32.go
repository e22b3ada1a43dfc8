package aggregator

import (
	"encoding/binary"
	"math"
	"slices"
)

// float32s sends values as they are, four bytes each.
type float32s struct{}

func (float32s) plain() bool { return true }

func (float32s) size(runs []int) (least, most int) { return exactly(4 * total(runs)) }

func (float32s) encode(dst []byte, c outgoing) []byte { return appendFloats(dst, c.values) }

// appendFloats writes values in a column of their own.
func appendFloats(dst []byte, v []float32) []byte {
	at := len(dst)
	dst = slices.Grow(dst, 4*len(v))[:at+4*len(v)]
	for i, x := range v {
		binary.LittleEndian.PutUint32(dst[at+4*i:], math.Float32bits(x))
	}
	return dst
}

func (f float32s) decode(dst []float32, runs []int, b []byte) error {
	if err := fits(f, runs, len(b)); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

func (f float32s) add(s sums, c column, runs []int, space *scratch) (bad int, err error) {
	if err := fits(f, runs, len(c.bytes)); err != nil {
		return -1, err
	}
	if s.add(c.bytes, c.weight) {
		return -1, nil
	}
	return addDecoded(f, s, c, runs, space) // which says where
}
