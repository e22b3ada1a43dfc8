package export

import (
	"cmp"
	"math"
	"slices"

	"github.com/disdel/disdel/model"
)

// Exporters write attention as products between turns and reshapes, each of them in an order of its own. Here every
// value of an attention has the parts that its axes are made of, so that any order is read. Its layer is added with the
// last product.

// part is what an axis, or a factor of it, runs over.
type part uint8

const (
	rowsPart part = iota
	positionsPart
	keysPart     // the positions that are attended to
	threePart    // queries, keys and values
	channelsPart // of one of the three, not split into heads yet
	headPart
	sharedPart // the heads of queries that share keys and values
	widthPart  // within a head
)

// stage is how far the products of an attention have been read.
type stage uint8

const (
	projected stage = iota // queries, keys or values, or the three
	scores
	softened // their softmax
	mixed    // the means of the values
	finished // the layer's output, in an order of axes that no other layer has
)

// headed is a value within an attention.
type headed struct {
	at             stage
	axes           [][]part
	inputs, span   int // channels of a position before the projection; positions
	channels       int // of queries, keys or values
	rows           int // that the file fixes; 0: any number
	heads, shared  int // 0: channels are not split yet
	spread         int // how many copies each head of keys or values has; 0: it has none
	by             *step
	weight, bias   []float32  // of the projection, [outputs inputs]
	theta          float64    // base of the angles by which positions turn channels; 0: they do not
	factor         float64    // of scores, or of queries or keys
	causal, padded bool       // of scores: positions behind a position are hidden, and padding
	parts          [3]*headed // queries, keys and values that were multiplied
}

// headed tells whether a value stands within an attention.
func (v *value) headed() bool { return v.heads != nil }

// size is how many values a part has.
func (h *headed) size(p part) int {
	switch p {
	case rowsPart:
		return cmp.Or(h.rows, anyRows)
	case threePart:
		return 3
	case channelsPart:
		return h.channels
	case headPart:
		return h.heads
	case sharedPart:
		return max(h.shared, h.spread, 1)
	case widthPart:
		return h.channels / h.count()
	default:
		return h.span
	}
}

// count is how many heads there are.
func (h *headed) count() int { return max(h.heads, 1) * max(h.shared, 1) }

// within is the axis of the channels of one head.
func (h *headed) within() []part {
	if h.heads == 0 {
		return h.axis(channelsPart)
	}
	return h.axis(widthPart)
}

// anyRows is a prime that stands for rows of any number: sides that it divides are of rows.
const anyRows = 1<<31 - 1

// axis is one of these parts. Parts of size 1 stand in no axis.
func (h *headed) axis(parts ...part) []part {
	return slices.DeleteFunc(parts, func(p part) bool { return h.size(p) == 1 })
}

// length is the size of an axis.
func (h *headed) length(axis []part) int64 {
	side := int64(1)
	for _, p := range axis {
		side *= int64(h.size(p))
	}
	return side
}

// sides are the sizes of the axes.
func (h *headed) sides() (out []int64) {
	for _, axis := range h.axes {
		side := h.length(axis)
		if slices.Contains(axis, rowsPart) && side/int64(h.size(rowsPart)) <= mostRows {
			side = manyRows(side / int64(h.size(rowsPart)))
		}
		out = append(out, side)
	}
	return out
}

