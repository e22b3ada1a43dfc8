package exchange

// Leave ends this member's last step: it sends all that is owed, and nothing comes of it after that. It may do so after
// any step; the others continue without it, once they know by Left. When it has folded what the others send of their
// own last steps, it has the same weights as they.
func (r *Replica) Leave(x []float32) (Delta, error) {
	d, err := r.Flush(x)
	if err == nil {
		r.Left(r.cfg.Member, r.made)
	}
	return d, err
}

// Left says which step of a member was its last: of later ones nothing comes of it. Who folds has to be told before it
// folds a step after that. A mean stays one of all members that the round began with: a step of fewer members has fewer
// rows, and moves as much less. The members that stay make more steps, so that each batch moves the weights as far as
// before. Divided by those that are there, a step on one batch would move as far as one on all of them.
func (r *Replica) Left(member, step int) { r.last[member] = step }

// There tells whether a member takes part in a step, as far as is known.
func (r *Replica) There(member, step int) bool { return r.last[member] == 0 || step <= r.last[member] }

// Spare is a delta without entries, in memory that is used again where there is such.
func (r *Replica) Spare() Delta {
	d := Delta{Index: []int32{}}
	if n := len(r.spare); n > 0 {
		d.Index, d.Value = r.spare[n-1].Index[:0], r.spare[n-1].Value[:0]
		r.spare = r.spare[:n-1]
	}
	return d
}

// Recycle takes the memory of deltas that nobody looks at any more. Without it every delta has memory of its own.
func (r *Replica) Recycle(all []Delta) {
	for _, d := range all {
		if cap(d.Index) > 0 && len(r.spare) <= 2*r.cfg.Members {
			r.spare = append(r.spare, d)
		}
	}
}
