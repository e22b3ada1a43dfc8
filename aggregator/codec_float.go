package aggregator

import (
	"encoding/binary"
	"math"
	"slices"
)

// float32s sends float32 values, four bytes each.
type float32s struct{}

func (float32s) plain() bool { return true }

func (float32s) size(runs []int) (minimum, maximum int) { return exactSize(4 * sumOf(runs)) }

func (float32s) encode(dst []byte, c encodeInput) []byte { return appendFloats(dst, c.values) }

// appendFloats appends values as little-endian float32.
func appendFloats(dst []byte, v []float32) []byte {
	at := len(dst)
	dst = slices.Grow(dst, 4*len(v))[:at+4*len(v)]
	for i, x := range v {
		binary.LittleEndian.PutUint32(dst[at+4*i:], math.Float32bits(x))
	}
	return dst
}

func (f float32s) decode(dst []float32, runs []int, b []byte) error {
	if err := checkSize(f, runs, len(b)); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

func (f float32s) add(s sums, c column, runs []int, space *scratch) (bad int, err error) {
	if err := checkSize(f, runs, len(c.bytes)); err != nil {
		return -1, err
	}
	if s.add(c.bytes, c.weight) {
		return -1, nil
	}
	return addDecoded(f, s, c, runs, space) // which finds the value
}

// bfloat16s sends the upper half of a float32, rounded: two bytes for each value.
type bfloat16s struct{}

func (bfloat16s) plain() bool { return false }

func (bfloat16s) size(runs []int) (minimum, maximum int) { return exactSize(2 * sumOf(runs)) }

func (bfloat16s) encode(dst []byte, c encodeInput) []byte {
	for _, x := range c.values {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(math.Float32bits(roundBfloat16(x))>>16))
	}
	return dst
}

// roundBfloat16 rounds to 8 bits of mantissa, ties to even.
func roundBfloat16(x float32) float32 {
	bits := math.Float32bits(x)
	bits += 0x7fff + bits>>16&1
	return math.Float32frombits(bits &^ 0xffff)
}

func (f bfloat16s) decode(dst []float32, runs []int, b []byte) error {
	if err := checkSize(f, runs, len(b)); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
	}
	return nil
}

func (f bfloat16s) add(s sums, c column, runs []int, space *scratch) (bad int, err error) {
	return addDecoded(f, s, c, runs, space)
}
