package export

import (
	"math"
	"slices"

	"github.com/disdel/disdel/model"
)

// rotation reads queries or keys that positions turn (Su 2021), of which n is the first node that takes them: x cos +
// (-high, low) sin, where low and high are the halves of the channels of a head. It is false for other nodes.
func (r *importer) rotation(n *step, i int, v value) bool {
	h := v.heads
	along := slices.IndexFunc(h.axes, func(axis []part) bool { return len(axis) > 0 && slices.Equal(axis, h.within()) })
	if h.at != projected || h.theta > 0 || along < 0 ||
		n.kind != "Slice" && n.kind != "Split" && n.kind != "Mul" {
		return false
	}
	half := int64(h.channels / h.count() / 2)
	axis := func(n *step, at int64) bool { return at == int64(along) || at == int64(along-len(h.axes)) }
	var low, high, straight *step // low and high may be of one Split
	for _, u := range r.users[n.in[i]] {
		switch starts, ends, axes := r.list(u, 1, ""), r.list(u, 2, ""), r.list(u, 3, ""); {
		case u.kind == "Mul" && r.timesConstant(u, n.in[i]) >= 0:
			straight = u
		case u.kind == "Split" && len(u.out) == 2 && axis(u, u.whole("axis", 0)) && r.halves(u, half):
			low, high = &step{out: u.out[:1]}, &step{out: u.out[1:]}
			u.done = true
		case u.kind != "Slice" || len(starts) != 1 || len(ends) != 1 || len(axes) != 1 || !axis(u, axes[0]):
		case starts[0] == 0 && ends[0] == half:
			low = u
		case starts[0] == half && ends[0] >= 2*half:
			high = u
		}
	}
	if low == nil || high == nil || straight == nil {
		return false
	}
	turned := r.chain(high, func(s *step) bool { return s.kind == "Neg" }, func(s *step) bool {
		return s.kind == "Concat" && len(s.in) == 2 && s.in[1] == low.out[0] && axis(s, s.whole("axis", 0))
	}, func(s *step) bool { return s.kind == "Mul" && len(s.in) == 2 })
	sum := r.only(straight.out[0])
	if turned == nil || r.only(low.out[0]) != turned[1] || turned[1].in[0] != turned[0].out[0] || sum == nil ||
		sum.kind != "Add" || r.only(turned[2].out[0]) != sum {
		return false
	}
	next := *h
	theta, ok := r.angles(h, along, straight, turned[2])
	if next.theta = theta; !ok {
		return false
	}
	for _, s := range append(turned, low, high, straight, sum) {
		s.done = true
	}
	r.placed(sum, v.node, &next)
	return true
}

// halves tells whether a Split gives two parts of such a size.
func (r *importer) halves(n *step, half int64) bool {
	sizes := r.list(n, 1, "split")
	return len(sizes) == 0 || slices.Equal(sizes, []int64{half, half})
}

// timesConstant is the input of a product with a value that is a constant; -1: it has none.
func (r *importer) timesConstant(n *step, value string) int {
	for i := range n.in {
		if len(n.in) == 2 && n.in[1-i] == value && r.isConstant(n, i) {
			return i
		}
	}
	return -1
}

// angles finds the base of the angles whose cosines and sines two products have.
func (r *importer) angles(h *headed, along int, straight, turned *step) (theta float64, ok bool) {
	var tables [2]tensor
	for i, s := range []*step{straight, turned} {
		at := slices.IndexFunc(s.in, func(in string) bool { return r.at[in].array != nil })
		if at < 0 {
			return 0, false
		}
		v, _ := r.in(s, at)
		if tables[i], ok = v.read(); !ok || len(tables[i].sides) > len(h.axes) {
			return 0, false
		}
		for k, side := range tables[i].sides {
			axis := len(h.axes) - len(tables[i].sides) + k
			isPosition := slices.Equal(h.axes[axis], []part{positionsPart})
			if side != 1 && axis != along && !isPosition || side != 1 && int64(side) != h.length(h.axes[axis]) {
				return 0, false
			}
		}
	}
	width, place := h.channels/h.count(), make([]int, len(h.axes))
	half := width / 2
	position := slices.IndexFunc(h.axes, func(axis []part) bool { return slices.Equal(axis, []part{positionsPart}) })
	angle := func(at, channel int) (sin, cos float64) {
		place[along] = channel
		if position >= 0 {
			place[position] = at
		}
		return tables[1].v[tables[1].place(place)], tables[0].v[tables[0].place(place)]
	}
	if theta = model.UsualTheta; h.span > 1 && half > 1 {
		sin, cos := angle(1, half-1)
		theta = decimal(math.Pow(math.Atan2(sin, cos), -float64(half)/float64(half-1)))
	}
	if !(theta >= 1 && theta <= model.LargestTheta) {
		return 0, false
	}
	for at := range h.span {
		for channel := range width {
			sin, cos := angle(at, channel)
			s, c := math.Sincos(float64(at) / math.Pow(theta, float64(channel%half)/float64(half)))
			if !(math.Abs(sin-s) <= 1e-3 && math.Abs(cos-c) <= 1e-3) {
				return 0, false
			}
		}
	}
	return theta, true
}
