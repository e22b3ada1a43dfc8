package aggregator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// significant sends only those entries that have changed enough since they were sent last (Gimeno Sarroca and
// Sánchez-Artigas, MLLess, FGCS 2023, section 4.1: the per-parameter significance filter). An entry i of what a worker
// has to send, the sum of its updates that were not sent yet, goes at step t if
//
//	|sum of u_i| / |x_i| > v_t, with v_t = v / sqrt(t),
//
// where x_i is the weight after the worker's own updates. Ours is the same rule as a product, |sum of u_i| > v_t |x_i|:
// where the weight is 0 anything but 0 goes, a sum of 0 never does, and v = 0 sends all that is not 0. Steps are rounds
// here, t = 1 being the first, and x_i is the weight at the round's end, without what the worker still owes.
//
// A column is, for each run of values of one tensor: the number of entries, then each entry's distance from the one
// before (from place -1 for the first, so that it is never 0) and its value. Numbers are varints, values float32.
type significant struct {
	threshold float64 // v_t
}

// significantAt is for the round of f, counted from 0.
func significantAt(f Format) significant {
	return significant{threshold: f.Threshold / math.Sqrt(float64(1+f.Round))}
}

func (significant) plain() bool { return false }

// size counts at most one byte of distance for each place that it passes over.
func (significant) size(runs []int) (least, most int) {
	for _, r := range runs {
		most += len(binary.AppendUvarint(nil, uint64(r))) + 5*r
	}
	return len(runs), most
}

func (c significant) encode(dst []byte, out outgoing) []byte {
	values, weights := out.values, out.weights()
	for _, r := range out.runs {
		dst = c.encodeRun(dst, values[:r], weights[:r])
		values, weights = values[r:], weights[r:]
	}
	return dst
}

// encodeRun goes over the values once: their number, which comes first, gets as many bytes as it may take, and what it
// does not take is closed up.
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

// add adds the entries where they belong: the column is never made whole.
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

var errCut = errors.New("the entries are cut off")

// each gives use the entries of a column, with their places in it, until it returns false. It checks what it reads.
func (c significant) each(runs []int, b []byte, use func(i int, x float32) bool) error {
	if err := fits(c, runs, len(b)); err != nil {
		return err
	}
	start := 0
	for _, r := range runs {
		count, n := binary.Uvarint(b)
		if n <= 0 {
			return errCut
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
				return errCut
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
