package exchange

// Ahead has the steps to come begin with another member's delta of a step that cannot be folded yet. A member's come in
// the order of its steps. It returns Conflict for any other, and where members are not eager.
func (r *Replica) Ahead(member, step int, d Delta) error {
	if r.ahead == nil || member == r.cfg.Member || member < 0 || member >= r.cfg.Members || step != r.Has(member)+1 {
		return r.conflict("step %d of member %d is ahead of %d folded ones", step, member, r.folded)
	}
	r.ahead[member] = append(r.ahead[member], d)
	return nil
}

// Next is a member's delta of the next step to be folded, where it is here already: the own one is.
func (r *Replica) Next(member int) (d Delta, ok bool) {
	switch {
	case member == r.cfg.Member && len(r.own) > 0:
		return r.own[0], true
	case r.ahead != nil && len(r.ahead[member]) > 0:
		return r.ahead[member][0], true
	}
	return d, false
}

// Has is the newest step of another member that the next step begins with.
func (r *Replica) Has(member int) int {
	if r.ahead == nil {
		return r.folded
	}
	return r.folded + len(r.ahead[member])
}

// addAhead makes base of S and what is ahead of it, in the order of members and steps.
func (r *Replica) addAhead() {
	copy(r.base, r.shared)
	for _, deltas := range r.ahead {
		for _, d := range deltas {
			r.add(r.base, d, r.scale)
		}
	}
}
