package export

import (
	"math"
	"slices"

	"github.com/disdel/disdel/model"
)

// stage is how far the nodes of an attention have been read. Its layer is added with the last of them.
type stage uint8

const (
	turned     stage = iota // the input as [positions rows channels]
	projected               // queries, keys and values, [positions rows 3*channels]
	part                    // one of the three
	split                   // into heads: [positions heads width]
	byHead                  // [heads positions width]
	scaled                  // queries, over the root of the width
	keysTurned              // [heads width positions]
	scores                  // [heads positions positions]
	softened                // their softmax
	mixed                   // the means of the values, [heads positions width]
	unturned                // [positions heads width]
	joined                  // [positions channels]
	finished                // the output, [positions channels]
	withRows                // [positions rows channels]
)

// headed is a value within an attention.
type headed struct {
	at           stage
	part, count  int // queries, keys or values; heads
	name         string
	weight, bias []float32 // of the three
}

// heads reads a node of an attention, as PyTorch's MultiheadAttention writes them for one row. It is false where the
// node is none.
func (r *importer) heads(n *step) bool {
	v, _ := r.in(n, 0)
	if n.kind == "Transpose" && v.isNode && v.heads == nil && v.view == channelsLast && r.rows == 1 &&
		len(r.b.Out(v.node)) == 2 &&
		slices.Equal(n.options["perm"].list, []int64{1, 0, 2}) {
		r.set(n, value{isNode: true, node: v.node, view: channelsLast, heads: &headed{at: turned}})
		return true
	}
	if v.heads == nil || len(r.b.Out(v.node)) != 2 {
		return false
	}
	next, last, ok := r.nextStage(n, v, *v.heads)
	if !ok {
		r.fault(n, "disdel reads this part of an attention only as PyTorch writes it for one row")
		return true
	}
	if next.at == withRows && n.kind == "Transpose" {
		r.set(last, value{isNode: true, node: v.node, view: channelsLast})
		return true
	}
	if next.at == finished && n.kind == "Gemm" {
		return true // set
	}
	r.set(last, value{isNode: true, node: v.node, view: channelsLast, heads: &next})
	return true
}

// nextStage is what a node makes of a value within an attention. last is the node that gives it.
func (r *importer) nextStage(n *step, v value, h headed) (next headed, last *step, ok bool) {
	channels, positions := r.b.Out(v.node)[0], r.b.Out(v.node)[1]
	axes := func(want ...int64) bool { return slices.Equal(n.options["perm"].list, want) }
	to, _ := r.in(n, 1)
	shape := func(want ...int) bool {
		return len(to.whole) == len(want) && !slices.ContainsFunc(want, func(v int) bool {
			return !slices.Contains(to.whole, int64(v))
		})
	}
	next = h
	switch kind := n.kind; {
	case kind == "MatMul" && h.at == turned:
		return r.projection(n, channels)
	case kind == "Slice" && h.at == projected:
		starts, ends, along := r.list(n, 1, ""), r.list(n, 2, ""), r.list(n, 3, "")
		next.at = part
		if len(starts) != 1 || len(ends) != 1 || !slices.Equal(along, []int64{-1}) && !slices.Equal(along, []int64{2}) {
			return next, n, false
		}
		next.part = int(starts[0]) / channels
		return next, n, starts[0] >= 0 && starts[0]%int64(channels) == 0 && ends[0] == starts[0]+int64(channels)
	case kind == "Reshape" && h.at == part && len(to.whole) == 3:
		next.at, next.count = split, int(min(max(to.whole[1], 0), int64(channels)))
		return next, n, next.count > 0 && channels%next.count == 0 &&
			slices.Equal(to.whole, []int64{int64(positions), int64(next.count), int64(channels / next.count)})
	case kind == "Transpose" && h.at == split && h.part == 1:
		next.at = keysTurned
		return next, n, axes(1, 2, 0)
	case kind == "Transpose" && h.at == split:
		next.at = byHead
		return next, n, axes(1, 0, 2)
	case kind == "Div" && h.at == byHead && h.part == 0:
		next.at = scaled
		return next, n, r.scalar(n, math.Sqrt(float64(channels/h.count)))
	case kind == "MatMul" && h.at == scaled:
		next.at = scores
		return next, n, h.meets(v, to, keysTurned, 1)
	case kind == "Softmax" && h.at == scores:
		next.at = softened
		axis := n.whole("axis", -1)
		return next, n, axis == -1 || axis == 2
	case kind == "MatMul" && h.at == softened:
		next.at = mixed
		return next, n, h.meets(v, to, byHead, 2)
	case kind == "Transpose" && h.at == mixed:
		next.at = unturned
		return next, n, axes(1, 0, 2)
	case kind == "Reshape" && h.at == unturned:
		next.at = joined
		return next, n, shape(positions, channels)
	case kind == "Gemm" && h.at == joined:
		next.at = finished
		return next, n, r.attention(n, v, h)
	case kind == "Reshape" && h.at == finished:
		next.at = withRows
		return next, n, slices.Equal(to.whole, []int64{int64(positions), 1, int64(channels)})
	case kind == "Transpose" && h.at == withRows:
		return next, n, axes(1, 0, 2)
	}
	return next, n, false
}

// meets tells whether another value of the same attention has come to a stage.
func (h *headed) meets(v, other value, at stage, part int) bool {
	o := other.heads
	return o != nil && o.at == at && o.part == part && o.count == h.count && other.node == v.node && o.name == h.name
}

