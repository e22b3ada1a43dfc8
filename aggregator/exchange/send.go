package exchange

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/disdel/disdel"
)

// Send ends a step that has led to the weights x, and returns what the others are to have of it: the entries of what is
// owed that are significant. It returns Conflict for a step that was begun without what it needs, and Diverged for one
// that changes a weight by what is no number, after which the replica is of no use.
func (r *Replica) Send(x []float32) (Delta, error) {
	return r.send(x, r.cfg.Threshold/math.Sqrt(float64(r.made+1)), r.cfg.Values)
}

// Flush is Send of everything that is owed, however little: the last step of a round. When everybody's flush is folded,
// Settle makes all members equal.
func (r *Replica) Flush(x []float32) (Delta, error) { return r.send(x, 0, disdel.WireFloat32) }

func (r *Replica) send(x []float32, threshold float64, values disdel.Wire) (d Delta, err error) {
	if r.folded < r.Needed() {
		return d, r.conflict("step %d began with the steps up to %d, and needs those up to %d", r.made+1, r.folded,
			r.Needed())
	}
	if len(x) != len(r.shared) {
		return d, r.conflict("%d weights, and there are %d", len(x), len(r.shared))
	}
	r.made++
	if r.cfg.Members == 1 {
		copy(r.shared, x)
		r.folded = r.made
		return d, nil
	}
	began := r.shared
	if r.base != nil {
		began = r.base
	}
	d = r.Spare()
	d.Index, d.Value = slices.Grow(d.Index, r.room), slices.Grow(d.Value, r.room)
	d = r.significant(d, x, began, threshold)
	r.room = d.Len() + d.Len()/8
	if k := slices.IndexFunc(d.Value, notFinite); k >= 0 {
		return d, &disdel.Error{
			Kind: disdel.Diverged, Op: fmt.Sprintf("exchange updates of member %d", r.cfg.Member),
			Msg:  fmt.Sprintf("step %d changes weight %d by %v", r.made, d.Index[k], d.Value[k]),
			Hint: "lower the learning rate, set training.clipNorm, or check the data's scale",
		}
	}
	if d.Values = values; forms[values] != asFloat32 { // which loses nothing, and comes to nothing nowhere
		d = d.Rounded(values)
	}
	if r.sent != nil {
		for k, i := range d.Index {
			r.sent[i] += d.Value[k]
		}
	}
	r.own = append(r.own, d)
	return d, nil
}

// notFinite tells of infinities and NaN, which nobody would read.
func notFinite(v float32) bool { return v-v != 0 }

// block is how many weights are looked at together.
const block = 4096

// significant takes what of the weights x the step did not begin with as what is this member's own, and adds the
// entries that go to d. The kernel takes all weights at once, most of which are as they were, and marks those that may
// go, by a threshold that is no higher; those are looked at one by one.
func (r *Replica) significant(d Delta, x, began []float32, threshold float64) Delta {
	factor := notAbove(threshold)
	for from := 0; from < len(x); from += block {
		end := min(from+block, len(x))
		var sent []float32
		if r.sent != nil {
			sent = r.sent[from:end]
		}
		if end-from < block {
			clear(r.marks[:])
		}
		r.kernels.Changes(x[from:end], began[from:end], sent, r.local[from:end], factor, r.marks[:])
		for word := 0; word < end-from; word += 64 {
			if marked := binary.LittleEndian.Uint64(r.marks[word/8:]); marked != 0 {
				d = r.take(d, marked, from+word, x, threshold)
			}
		}
	}
	return d
}

// take adds to d what goes of up to 64 weights, from an index on.
func (r *Replica) take(d Delta, marked uint64, from int, x []float32, threshold float64) Delta {
	n := len(d.Index)
	index := slices.Grow(d.Index, bits.OnesCount64(marked))
	value := slices.Grow(d.Value, bits.OnesCount64(marked))
	index, value = index[:cap(index)], value[:cap(value)]
	for ; marked != 0; marked &= marked - 1 {
		i := from + bits.TrailingZeros64(marked)
		owed := r.local[i]
		if r.sent != nil {
			owed -= r.sent[i]
		}
		// A product, not the quotient: where the weight is 0 anything but 0 goes, and a sum of 0 never does.
		if math.Abs(float64(owed)) <= threshold*math.Abs(float64(x[i])) {
			continue
		}
		index[n], value[n] = int32(i), owed
		n++
	}
	d.Index, d.Value = index[:n], value[:n]
	return d
}

// notAbove is the largest float32 that is not above v, which is not negative. A change that is below its product with a
// weight, rounded, is below the exact product of v too, since rounding changes no order.
func notAbove(v float64) float32 {
	f := float32(v)
	if float64(f) > v {
		f = math.Nextafter32(f, 0)
	}
	return f
}