// heads reads a node of an attention. It is false where the node is none.
func (r *importer) heads(n *step) bool {
	at := max(0, r.scoresOf(n))
	if (n.kind == "MatMul" || n.kind == "Mul") && len(n.in) == 2 && r.isConstant(n, 0) {
		at = 1
	}
	v, _ := r.in(n, at)
	if v.heads == nil && len(n.in) > 1 && n.kind != "Add" {
		if other, _ := r.in(n, 1); other.heads != nil {
			r.fault(n, "disdel reads this part of an attention only with the other operand first")
			return true
		}
	}
	if v.heads == nil {
		return r.projection(n, at, v)
	}
	if r.rotation(n, at, v) {
		return true
	}
	if n.kind == "Shape" {
		r.setShape(n, v.heads.sides())
		return true
	}
	next, ok := *v.heads, false
	switch next.axes = slices.Clone(next.axes); n.kind {
	case "Identity", "Dropout":
		ok = true
	case "Cast":
		ok = n.whole("to", 0) == float32s
	case "Transpose", "Unsqueeze", "Squeeze", "Reshape":
		ok = r.turnAxes(n, &next)
	case "Expand":
		to, _ := r.in(n, 1)
		ok = to.isList && next.expand(to.whole)
	case "Attention":
		ok = r.wholeAttention(n, v, &next)
	case "Split", "Slice", "Gather":
		if ok = r.oneOfThree(n, v, &next); ok && n.kind == "Split" {
			return true // set
		}
	case "Mul", "Div":
		ok = r.factor(n, at, &next)
	case "Add", "Where":
		ok = v.heads.at == scores && r.hide(n, at, &next)
	case "Softmax":
		axis := n.whole("axis", -1)
		ok = next.at == scores && (axis == -1 || axis == int64(len(next.axes))-1)
		next.at = softened
	case "MatMul", "Gemm":
		if next.at == mixed {
			ok = r.attention(n, at, v, &next)
			break
		}
		other, _ := r.in(n, 1)
		ok = n.kind == "MatMul" && at == 0 && other.heads != nil && other.node == v.node && next.times(other.heads)
	}
	if !ok {
		r.fault(n, "disdel reads this part of an attention only as common exporters write it")
		return true
	}
	if next.at != finished || n.kind != "MatMul" && n.kind != "Gemm" {
		r.placed(n, v.node, &next)
	}
	return true
}

// placed says what a node gives: a value of the attention or, once its output is in an order of layers, their value.
func (r *importer) placed(n *step, node int, h *headed) {
	v := value{isNode: true, node: node, view: channelsLast, heads: h}
	row, positions := h.axis(rowsPart), h.axis(positionsPart)
	if channels := h.axis(channelsPart); h.at == finished && len(h.axes) == 3 {
		switch {
		case slices.Equal(h.axes[0], row) && slices.Equal(h.axes[1], channels) && slices.Equal(h.axes[2], positions):
			v.heads, v.view = nil, asLayer
		case !slices.Equal(h.axes[2], channels):
		case slices.Equal(h.axes[0], row) && slices.Equal(h.axes[1], positions):
			v.heads = nil
		case slices.Equal(h.axes[1], row) && slices.Equal(h.axes[0], positions):
			v.heads, v.view = nil, positionsFirst
		}
	}
	r.set(n, v)
}

// projection reads the product that makes queries, keys or values, or the three, and its bias. Its input i is the
// layer. Behind a weight, channels stand before positions.
func (r *importer) projection(n *step, i int, v value) bool {
	if !v.isNode || len(r.b.Out(v.node)) != 2 || i == 1 && v.view != asLayer {
		return false
	}
	switch {
	case n.kind == "Gemm" && n.plain() && n.whole("transB", 0) == 0 && v.view == positionRows:
	case n.kind != "MatMul" || i == 0 && v.view != channelsLast && v.view != positionsFirst:
		return false
	}
	list, _ := r.in(n, 1-i)
	inputs := r.b.Out(v.node)[0]
	if list.array.floats32() == nil || len(list.array.sides) != 2 || list.array.sides[i] != inputs ||
		!r.isMultiplied(n.out[0]) {
		return false
	}
	weight, sides, _ := r.floats(n, 1-i)
	units := sides[1-i]
	h := &headed{
		inputs: inputs, channels: units, span: r.b.Out(v.node)[1], rows: int(r.rows), by: n, factor: 1, weight: weight,
	}
	if i == 0 {
		if h.weight = r.values(n, len(weight)); h.weight == nil {
			return true
		}
		turn(h.weight, weight, inputs, units)
	}
	bias, last, ok := r.bias(n, units)
	if !ok {
		return true
	}
	h.bias = bias
	channels := h.axis(channelsPart)
	if units == 3*inputs {
		h.channels = inputs
		channels = h.axis(threePart, channelsPart)
	}
	row, positions := h.axis(rowsPart), h.axis(positionsPart)
	switch {
	case i == 1:
		h.axes = [][]part{row, channels, positions}
	case v.view == positionRows:
		h.axes = [][]part{slices.Concat(row, positions), channels}
	case v.view == positionsFirst:
		h.axes = [][]part{positions, row, channels}
	default:
		h.axes = [][]part{row, positions, channels}
	}
	r.set(last, value{isNode: true, node: v.node, view: channelsLast, heads: h})
	return true
}

