package export

import (
	"slices"

	"github.com/disdel/disdel/model"
)

// view is the order in which a file has the axes of a layer's output.
type view uint8

const (
	asLayer          view = iota // as disdel has them: rows, channels, pixels
	channelsLast                 // [rows height width channels], or [rows positions channels]
	inGroups                     // [rows groups channels/groups height width]
	groupsTurned                 // [rows channels/groups groups height width]
	groupRows                    // [rows groups values], before an InstanceNormalization
	groupsNormed                 // the same, behind it
	positionsFirst               // [positions rows channels]
	byDirection                  // [positions directions rows channels/directions]
	directionsTurned             // [positions rows directions channels/directions]
	asTokens                     // [rows positions]
	tokensTurned                 // [positions rows]
	flattenedLast                // [rows height*width*channels]
	firstHalf                    // [rows channels/2 positions]: the first half of the channels of a sequence
	secondHalf                   // the second half
	withoutPadding               // [rows positions channels], 0 where padding is
	tokensSum                    // [rows channels]: its sum over positions
	positionRows                 // [rows*positions channels]
)

// turns lists the orders that a Transpose makes of others, by its axes.
var turns = []struct {
	from, to view
	axes     []int64
}{
	{asLayer, channelsLast, []int64{0, 2, 3, 1}},
	{channelsLast, asLayer, []int64{0, 3, 1, 2}},
	{asLayer, channelsLast, []int64{0, 2, 1}},
	{channelsLast, asLayer, []int64{0, 2, 1}},
	{inGroups, groupsTurned, []int64{0, 2, 1, 3, 4}},
	{channelsLast, positionsFirst, []int64{1, 0, 2}},
	{positionsFirst, channelsLast, []int64{1, 0, 2}},
	{asLayer, positionsFirst, []int64{2, 0, 1}},
	{positionsFirst, asLayer, []int64{1, 2, 0}},
	{byDirection, directionsTurned, []int64{0, 2, 1, 3}},
	{asTokens, tokensTurned, []int64{1, 0}},
	{tokensTurned, asTokens, []int64{1, 0}},
}

// transpose notes the new order of axes; layers compute nothing for it.
func (r *importer) transpose(n *step) {
	v, _ := r.in(n, 0)
	axes := n.options["perm"].list
	if v.isNode && v.view == asLayer && r.oneWide && len(r.b.Out(v.node)) == 3 {
		v.node = r.b.Sequence(r.name(n, ""), v.node)
	}
	rank := 1
	if v.view == inGroups || v.view == byDirection {
		rank++
	}
	if v.isNode {
		rank += len(r.b.Out(v.node))
	}
	for _, t := range turns {
		if v.isNode && v.means == 0 && len(axes) == rank && v.view == t.from && slices.Equal(axes, t.axes) {
			v.view = t.to
			r.set(n, v)
			return
		}
	}
	r.fault(n, "disdel reads this only of sequences, around LayerNormalization and MatMul, and in a channel shuffle")
}

// seen is the layer that is a node's input i. Its channels may come last, and its positions first.
func (r *importer) seen(n *step, i int) (node int, order view, ok bool) {
	v, _ := r.in(n, i)
	if v.isNode && !v.headed() && slices.Contains([]view{channelsLast, positionsFirst, positionRows}, v.view) {
		return v.node, v.view, true
	}
	node, ok = r.from(n, i)
	return node, asLayer, ok
}

// group reads the first step of a channel shuffle.
func (r *importer) group(n *step, x int, sides []int64) bool {
	have := r.b.Out(x)
	if next := r.only(n.out[0]); next != nil && next.kind == "InstanceNormalization" && len(have) == 3 &&
		len(sides) == 3 && sides[1] > 0 && int64(have[0])%sides[1] == 0 && sides[2] == int64(have.Len())/sides[1] {
		r.set(n, value{isNode: true, node: x, view: groupRows, groups: int(sides[1])})
		return true
	}
	if len(have) == 3 && len(sides) == 3 && sides[1] == int64(have[0]) && sides[2] == int64(have[1]*have[2]) {
		r.layer(n, r.b.Sequence(r.name(n, ""), x))
		return true
	}
	if len(have) != 3 || len(sides) != 5 || sides[1] < 1 || sides[1] > int64(have[0]) || int64(have[0])%sides[1] != 0 ||
		!slices.Equal(sides[2:], []int64{int64(have[0]) / sides[1], int64(have[1]), int64(have[2])}) {
		return false
	}
	r.set(n, value{isNode: true, node: x, view: inGroups, groups: int(sides[1])})
	return true
}

// instanceNorm normalises each channel of an image, or each group of channels that a Reshape has made a row.
func (r *importer) instanceNorm(n *step) {
	v, _ := r.in(n, 0)
	weight, _, ok := r.floats(n, 1)
	bias, _, known := r.floats(n, 2)
	eps := decimal(n.number("epsilon", 1e-5))
	switch {
	case !ok || !known:
	case !(eps > 0):
		r.fault(n, "epsilon is %g; it must be above 0", eps)
	case v.isNode && v.view == groupRows:
		if len(weight) != v.groups || slices.ContainsFunc(weight, func(w float32) bool { return w != 1 }) ||
			len(bias) != v.groups || slices.ContainsFunc(bias, func(w float32) bool { return w != 0 }) {
			r.fault(n, "it scales and shifts groups; disdel scales and shifts channels")
			return
		}
		v.view, v.eps = groupsNormed, eps
		r.set(n, v)
	default:
		x, ok := r.from(n, 0)
		if ok && (len(r.b.Out(x)) != 3 || len(weight) != r.b.Out(x)[0] || len(bias) != len(weight)) {
			r.fault(n, "its input is %v, with %d weights; disdel normalises images", []int(r.b.Out(x)), len(weight))
		} else if ok {
			named := n.in[1]
			if r.isFilled(named, 1) && r.isFilled(n.in[2], 0) {
				named = ""
			}
			r.addGroupNorm(n, n, named, x, len(weight), eps, weight, bias)
		}
	}
}

