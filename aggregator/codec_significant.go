package aggregator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

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