// mostSteps is how many nodes may lie between a projection and the product of two values of an attention, and
// mostLooks how many values are looked at.
const mostSteps, mostLooks = 16, 256

// isMultiplied tells whether a product of two values, neither of them constant, takes a value, perhaps in another
// order.
func (r *importer) isMultiplied(name string) bool {
	seen, now := map[string]bool{name: true}, []string{name}
	for range mostSteps {
		var next []string
		for _, name := range now {
			for _, u := range r.users[name] {
				if u.kind == "MatMul" && len(u.in) == 2 && !r.isConstant(u, 0) && !r.isConstant(u, 1) ||
					u.kind == "Attention" {
					return true
				}
				for _, out := range u.out {
					if r.passesParts(u) && !seen[out] && len(seen) < mostLooks {
						seen[out], next = true, append(next, out)
					}
				}
			}
		}
		now = next
	}
	return false
}

// passesParts tells whether a node may lie between a projection and that product.
func (r *importer) passesParts(n *step) bool {
	switch n.kind {
	case "Add", "Neg", "Concat", // a bias, or what positions turn
		"Mul", "Div", // by what a file may compute of shapes
		"Expand", // of heads that several queries share
		"Reshape", "Transpose", "Unsqueeze", "Squeeze", "Gather", "Slice", "Split", "Identity", "Dropout":
		return true
	}
	return false
}

// turnAxes reads a node that only changes the axes.
func (r *importer) turnAxes(n *step, h *headed) bool {
	rank := int64(len(h.axes))
	switch n.kind {
	case "Transpose":
		perm := n.options["perm"].list
		if int64(len(perm)) != rank {
			return false
		}
		out, seen := make([][]part, rank), make([]bool, rank)
		for i, from := range perm {
			if from < 0 || from >= rank || seen[from] {
				return false
			}
			out[i], seen[from] = h.axes[from], true
		}
		h.axes = out
		return true
	case "Reshape":
		to, _ := r.in(n, 1)
		return to.isList && h.reshape(to.whole, n.whole("allowzero", 0) == 0)
	}
	axes := slices.Clone(r.list(n, 1, "axes"))
	if n.kind == "Unsqueeze" {
		rank += int64(len(axes))
	}
	for i := range axes {
		if axes[i] < 0 {
			axes[i] += rank
		}
		if axes[i] < 0 || axes[i] >= rank {
			return false
		}
	}
	slices.Sort(axes)
	for _, at := range axes {
		if n.kind == "Unsqueeze" {
			if int(at) > len(h.axes) {
				return false
			}
			h.axes = slices.Insert(h.axes, int(at), nil)
		}
	}
	for _, at := range slices.Backward(axes) {
		if n.kind == "Squeeze" {
			if len(h.axes[at]) > 0 {
				return false
			}
			h.axes = slices.Delete(h.axes, int(at), int(at)+1)
		}
	}
	return len(axes) > 0
}

// reshape gives the axes new sides. Channels may be split into heads, once.
func (h *headed) reshape(to []int64, zeros bool) bool {
	rest, open := slices.Concat(h.axes...), -1
	left, to := h.length(rest), slices.Clone(to)
	for i := range to {
		if to[i] == 0 && zeros && i < len(h.axes) {
			to[i] = h.length(h.axes[i])
		} else if k := rowsIn(to[i]); k > 0 {
			to[i] = k * int64(h.size(rowsPart))
		}
		if to[i] == -1 && open < 0 {
			open = i
			continue
		}
		if to[i] < 1 || left%to[i] != 0 {
			return false
		}
		left /= to[i]
	}
	if open >= 0 {
		to[open], left = left, 1
	}
	h.axes = nil
	for _, side := range to {
		axis, ok := h.take(&rest, side)
		if !ok {
			return false
		}
		h.axes = append(h.axes, axis)
	}
	return left == 1 && len(rest) == 0
}

// take takes the parts of an axis of so many values.
func (h *headed) take(rest *[]part, want int64) (axis []part, ok bool) {
	for want > 1 {
		if len(*rest) == 0 {
			return nil, false
		}
		p := (*rest)[0]
		switch size := int64(h.size(p)); {
		case want%size == 0:
			want /= size
		case p == channelsPart && h.heads == 0 && size%want == 0:
			h.heads = int(want)
			axis, want = append(axis, headPart), 1
			*rest = slices.Concat(h.axis(widthPart), (*rest)[1:])
			continue
		case p == widthPart && h.shared == 0 && h.at == projected && size%want == 0:
			h.shared = int(want)
			axis, want = append(axis, sharedPart), 1
			*rest = slices.Concat(h.axis(widthPart), (*rest)[1:])
			continue
		default:
			return nil, false
		}
		axis, *rest = append(axis, p), (*rest)[1:]
	}
	return axis, true
}

