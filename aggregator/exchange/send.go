package exchange

import (
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// Send ends a step that has led to the weights x, and returns what the others are to have of it: the entries of what is
// owed that are significant. It returns Conflict for a step that was begun without what it needs.
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
	d = d.Rounded(values)
	if r.sent != nil {
		for k, i := range d.Index {
			r.sent[i] += d.Value[k]
		}
	}
	r.own = append(r.own, d)
	return d, nil
}

// significant takes what of the weights x the step did not begin with as what is this member's own, and adds the
// entries that go to d. Most weights are as they were, and are looked at once.
func (r *Replica) significant(d Delta, x, began []float32, threshold float64) Delta {
	local, sent := r.local[:len(x)], r.sent
	began = began[:len(x)]
	for i, v := range x {
		owed := v - began[i]
		local[i] = owed
		if sent != nil {
			owed -= sent[i]
		}
		// A product, not the quotient: where the weight is 0 anything but 0 goes, and a sum of 0 never does.
		if owed == 0 || math.Abs(float64(owed)) <= threshold*math.Abs(float64(v)) {
			continue
		}
		d.Index, d.Value = append(d.Index, int32(i)), append(d.Value, owed)
	}
	return d
}