// groupNorm reads the Reshape that makes an image of normalised groups, and the product and the sum behind it.
func (r *importer) groupNorm(n *step, v value, sides []int64) {
	have := r.sides(v.node)
	equal := func(a int64, b int) bool { return a == int64(b) }
	if !slices.EqualFunc(sides[min(1, len(sides)):], have, equal) {
		r.fault(n, "it makes the shape %s of normalised groups; disdel makes %v", shapeText(sides), []int(have))
		return
	}
	last, named, behind := n, "", len(have)-1
	weight, bias := r.values(n, have[0]), r.values(n, have[0])
	for i := range weight {
		weight[i] = 1
	}
	if next, list, name := r.applied(last, "Mul", have[0], behind); next != nil {
		last, weight, next.done = next, list, true
		if !r.isFilled(name, 1) { // PyTorch's affine=False of one channel
			named = name
		}
	} else if next, list, _ := r.applied(last, "Mul", 1, behind); next != nil && list[0] == 1 { // PyTorch's affine=False
		last, next.done = next, true
	}
	if next, list, _ := r.applied(last, "Add", have[0], behind); next != nil {
		last, bias, next.done = next, list, true
	} else if next, list, _ := r.applied(last, "Add", 1, behind); next != nil && list[0] == 0 {
		last, next.done = next, true
	}
	r.addGroupNorm(n, last, named, v.node, v.groups, v.eps, weight, bias)
}

func (r *importer) addGroupNorm(n, last *step, named string, x, groups int, eps float64, weight, bias []float32) {
	if weight == nil || bias == nil {
		return // values has said why
	}
	name := r.name(n, named)
	r.noteNorm(name, named)
	r.keep(name, weight, bias)
	r.layer(last, r.b.GroupNorm(name, x, groups, eps))
}

// ungroup reads the last step of a channel shuffle.
func (r *importer) ungroup(n *step, v value, sides []int64) {
	have := r.b.Out(v.node)
	if len(sides) != 4 || sides[1] != -1 && sides[1] != int64(have[0]) ||
		!slices.Equal(sides[2:], []int64{int64(have[1]), int64(have[2])}) {
		r.fault(n, "it makes the shape %s of shuffled channels; disdel makes %v", shapeText(sides), []int(have))
		return
	}
	r.layer(n, r.b.Channels(r.name(n, ""), v.node, 0, have[0], v.groups))
}

// someChannels reads a slice of channels. It is false for other slices.
func (r *importer) someChannels(n *step, x int, starts, ends, axes, steps []int64) bool {
	in := r.b.Out(x)
	if len(in) < 2 || len(starts) != 1 || len(ends) != 1 || !slices.Equal(axes, []int64{1}) ||
		len(steps) > 0 && !slices.Equal(steps, []int64{1}) {
		return false
	}
	from, to := within(starts[0], in[0]), within(ends[0], in[0])
	switch half := in[0] / 2; {
	case from >= to:
		return false
	case len(in) == 2 && (to-from != half || from > 0 && from != half || !r.isGathered(n.out[0])):
		return r.chooses(n, 1, placesOf(int64(from), int64(to), 1, in[0]))
	case len(in) == 2:
		halves := map[int]view{0: firstHalf, half: secondHalf}
		r.set(n, value{isNode: true, node: x, view: halves[from]})
		return true
	}
	r.layer(n, r.b.Channels(r.name(n, ""), x, from, to-from, 1))
	return true
}

// isGathered tells whether a file takes single positions of a value.
func (r *importer) isGathered(name string) bool {
	return slices.ContainsFunc(r.users[name], func(n *step) bool { return n.kind == "Gather" })
}

// mul multiplies layers: those of one shape, or an image and the gate of each channel. An image and a constant for each
// channel, as ConvNeXt's layer scale, become a depthwise convolution of single pixels. Other constants are read as
// parts of silu, hardSwish, gelu and layerNorm only.
func (r *importer) mul(n *step) {
	if r.layerScale(n) || r.scaled(n) || r.rmsNorm(n) {
		return
	}
	var in [2]int
	var orders [2]view
	for i := range in {
		if v, _ := r.in(n, i); !v.isNode {
			loose("silu, hardSwish, gelu and layerNorm")(r, n)
			return
		}
		var ok bool
		if in[i], orders[i], ok = r.seen(n, i); !ok {
			return
		}
	}
	if orders[0] != orders[1] {
		r.fault(n, "it multiplies layers whose axes have different orders")
		return
	}
	r.set(n, value{isNode: true, node: r.b.Multiply(r.name(n, ""), in[0], in[1]), view: orders[0]})
}

// layerScale reads a product with a constant for each channel.
func (r *importer) layerScale(n *step) bool {
	for i := range n.in {
		v, _ := r.in(n, i)
		other, _ := r.in(n, 1-min(i, 1))
		list := other.array.floats32()
		if !v.isNode || v.means > 0 || v.view != asLayer || len(r.b.Out(v.node)) != 3 || list == nil {
			continue
		}
		channels := r.b.Out(v.node)[0]
		if len(list) != channels || !alongChannels(other.array.sides, channels, len(r.sides(v.node))-1) {
			return false
		}
		name := r.name(n, n.in[1-min(i, 1)]+".weight")
		r.keep(name, list, nil)
		r.layer(n, r.b.Conv(name, v.node, channels, model.Square(1, 1, 0), channels, false))
		return true
	}
	return false
}