// oneOfThree reads the choice of queries, keys or values.
func (r *importer) oneOfThree(n *step, v value, h *headed) bool {
	axis := n.whole("axis", 0)
	if n.kind == "Slice" {
		along := r.list(n, 3, "axes")
		if len(along) != 1 || len(r.list(n, 4, "")) > 0 && !slices.Equal(r.list(n, 4, ""), []int64{1}) {
			return false
		}
		axis = along[0]
	}
	if axis < 0 {
		axis += int64(len(h.axes))
	}
	if h.at != projected || axis < 0 || axis >= int64(len(h.axes)) {
		return false
	}
	if n.kind == "Slice" && slices.Equal(h.axes[axis], []part{channelsPart}) && len(h.weight) == h.channels*h.inputs {
		return h.cut(r.list(n, 1, ""), r.list(n, 2, ""))
	}
	if len(h.axes[axis]) == 0 || h.axes[axis][0] != threePart {
		return false
	}
	inner := h.axes[axis][1:]
	size := int64(1)
	for _, p := range inner {
		size *= int64(h.size(p))
	}
	some := func(i int64) *headed {
		out := *h
		out.axes = slices.Clone(h.axes)
		out.axes[axis] = slices.Clone(inner)
		each := h.channels * h.inputs
		out.weight = h.weight[int(i)*each:][:each]
		if h.bias != nil {
			out.bias = h.bias[int(i)*h.channels:][:h.channels]
		}
		return &out
	}
	switch n.kind {
	case "Gather":
		at, _ := r.in(n, 1)
		if len(inner) > 0 || len(at.whole) != 1 || at.array == nil || len(at.array.sides) != 0 || at.whole[0] < -3 ||
			at.whole[0] > 2 {
			return false
		}
		*h = *some((at.whole[0] + 3) % 3)
		h.axes = slices.Delete(h.axes, int(axis), int(axis)+1)
		return true
	case "Slice":
		starts, ends := r.list(n, 1, ""), r.list(n, 2, "")
		if len(starts) != 1 || len(ends) != 1 || starts[0] < 0 || starts[0]%size != 0 || starts[0] >= 3*size ||
			min(ends[0], 3*size) != starts[0]+size {
			return false
		}
		*h = *some(starts[0] / size)
		return true
	}
	sizes := r.list(n, 1, "split")
	if len(n.out) != 3 || len(sizes) > 0 && !slices.Equal(sizes, []int64{size, size, size}) {
		return false
	}
	for i, name := range n.out {
		r.at[name] = value{isNode: true, node: v.node, view: channelsLast, heads: some(int64(i))}
	}
	return true
}

// cut takes some of the channels of a projection.
func (h *headed) cut(starts, ends []int64) bool {
	if len(starts) != 1 || len(ends) != 1 || h.heads > 0 {
		return false
	}
	from, to := within(starts[0], h.channels), within(ends[0], h.channels)
	if from >= to {
		return false
	}
	h.weight, h.channels = h.weight[from*h.inputs:to*h.inputs], to-from
	if h.bias != nil {
		h.bias = h.bias[from:to]
	}
	return true
}

// factor reads a product or a quotient with a number; its input i is not that number.
func (r *importer) factor(n *step, i int, h *headed) bool {
	other, _ := r.in(n, 1-i)
	list := other.array.floats32()
	if h.at > scores || len(list) != 1 || list[0] == 0 {
		return false
	}
	if n.kind == "Div" {
		h.factor /= float64(list[0])
	} else {
		h.factor *= float64(list[0])
	}
	return true
}

