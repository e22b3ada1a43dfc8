package aggregator

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// codec encodes columns of values in one format and decodes them. Each format has its own type and a row in codecs;
// nothing else knows formats by name. Feedback's residual keeps what a codec rounds away or does not send.
type codec interface {
	// plain tells whether a column is its float32 values, little-endian, so that a sum can add them directly.
	plain() bool
	// size is the smallest and the largest length in bytes of a column with these runs.
	size(runs []int) (minimum, maximum int)
	// encode appends a column to dst.
	encode(dst []byte, c encodeInput) []byte
	// decode reads a column into dst, whose length is its number of values. Values that were not sent become 0. It must
	// check every byte.
	decode(dst []float32, runs []int, b []byte) error
	// add adds a column's values times its weight to the sums. It returns the index of a value that is not finite, or -1.
	add(s sums, c column, runs []int, space *scratch) (bad int, err error)
}

// encodeInput is a column to encode.
type encodeInput struct {
	runs    []int            // number of values of each tensor in the column
	values  []float32        // values to send
	weights func() []float32 // the weights after the update, for codecs that need them
}

// scratch is a reusable buffer for the values of a column.
type scratch struct{ values []float32 }

func (s *scratch) of(n int) []float32 {
	if cap(s.values) < n {
		s.values = make([]float32, n)
	}
	return s.values[:n]
}

// Format is a wire format with its options.
type Format struct {
	Wire      disdel.Wire // "": float32
	Threshold float64     // for the format significant; 0 sends everything
	Round     int         // round of the update, from 0; the threshold shrinks with it
}

// codecs has a row for every format, in the order of their numbers in an envelope. New ones go at the end.
var codecs = [...]struct {
	wire disdel.Wire
	open func(Format) codec
}{
	{disdel.WireFloat32, func(Format) codec { return float32s{} }},
	{disdel.WireBfloat16, func(Format) codec { return bfloat16s{} }},
	{disdel.WireInt8, func(Format) codec { return int8s{} }},
	{disdel.WireSignificant, func(f Format) codec { return significantAt(f) }},
}

// wireNumber is a format's number in an envelope, -1 for an unknown one. "" means float32.
func wireNumber(w disdel.Wire) int {
	if w == "" {
		return 0
	}
	for i, row := range codecs {
		if row.wire == w {
			return i
		}
	}
	return -1
}

// codecOf returns the codec that decodes a known format.
func codecOf(w disdel.Wire) codec { return codecs[wireNumber(w)].open(Format{}) }

// check refuses formats that send no differences, and invalid options.
func (f Format) check() error {
	switch {
	case wireNumber(f.Wire) < 0 || !f.Wire.Differences():
		return fmt.Errorf("format %q does not send differences", f.Wire)
	case !(f.Threshold >= 0) || math.IsInf(f.Threshold, 0):
		return fmt.Errorf("a threshold of %g", f.Threshold)
	case f.Round < 0:
		return fmt.Errorf("round %d", f.Round)
	}
	return nil
}

// WireBytes is the encoded size of the values of like, without the envelope, which is less than a thousandth. If the
// size depends on the values it is the largest.
func WireBytes(like disdel.Weights, w disdel.Wire) disdel.Bytes {
	l, c, n := newLayout(like, columnValues), codecOf(w), 0
	for k := range l.columns() {
		_, maximum := c.size(l.runs(k))
		n += maximum
	}
	return disdel.Bytes(n)
}

// checkSize checks the length of a column in bytes.
func checkSize(c codec, runs []int, n int) error {
	switch minimum, maximum := c.size(runs); {
	case n >= minimum && n <= maximum:
		return nil
	case minimum == maximum:
		return fmt.Errorf("%d bytes, not %d", n, maximum)
	default:
		return fmt.Errorf("%d bytes, not %d to %d", n, minimum, maximum)
	}
}

// largest is the most bytes of any column.
func (l layout) largest(c codec) int {
	n := 0
	for k := range l.columns() {
		_, maximum := c.size(l.runs(k))
		n = max(n, maximum)
	}
	return n
}

// addDecoded is add for a codec that sends every value: it decodes the column and adds the result.
func addDecoded(d codec, s sums, c column, runs []int, space *scratch) (bad int, err error) {
	values := space.of(len(s))
	if err := d.decode(values, runs, c.bytes); err != nil {
		return -1, err
	}
	if bad := notFinite(values); bad >= 0 {
		return bad, nil
	}
	s.addFloats(values, c.weight)
	return -1, nil
}

// notFinite returns the index of the first NaN or infinity, or -1.
func notFinite(v []float32) int {
	for i, x := range v {
		if math.Float32bits(x)&exponent == exponent {
			return i
		}
	}
	return -1
}

// exactSize is size for a codec with a fixed size.
func exactSize(n int) (minimum, maximum int) { return n, n }

func sumOf(runs []int) int {
	n := 0
	for _, r := range runs {
		n += r
	}
	return n
}
