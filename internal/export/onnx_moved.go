package export

import "slices"

// moved brings a tensor into another order, as a node does. other gives further inputs of the node.
func (r *importer) moved(n *step, t tensor, other func(i int) (tensor, bool)) (out tensor, ok bool) {
	numbers := func(i int, option string) []int64 {
		if o, there := other(i); there {
			list := make([]int64, 0, len(o.v))
			for _, x := range o.v {
				list = append(list, whole(x))
			}
			return list
		}
		return r.list(n, i, option)
	}
	switch n.kind {
	case "Reshape":
		return t.reshaped(numbers(1, ""))
	case "Transpose":
		return t.turned(n.options["perm"].list)
	case "Unsqueeze", "Squeeze":
		return t.squeezed(numbers(1, "axes"), n.kind == "Squeeze")
	case "Slice":
		return t.cut(numbers(1, "starts"), numbers(2, "ends"), numbers(3, "axes"), numbers(4, ""))
	case "Gather":
		if at, there := other(1); there {
			return t.taken(at, int(n.whole("axis", 0)))
		}
	case "Concat":
		list := []tensor{t}
		for i := 1; i < len(n.in); i++ {
			o, there := other(i)
			if !there {
				return out, false
			}
			list = append(list, o)
		}
		return along(list, int(n.whole("axis", 0)))
	}
	return out, false
}

func (t tensor) reshaped(to []int64) (tensor, bool) {
	var sides []int
	open, known := -1, 1
	for i, side := range to {
		switch {
		case rowsIn(side) > 0:
			side = rowsIn(side) // a constant is the same for all rows
		case side == 0 && i < len(t.sides):
			side = int64(t.sides[i])
		case side == -1 && open < 0:
			open, side = i, 1
		case side < 1 || side > mostMoved:
			return t, false
		}
		if known *= int(side); known > mostMoved {
			return t, false
		}
		sides = append(sides, int(side))
	}
	if open >= 0 && known > 0 && len(t.v)%known == 0 {
		sides[open] = len(t.v) / known
	}
	return tensor{sides, t.v}, size(sides) == len(t.v)
}

func (t tensor) turned(axes []int64) (tensor, bool) {
	var sides []int
	used := map[int64]bool{}
	for _, axis := range axes {
		if axis < 0 || int(axis) >= len(t.sides) || used[axis] {
			return t, false
		}
		used[axis] = true
		sides = append(sides, t.sides[axis])
	}
	if len(sides) != len(t.sides) {
		return t, false
	}
	from := make([]int, len(sides))
	return each(sides, func(at []int) float64 {
		for k, axis := range axes {
			from[axis] = at[k]
		}
		return t.v[t.place(from)]
	})
}

func (t tensor) squeezed(axes []int64, drop bool) (tensor, bool) {
	rank := len(t.sides)
	if !drop {
		rank += len(axes)
	}
	chosen := map[int]bool{}
	for k, side := range t.sides {
		chosen[k] = drop && len(axes) == 0 && side == 1 // Squeeze without axes
	}
	for _, axis := range axes {
		if axis < 0 {
			axis += int64(rank)
		}
		if axis < 0 || axis >= int64(rank) || drop && t.sides[axis] != 1 {
			return t, false
		}
		chosen[int(axis)] = true
	}
	var sides []int
	next := 0
	for k := range rank {
		switch {
		case chosen[k] && drop:
			next++
		case chosen[k]:
			sides = append(sides, 1)
		case next < len(t.sides):
			sides, next = append(sides, t.sides[next]), next+1
		}
	}
	if sides == nil {
		sides = []int{}
	}
	return tensor{sides, t.v}, size(sides) == len(t.v)
}