// times reads the product of queries and keys, and that of the softened scores and values, or of values and the turned
// scores.
func (h *headed) times(o *headed) bool {
	last, positions, keys := len(h.axes)-1, h.axis(positionsPart), h.axis(keysPart)
	ends := func(h *headed, a, b []part) bool {
		return slices.Equal(h.axes[last-1], a) && slices.Equal(h.axes[last], b)
	}
	if len(o.axes) != len(h.axes) || last < 1 {
		return false
	}
	switch {
	case h.at == projected && o.at == projected:
		if h.splitFor(o); !ends(h, positions, h.within()) || !ends(o, o.within(), positions) || !h.shares(o) {
			return false
		}
		queries := *h
		h.parts = [3]*headed{&queries, o}
		h.at, h.factor, h.axes[last] = scores, h.factor*o.factor, keys
	case h.at == softened && o.at == projected:
		if !ends(h, positions, keys) || o.factor != 1 || !ends(o, positions, o.within()) || !h.shares(o) {
			return false
		}
		h.parts[2] = o
		h.at, h.axes[last] = mixed, h.within()
	case h.at == projected && o.at == softened:
		if !ends(o, keys, positions) || h.factor != 1 || !ends(h, h.within(), positions) || !o.shares(h) {
			return false
		}
		values := *h
		*h = *o
		h.axes = slices.Clone(o.axes)
		h.parts[2] = &values
		h.at, h.axes[last-1] = mixed, h.within()
	default:
		return false
	}
	return true
}

// shares tells whether queries, or their scores, go with keys or values: each head with its own, or several with the
// same.
func (h *headed) shares(o *headed) bool {
	if len(h.weight) != h.channels*h.inputs || len(o.weight) != o.channels*o.inputs ||
		h.channels/h.count() != o.channels/o.count() || o.shared > 1 || o.heads > 0 && o.heads != h.heads {
		return false
	}
	var heads []part
	for i, axis := range h.axes[:len(h.axes)-2] {
		if heads = append(heads, axis...); slices.Equal(axis, o.axes[i]) {
			continue
		}
		spread := slices.Equal(axis, []part{sharedPart}) || slices.Equal(axis, []part{headPart}) && o.heads == 0
		if len(o.axes[i]) > 0 || !spread {
			return false
		}
	}
	return !slices.Contains(heads, sharedPart) || slices.Index(heads, headPart) < slices.Index(heads, sharedPart)
}

// attention adds the layer, whose output the last product gives. The input i of that is the means.
func (r *importer) attention(n *step, i int, v value, h *headed) bool {
	channels, last := h.inputs, len(h.axes)-1-i
	merged := h.axis(headPart, sharedPart, widthPart)
	if h.heads == 0 {
		merged = h.axis(channelsPart)
	}
	keys, values := h.parts[1], h.parts[2]
	usual := math.Abs(h.factor*math.Sqrt(float64(channels/h.count()))-1) <= 1e-5 // false for NaN
	if last < 0 || !slices.Equal(h.axes[last], merged) || !usual || h.channels != channels || keys.theta != h.theta ||
		values.theta > 0 || keys.count() != values.count() {
		return false
	}
	if r.mask != nil && !h.padded {
		r.fault(n, "its attention sees padding; with an attention_mask disdel hides it from all attentions")
		return true
	}
	weight, sides, ok := r.floats(n, 1-i)
	if !ok || !slices.Equal(sides, []int{channels, channels}) {
		return false
	}
	if i == 0 && n.whole("transB", 0) != 1 {
		out := r.values(n, len(weight))
		if out == nil {
			return false
		}
		turn(out, weight, channels, channels)
		weight = out
	}
	bias, end, ok := r.bias(n, channels)
	units := channels + keys.channels + values.channels
	all, three := r.values(n, units*channels), r.values(n, units)
	if !ok || all == nil || three == nil {
		return false
	}
	biased, from := bias != nil, 0
	for _, p := range h.parts {
		copy(all[from*channels:], p.weight)
		copy(three[from:], p.bias)
		from, biased = from+p.channels, biased || p.bias != nil
	}
	if !biased {
		three = nil
	} else if bias == nil {
		bias = make([]float32, channels)
	}
	name := r.name(h.parts[0].by, "")
	r.keep(name+".qkv", all, three)
	r.keep(name+".out", weight, bias)
	h.at, h.axes[last] = finished, h.axis(channelsPart)
	node := r.b.MultiHeadAttention(name, v.node, model.Attention{
		Heads: h.count(), KVHeads: keys.count(), Causal: h.causal, Theta: h.theta, NoBias: !biased,
	})
	r.placed(end, node, h)
	return true
}
