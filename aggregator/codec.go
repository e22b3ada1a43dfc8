package aggregator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

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

// largest is the most bytes of the columns from, from+step and so on.
func (l layout) largest(c codec, from, step int) int {
	n := 0
	for k := from; k < l.columns(); k += step {
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

// blockValues is how many int8 values share a scale: 260 bytes for 256 values, 0.254 of float32.
const blockValues = 256

// int8s sends blocks of values as a scale, which is the block's largest value over 127, and multiples of it.
type int8s struct{}

func (int8s) plain() bool { return false }

func (int8s) size(runs []int) (minimum, maximum int) {
	n := 0
	for _, r := range runs {
		n += r + 4*((r+blockValues-1)/blockValues)
	}
	return exactSize(n)
}

func (int8s) encode(dst []byte, c encodeInput) []byte {
	v := c.values
	for _, r := range c.runs {
		for b := range slices.Chunk(v[:r], blockValues) {
			dst = encodeBlock(dst, b)
		}
		v = v[r:]
	}
	return dst
}

func encodeBlock(dst []byte, v []float32) []byte {
	scale := blockScale(v)
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(scale))
	for _, x := range v {
		dst = append(dst, byte(quantise(x, scale)))
	}
	return dst
}

func blockScale(v []float32) float32 {
	largest := float32(0)
	for _, x := range v {
		largest = max(largest, x, -x)
	}
	return largest / 127
}

func quantise(x, scale float32) int8 {
	if scale == 0 {
		return 0
	}
	return int8(min(127, max(-127, math.RoundToEven(float64(x)/float64(scale)))))
}

func (f int8s) decode(dst []float32, runs []int, b []byte) error {
	if err := checkSize(f, runs, len(b)); err != nil {
		return err
	}
	for _, r := range runs {
		for block := range slices.Chunk(dst[:r], blockValues) {
			b = decodeBlock(block, b)
		}
		dst = dst[r:]
	}
	return nil
}

func decodeBlock(dst []float32, b []byte) []byte {
	scale := math.Float32frombits(binary.LittleEndian.Uint32(b))
	for i, q := range b[4 : 4+len(dst)] {
		dst[i] = float32(float32(int8(q)) * scale)
	}
	return b[4+len(dst):]
}

func (f int8s) add(s sums, c column, runs []int, space *scratch) (bad int, err error) {
	return addDecoded(f, s, c, runs, space)
}

// significant sends only entries that changed enough since they were sent last (Gimeno Sarroca and Sánchez-Artigas,
// MLLess, FGCS 2023, section 4.1: the per-parameter significance filter). The sum of a worker's unsent updates of entry
// i is sent at step t if
//
//	|sum of u_i| / |x_i| > v_t, with v_t = v / sqrt(t),
//
// where x_i is the weight after the worker's own updates. We compare |sum of u_i| > v_t |x_i| instead: for a weight of
// 0 every nonzero sum is sent, a sum of 0 never is, and v = 0 sends all nonzero sums. Steps are rounds here, from t =
// 1. x_i is the weight at the round's end without the unsent updates.
//
// A column has, for each run of values of one tensor, the number of entries, and each entry's distance from the
// previous one (from index -1 for the first, so never 0) and its value. Numbers are varints, values float32.
type significant struct {
	threshold float64 // v_t
}

// significantAt is the codec for the round of f.
func significantAt(f Format) significant {
	return significant{threshold: f.Threshold / math.Sqrt(float64(1+f.Round))}
}

func (significant) plain() bool { return false }

// size counts at most one byte of distance for each skipped value.
func (significant) size(runs []int) (minimum, maximum int) {
	for _, r := range runs {
		maximum += len(binary.AppendUvarint(nil, uint64(r))) + 5*r
	}
	return len(runs), maximum
}

func (c significant) encode(dst []byte, out encodeInput) []byte {
	values, weights := out.values, out.weights()
	for _, r := range out.runs {
		dst = c.encodeRun(dst, values[:r], weights[:r])
		values, weights = values[r:], weights[r:]
	}
	return dst
}

// encodeRun encodes the values in one pass. It reserves the largest room for their number, which comes first, and
// closes the gap at the end.
func (c significant) encodeRun(dst []byte, values, weights []float32) []byte {
	start := len(dst)
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	entries, count, before := len(dst), 0, -1
	weights = weights[:len(values)]
	for i, x := range values {
		if x == 0 || !c.passes(x, weights[i]) {
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(i-before))
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
		before = i
		count++
	}
	number := binary.PutUvarint(dst[start:], uint64(count))
	if start+number == entries {
		return dst
	}
	return dst[:start+number+copy(dst[start+number:], dst[entries:])]
}

func (c significant) passes(owed, weight float32) bool {
	return math.Abs(float64(owed)) > c.threshold*math.Abs(float64(weight))
}

func (c significant) decode(dst []float32, runs []int, b []byte) error {
	clear(dst)
	return c.each(runs, b, func(i int, x float32) bool {
		dst[i] = x
		return true
	})
}

// add adds only the sent entries, without decoding the whole column.
func (c significant) add(s sums, in column, runs []int, _ *scratch) (bad int, err error) {
	bad = -1
	err = c.each(runs, in.bytes, func(i int, x float32) bool {
		if overflow(math.Float32bits(x))>>31 != 0 {
			bad = i
			return false
		}
		s[i] += float64(in.weight * float64(x))
		return true
	})
	return bad, err
}

var errTruncated = errors.New("the entries are cut off")

// each calls use with the entries of a column and their indices until it returns false. It checks what it reads.
func (c significant) each(runs []int, b []byte, use func(i int, x float32) bool) error {
	if err := checkSize(c, runs, len(b)); err != nil {
		return err
	}
	start := 0
	for _, r := range runs {
		count, n := binary.Uvarint(b)
		if n <= 0 {
			return errTruncated
		}
		if count > uint64(r) {
			return fmt.Errorf("%d entries of %d values", count, r)
		}
		b = b[n:]
		place := -1
		for range count {
			gap, n := binary.Uvarint(b)
			switch {
			case n <= 0 || len(b) < n+4:
				return errTruncated
			case gap == 0:
				return fmt.Errorf("place %d comes twice", start+place)
			case gap > uint64(r-1-place):
				return fmt.Errorf("an entry lies beyond the %d values of its tensor", r)
			}
			place += int(gap)
			if !use(start+place, math.Float32frombits(binary.LittleEndian.Uint32(b[n:]))) {
				return nil
			}
			b = b[n+4:]
		}
		start += r
	}
	if len(b) > 0 {
		return fmt.Errorf("%d bytes more than its entries", len(b))
	}
	return nil
}