func (t tensor) cut(starts, ends, axes, steps []int64) (tensor, bool) {
	if len(axes) == 0 {
		for i := range starts {
			axes = append(axes, int64(i))
		}
	}
	if len(starts) != len(ends) || len(axes) != len(starts) || len(steps) > 0 && len(steps) != len(starts) {
		return t, false
	}
	sides, first, by := slices.Clone(t.sides), make([]int, len(t.sides)), slices.Repeat([]int{1}, len(t.sides))
	for i, axis := range axes {
		if axis < 0 {
			axis += int64(len(t.sides))
		}
		if axis < 0 || int(axis) >= len(t.sides) {
			return t, false
		}
		side, move := t.sides[axis], int64(1)
		if len(steps) > 0 {
			move = steps[i]
		}
		switch {
		case move > 0 && move < 1<<20:
			from, to := within(starts[i], side), within(ends[i], side)
			sides[axis], first[axis], by[axis] = max(0, to-from+int(move)-1)/int(move), from, int(move)
		case move == -1:
			from, to := min(within(starts[i], side), side-1), within(ends[i], side)
			if ends[i] < -int64(side) {
				to = -1
			}
			sides[axis], first[axis], by[axis] = max(0, from-to), from, -1
		default:
			return t, false
		}
	}
	from := make([]int, len(sides))
	return each(sides, func(at []int) float64 {
		for k := range at {
			from[k] = first[k] + at[k]*by[k]
		}
		return t.v[t.place(from)]
	})
}

func (t tensor) taken(places tensor, axis int) (tensor, bool) {
	if axis < 0 {
		axis += len(t.sides)
	}
	if axis < 0 || axis >= len(t.sides) {
		return t, false
	}
	for _, p := range places.v {
		if !(p >= -float64(t.sides[axis]) && p < float64(t.sides[axis])) {
			return t, false
		}
	}
	sides := slices.Concat(t.sides[:axis], places.sides, t.sides[axis+1:])
	from, depth := make([]int, len(t.sides)), len(places.sides)
	return each(sides, func(at []int) float64 {
		copy(from, at[:axis])
		copy(from[axis+1:], at[axis+depth:])
		p := int(places.v[(&places).place(at[axis:axis+depth])])
		if p < 0 {
			p += t.sides[axis]
		}
		from[axis] = p
		return t.v[t.place(from)]
	})
}

// chosen takes one value of an axis for each place of a tensor of places.
func (t tensor) chosen(places tensor, axis int) (tensor, bool) {
	if len(places.sides) != len(t.sides) {
		return t, false
	}
	for k, side := range places.sides {
		if k != axis && side > t.sides[k] {
			return t, false
		}
	}
	for _, p := range places.v {
		if !(p >= 0 && p < float64(t.sides[axis])) {
			return t, false
		}
	}
	from := make([]int, len(t.sides))
	return each(places.sides, func(at []int) float64 {
		copy(from, at)
		from[axis] = int(places.v[places.place(at)])
		return t.v[t.place(from)]
	})
}

func along(list []tensor, axis int) (tensor, bool) {
	sides := slices.Clone(list[0].sides)
	if axis < 0 {
		axis += len(sides)
	}
	if axis < 0 || axis >= len(sides) {
		return tensor{}, false
	}
	var owner []int
	sides[axis] = 0
	for i, t := range list {
		if len(t.sides) != len(sides) {
			return tensor{}, false
		}
		for k, side := range t.sides {
			if k != axis && side != sides[k] {
				return tensor{}, false
			}
		}
		if sides[axis] += t.sides[axis]; sides[axis] > mostMoved {
			return tensor{}, false
		}
		for range t.sides[axis] {
			owner = append(owner, i)
		}
	}
	first := make([]int, len(list))
	for k := len(owner) - 1; k >= 0; k-- {
		first[owner[k]] = k
	}
	from := make([]int, len(sides))
	return each(sides, func(at []int) float64 {
		copy(from, at)
		t := &list[owner[at[axis]]]
		from[axis] -= first[owner[at[axis]]]
		return t.v[t.place(from)]
	})
}
