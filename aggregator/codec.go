package aggregator

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// codec writes columns of values in one format and reads them back. Each has a file of its own and a row in codecs;
// nothing else knows a format by its name. What a codec does not send, or sends rounded, stays in Feedback's residual.
type codec interface {
	// plain says whether a column is its float32 values one after another, little-endian: a sum takes them as they lie.
	plain() bool
	// size is the least and the most bytes of a column whose runs have so many values.
	size(runs []int) (least, most int)
	// encode appends a column to dst.
	encode(dst []byte, c outgoing) []byte
	// decode reads a column into dst, which has its number of values. What was not sent is 0. It trusts no byte.
	decode(dst []float32, runs []int, b []byte) error
	// add adds a column's values times its weight to their sums. It returns the place of a value that is not finite, or
	// -1.
	add(s sums, c column, runs []int, space *scratch) (bad int, err error)
}

// outgoing is a column that is to be sent.
type outgoing struct {
	runs    []int            // values of one tensor after another
	values  []float32        // what there is to send
	weights func() []float32 // the weights that values are a difference in; for a codec that goes by them
}

// scratch is room for the values of a column, made when somebody needs it.
type scratch struct{ values []float32 }

func (s *scratch) of(n int) []float32 {
	if cap(s.values) < n {
		s.values = make([]float32, n)
	}
	return s.values[:n]
}

// Format is a wire with its options: how an update is to be written.
type Format struct {
	Wire      disdel.Wire // "": float32
	Threshold float64     // of the wire significant: at least 0, which sends everything
	Round     int         // that the update is of, from 0: the threshold shrinks with it
}

// codecs has a row for every format, in the order of their numbers in an envelope. A new one goes at the end.
var codecs = [...]struct {
	wire disdel.Wire
	open func(Format) codec
}{
	{disdel.WireFloat32, func(Format) codec { return float32s{} }},
	{disdel.WireBfloat16, func(Format) codec { return bfloat16s{} }},
	{disdel.WireInt8, func(Format) codec { return int8s{} }},
	{disdel.WireSignificant, func(f Format) codec { return significantAt(f) }},
}

// number is a wire's number in an envelope, -1 for one that is none. No wire is float32.
func number(w disdel.Wire) int {
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

// codecOf is what reads a wire that is known to be one: reading needs no options.
func codecOf(w disdel.Wire) codec { return codecs[number(w)].open(Format{}) }

// check refuses a format that sends no differences, or has options that are none.
func (f Format) check() error {
	switch {
	case number(f.Wire) < 0 || !f.Wire.Differences():
		return fmt.Errorf("format %q rounds nothing away", f.Wire)
	case !(f.Threshold >= 0) || math.IsInf(f.Threshold, 0):
		return fmt.Errorf("a threshold of %g", f.Threshold)
	case f.Round < 0:
		return fmt.Errorf("round %d", f.Round)
	}
	return nil
}

// WireBytes is what the values of like take on the wire, without the envelope of less than a thousandth: the most,
// where that depends on the values.
func WireBytes(like disdel.Weights, w disdel.Wire) disdel.Bytes {
	l, c, n := newLayout(like, columnValues), codecOf(w), 0
	for k := range l.columns() {
		_, most := c.size(l.runs(k))
		n += most
	}
	return disdel.Bytes(n)
}

// fits says whether a column may have so many bytes.
func fits(c codec, runs []int, n int) error {
	switch least, most := c.size(runs); {
	case n >= least && n <= most:
		return nil
	case least == most:
		return fmt.Errorf("%d bytes, not %d", n, most)
	default:
		return fmt.Errorf("%d bytes, not %d to %d", n, least, most)
	}
}

// largest is the most bytes of any column.
func (l layout) largest(c codec) int {
	n := 0
	for k := range l.columns() {
		_, most := c.size(l.runs(k))
		n = max(n, most)
	}
	return n
}

// addDecoded is add for a codec that sends every value: it reads the column and adds what it read.
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

// exactly is size for a codec whose columns have one.
func exactly(n int) (least, most int) { return n, n }

func total(runs []int) int {
	n := 0
	for _, r := range runs {
		n += r
	}
	return n
}
