package export

import (
	"slices"

	"github.com/disdel/disdel/model"
)

// chosen adds a layer that takes some of the values of a list, or some channels of a sequence or an image, in any order
// and perhaps several times.
func (r *importer) chosen(n *step, x int, channels []int) (node int, ok bool) {
	out := r.b.Out(x)
	inputs, first, row := out[0], channels[0], true
	for i, c := range channels {
		row = row && c == first+i
	}
	switch {
	case row && len(channels) == inputs:
		return x, true
	case row && len(out) == 3:
		return r.b.Channels(r.name(n, ""), x, first, len(channels), 1), true
	}
	weight := r.values(n, inputs*len(channels))
	if weight == nil {
		return 0, false
	}
	for i, c := range channels {
		weight[i*inputs+c] = 1
	}
	name, pixel := r.name(n, ""), model.Square(1, 1, 0)
	r.keep(name, weight, nil)
	switch len(out) {
	case 1:
		node = r.b.DenseWithoutBias(name, x, len(channels))
	case 2:
		node = r.b.Conv1D(name, x, len(channels), pixel, 1, false)
	default:
		node = r.b.Conv(name, x, len(channels), pixel, 1, false)
	}
	r.scales[node] = shift{layer: name}
	return node, true
}

// channelsAt is the layer that is a node's first input, and whether an axis is that of its channels.
func (r *importer) channelsAt(n *step, axis int64) (v value, ok bool) {
	v, _ = r.in(n, 0)
	if !v.isNode || v.headed() || v.means > 0 || v.arranged != nil {
		return v, false
	}
	rank := int64(len(r.sides(v.node))) + 1
	if axis < 0 {
		axis += rank
	}
	switch v.view {
	case asLayer:
		return v, axis == 1
	case channelsLast, positionsFirst:
		return v, axis == rank-1
	}
	return v, false
}

// chooses gives the channels of a value that a node takes. It is false where they are none, or not those of the value.
func (r *importer) chooses(n *step, axis int64, channels []int) bool {
	v, ok := r.channelsAt(n, axis)
	if !ok || len(channels) == 0 || len(channels) > mostFolded || slices.Min(channels) < 0 ||
		slices.Max(channels) >= r.b.Out(v.node)[0] {
		return false
	}
	if node, ok := r.chosen(n, v.node, channels); ok {
		r.set(n, value{isNode: true, node: node, view: v.view})
	}
	return true
}

// gathers reads a Gather of channels, or scikit-learn's choice of columns.
func (r *importer) gathers(n *step, axis int64) bool {
	v, ok := r.channelsAt(n, axis)
	at, _ := r.in(n, 1)
	if !ok || !at.isList || n.kind == "Gather" && (at.array == nil || len(at.array.sides) != 1) {
		return false
	}
	var channels []int
	for _, c := range at.whole {
		if c < 0 && n.kind == "Gather" {
			c += int64(r.b.Out(v.node)[0])
		}
		if c < 0 || c > 1<<20 {
			return false
		}
		channels = append(channels, int(c))
	}
	return r.chooses(n, axis, channels)
}

// features reads scikit-learn's choice of columns.
func (r *importer) features(n *step) {
	if !r.gathers(n, 1) {
		r.fault(n, "disdel takes up to %d columns of a list of numbers, by their places", mostFolded)
	}
}

// slicesChannels reads a Slice of the values of a list, or of the channels of a sequence whose channels come last.
func (r *importer) slicesChannels(n *step, starts, ends, axes, steps []int64) bool {
	if len(starts) != 1 || len(ends) != 1 || len(axes) != 1 || len(steps) > 1 {
		return false
	}
	v, ok := r.channelsAt(n, axes[0])
	if !ok || v.view == asLayer && len(r.b.Out(v.node)) > 1 {
		return false
	}
	by := int64(1)
	if len(steps) == 1 {
		by = steps[0]
	}
	return r.chooses(n, axes[0], placesOf(starts[0], ends[0], by, r.b.Out(v.node)[0]))
}

// slicesPosition reads a Slice of the first or the last position and the Squeeze behind it, as TensorFlow writes them.
func (r *importer) slicesPosition(n *step, starts, ends, axes, steps []int64) bool {
	v, _ := r.in(n, 0)
	along, ok := map[view]int64{channelsLast: 1, positionsFirst: 0}[v.view]
	next := r.only(n.out[0])
	if !ok || !v.isNode || v.headed() || len(r.b.Out(v.node)) != 2 || len(starts) != 1 || len(ends) != 1 ||
		len(steps) > 0 && !slices.Equal(steps, []int64{1}) || next == nil || next.kind != "Squeeze" ||
		!slices.Equal(axes, []int64{along}) || !slices.Equal(r.list(next, 1, "axes"), axes) {
		return false
	}
	take, span := model.TakeLast, r.b.Out(v.node)[1]
	switch at := placesOf(starts[0], ends[0], 1, span); {
	case slices.Equal(at, []int{span - 1}):
	case slices.Equal(at, []int{0}):
		take = model.TakeFirst
	default:
		return false
	}
	next.done = true
	r.layer(next, r.b.TakePosition(r.name(n, ""), v.node, take))
	return true
}

// placesOf are the places that a Slice takes of an axis.
func placesOf(start, end, by int64, size int) (list []int) {
	n := int64(size)
	bound := func(at, low, high int64) int64 {
		if at < 0 {
			at += n
		}
		return min(max(at, low), high)
	}
	switch {
	case by > 0:
		for at, end := bound(start, 0, n), bound(end, 0, n); at < end; at += min(by, n) {
			list = append(list, int(at))
		}
	case by < 0:
		for at, end := bound(start, -1, n-1), bound(end, -1, n-1); at > end; at += max(by, -n) {
			list = append(list, int(at))
		}
	}
	return list
}

// split cuts channels into parts, of sizes that the file names or of equal ones.
func (r *importer) split(n *step) {
	v, ok := r.channelsAt(n, n.whole("axis", 0))
	if !ok {
		r.fault(n, "disdel splits channels, into parts that are together all of them")
		return
	}
	channels, sizes, first := r.b.Out(v.node)[0], slices.Clone(r.list(n, 1, "split")), 0
	if len(sizes) == 0 && channels%len(n.out) == 0 {
		sizes = slices.Repeat([]int64{int64(channels / len(n.out))}, len(n.out))
	}
	var parts [][]int
	for _, size := range sizes[:min(len(sizes), channels)] {
		var part []int
		for range min(max(size, 0), int64(channels)) {
			part = append(part, first)
			first++
		}
		parts = append(parts, part)
	}
	if len(sizes) != len(n.out) || len(parts) != len(sizes) || first != channels || slices.Min(sizes) < 1 {
		r.fault(n, "it splits %d channels into parts of %v; disdel has parts that are together all of them", channels,
			sizes[:min(len(sizes), mostNamed)])
		return
	}
	for i, name := range n.out {
		node, ok := r.chosen(n, v.node, parts[i])
		if !ok {
			return
		}
		r.at[name] = value{isNode: true, node: node, view: v.view}
	}
}