// projection reads the product that makes queries, keys and values, and its bias.
func (r *importer) projection(n *step, channels int) (h headed, last *step, ok bool) {
	weight, sides, ok := r.floats(n, 1)
	if !ok || !slices.Equal(sides, []int{channels, 3 * channels}) {
		return h, n, false
	}
	h = headed{at: projected, name: r.name(n, "")}
	if h.weight = r.values(n, len(weight)); h.weight == nil {
		return h, n, false
	}
	turn(h.weight, weight, channels, 3*channels)
	h.bias, last, ok = r.bias(n, 3*channels)
	return h, last, ok && h.bias != nil
}

// attention adds the layer, whose output the last product gives.
func (r *importer) attention(n *step, v value, h headed) bool {
	channels := r.b.Out(v.node)[0]
	weight, sides, ok := r.floats(n, 1)
	if !ok || !slices.Equal(sides, []int{channels, channels}) || n.whole("transB", 0) != 1 {
		return false
	}
	bias, last, ok := r.bias(n, channels)
	if !ok || bias == nil {
		return false
	}
	r.keep(h.name+".qkv", h.weight, h.bias)
	r.keep(h.name+".out", weight, bias)
	node := r.b.MultiHeadAttention(h.name, v.node, model.Attention{Heads: h.count})
	r.set(last, value{isNode: true, node: node, view: channelsLast, heads: &headed{at: finished}})
	return true
}

// positions reads the sum of a sequence and a constant for each position.
func (r *importer) positions(n *step) bool {
	for i := range min(2, len(n.in)) {
		v, _ := r.in(n, i)
		if !v.isNode || v.heads != nil || v.view != channelsLast || len(r.b.Out(v.node)) != 2 || len(n.in) != 2 {
			continue
		}
		other, _ := r.in(n, 1-i)
		out := r.b.Out(v.node)
		list := other.array.floats32()
		if list == nil || !slices.Equal(other.array.sides, []int{1, out[1], out[0]}) {
			return false
		}
		name := r.name(n, n.in[1-i]+".weight")
		r.keep(name, list, nil)
		r.set(n, value{isNode: true, node: r.b.Positions(name, v.node, false), view: channelsLast})
		return true
	}
	return false
}

// classToken reads a constant that a file puts before the positions.
func (r *importer) classToken(n *step) bool {
	token, _ := r.in(n, 0)
	v, _ := r.in(n, 1)
	list := token.array.floats32()
	if len(n.in) != 2 || list == nil || !v.isNode || v.view != channelsLast || v.heads != nil ||
		len(r.b.Out(v.node)) != 2 || n.whole("axis", 0) != 1 ||
		!slices.Equal(token.array.sides, []int{1, 1, r.b.Out(v.node)[0]}) {
		return false
	}
	name := r.name(n, token.array.name+".weight")
	r.keep(name, list, nil)
	r.set(n, value{isNode: true, node: r.b.ClassToken(name, v.node), view: channelsLast})
	return true
}

// firstPosition reads a Gather that takes the first position.
func (r *importer) firstPosition(n *step) bool {
	v, _ := r.in(n, 0)
	at, _ := r.in(n, 1)
	if !v.isNode || v.view != channelsLast || v.heads != nil || len(r.b.Out(v.node)) != 2 || n.whole("axis", 0) != 1 ||
		!slices.Equal(at.whole, []int64{0}) || at.array == nil || len(at.array.sides) != 0 {
		return false
	}
	r.layer(n, r.b.TakePosition(r.name(n, ""), v.node, model.TakeFirst))
	return true
}

// filled is a list of one number.
func (r *importer) filled(n *step) {
	length, ok := r.folded(n, 0)
	list, number := n.options["value"].array.numbers()
	if !ok || len(length) != 1 || length[0] < 0 || length[0] > mostFolded || !number || len(list) != 1 {
		r.fault(n, "disdel computes lists of up to %d equal integers here", mostFolded)
		return
	}
	r.set(n, value{whole: slices.Repeat(list, int(length[0])), isList: true})
}

func (r *importer) equal(n *step) {
	if !r.whole(n, func(a, b int64) int64 {
		if a == b {
			return 1
		}
		return 0
	}) {
		r.fault(n, "disdel computes this only of shapes")
	}
}

func (r *importer) where(n *step) {
	if len(n.in) != 3 {
		r.fault(n, "it needs three inputs")
		return
	}
	var lists [3][]int64
	for i := range lists {
		var ok bool
		if lists[i], ok = r.folded(n, i); !ok {
			return
		}
		if len(lists[i]) != len(lists[0]) {
			r.fault(n, "its lists have different lengths")
			return
		}
	}
	out := slices.Clone(lists[2])
	for i, yes := range lists[0] {
		if yes != 0 {
			out[i] = lists[1][i]
		}
	}
	r.set(n, value{whole: out, isList: true})
}

// expand passes on a constant that it leaves as large as it is.
func (r *importer) expand(n *step) {
	v, _ := r.in(n, 0)
	to, ok := r.folded(n, 1)
	if !ok {
		return
	}
	for _, side := range to {
		if v.array == nil || side != 1 && side != -1 {
			r.fault(n, "disdel reads this of a constant for one row")
			return
		}
	}
	r.set(n, v)
}
