package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel/model"
)

// list is a node's input i or, of older opsets, its option.
func (r *importer) list(n *step, i int, option string) []int64 {
	if v, ok := r.in(n, i); ok && v.isList {
		return v.whole
	}
	return n.options[option].list
}

// imageAxes are the axes that a node takes of rows of images, from 0 on and in order.
func (r *importer) imageAxes(n *step) []int64 {
	axes := slices.Clone(r.list(n, 1, "axes"))
	if r.oneWide && (slices.Equal(axes, []int64{2}) || slices.Equal(axes, []int64{-1})) {
		return []int64{2, 3}
	}
	for i, axis := range axes {
		if axis < 0 {
			axes[i] = axis + 4
		}
	}
	slices.Sort(axes)
	return axes
}

// reduceMean is a global pool where it takes the mean of an image's pixels.
func (r *importer) reduceMean(n *step) {
	v, _ := r.in(n, 0)
	if r.meanOfPositions(n, v, r.list(n, 1, "axes")) {
		return
	}
	usual := v.view == channelsLast || v.view == positionsFirst || v.view == asLayer
	if v.isNode && v.means == 0 && !v.headed() && usual && r.stepsOfLayerNorm(n, v.node) {
		return
	}
	r.overPixels(n, r.b.GlobalPool)
}

// reduceMax is a global pool where it takes the largest one of an image's pixels.
func (r *importer) reduceMax(n *step) { r.overPixels(n, r.b.GlobalMaxPool) }

// overPixels adds a pool over the pixels of an image. Channels may come last.
func (r *importer) overPixels(n *step, pool func(name string, in int) int) {
	x, view, ok := r.seen(n, 0)
	if !ok {
		return
	}
	axes, want := r.imageAxes(n), []int64{2, 3}
	if view == channelsLast {
		want = []int64{1, 2}
	}
	if len(r.b.Out(x)) != 3 || !slices.Equal(axes, want) {
		r.fault(n, "disdel reads this over height and width of images, and a mean over positions")
		return
	}
	name := r.name(n, "")
	node := pool(name, x)
	if n.whole("keepdims", 1) != 0 {
		r.set(n, value{isNode: true, node: node, view: view})
	} else if !r.pixelAgain(n, node) {
		r.layer(n, r.b.Flatten(r.name(&step{name: name + ".flatten"}, ""), node))
	}
}

func (r *importer) flatten(n *step) {
	if v, _ := r.in(n, 0); n.whole("axis", 1) == 1 && r.flatLast(n, v) {
		return
	}
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	if axis := n.whole("axis", 1); axis != 1 && axis != -int64(len(r.sides(x))) {
		r.fault(n, "axis is %d; disdel flattens from axis 1 on", axis)
		return
	}
	r.flat(n, x)
}

// flat makes a list of numbers of a layer's output.
func (r *importer) flat(n *step, x int) {
	if r.pixelAgain(n, x) {
		return
	}
	if len(r.b.Out(x)) > 1 {
		x = r.b.Flatten(r.name(n, ""), x)
	}
	r.layer(n, x)
}

// reshape makes a list of numbers of an image.
func (r *importer) reshape(n *step) {
	v, _ := r.in(n, 0)
	to, _ := r.in(n, 1)
	if !to.isList || len(to.whole) == 0 {
		r.fault(n, "its shape is not known before the network runs")
		return
	}
	if v.isNode && v.view == groupsTurned {
		r.ungroup(n, v, to.whole)
		return
	}
	if v.isNode && v.view == groupsNormed {
		r.groupNorm(n, v, to.whole)
		return
	}
	if v.isNode && v.view == directionsTurned {
		r.joinDirections(n, v, to.whole)
		return
	}
	if row := to.whole[len(to.whole)-1]; v.isNode && v.view == asTokens && len(to.whole) == 2 &&
		(row == int64(r.b.Out(v.node)[0]) || row == -1 && to.whole[0] == rowCount) {
		r.set(n, v) // the rows that it has already
		return
	}
	if r.positionRows(n, v, to.whole) || r.isFlatLast(v, to.whole) && r.flatLast(n, v) {
		return
	}
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	have := r.sides(x)
	sides := slices.Clone(to.whole)
	rows := sides[0] == rowCount || sides[0] == -1 || sides[0] == 0 || r.rows > 0 && sides[0] == r.rows
	for i := 1; i < len(sides); i++ {
		if sides[i] == 0 && i <= len(have) {
			sides[i] = int64(have[i-1])
		}
	}
	if open := slices.Index(sides[1:], -1) + 1; open > 0 && sides[0] != -1 { // what the other sides leave
		rest := int64(have.Len())
		for i, side := range sides {
			if i > 0 && i != open && side > 0 && rest%side == 0 {
				rest /= side
			} else if i > 0 && i != open {
				rest = -1
			}
		}
		sides[open] = rest
	}
	if rows && len(sides) == 2 && sides[1] == int64(have.Len()) {
		r.flat(n, x)
		return
	}
	if rows && len(sides) == len(have)+1 {
		same := true
		for i, side := range have {
			same = same && sides[i+1] == int64(side)
		}
		if same {
			r.layer(n, x)
			return
		}
	}
	if rows && r.group(n, x, sides) {
		return
	}
	r.fault(n, "it makes the shape %s of %v; disdel makes only lists of all values of a row", shapeText(to.whole),
		[]int(have))
}

// positionRows makes rows of the positions of a sequence, or a sequence of them again: GPT-2's dense layers.
func (r *importer) positionRows(n *step, v value, to []int64) bool {
	if !v.isNode || v.headed() || len(r.b.Out(v.node)) != 2 {
		return false
	}
	channels, positions := int64(r.b.Out(v.node)[0]), int64(r.b.Out(v.node)[1])
	rows := to[0] == -1 || rowsIn(to[0]) == 1 || r.rows > 0 && to[0] == r.rows
	switch {
	case v.view == channelsLast && len(to) == 2 && to[1] == channels &&
		(to[0] == -1 || rowsIn(to[0]) == positions || r.rows > 0 && to[0] == r.rows*positions):
		v.view = positionRows
	case (v.view == positionRows || v.view == channelsLast) && len(to) == 3 && rows && to[1] == positions &&
		to[2] == channels:
		v.view = channelsLast
	default:
		return false
	}
	r.set(n, v)
	return true
}

// pixelAgain reads a list that the next node makes an image of one pixel of, which it was: Keras's squeeze and
// excitation.
func (r *importer) pixelAgain(n *step, x int) bool {
	out, next := r.b.Out(x), r.only(n.out[0])
	first := next
	if len(out) != 3 || out.Len() != out[0] || r.oneWide || next == nil {
		return false
	}
	to, c, view := slices.Clone(r.list(next, 1, "axes")), int64(out[0]), asLayer
	more := r.only(next.out[0])
	if next.kind == "Unsqueeze" && len(to) == 1 && more != nil && more.kind == "Unsqueeze" {
		first, next, to = next, more, append(to, r.list(more, 1, "axes")...)
	}
	switch rest := to[min(1, len(to)):]; {
	case next.kind == "Unsqueeze" && (slices.Equal(to, []int64{2, 3}) || slices.Equal(to, []int64{-2, -1})):
	case next.kind != "Reshape" || len(to) == 0 || to[0] != rowCount && to[0] != -1 && to[0] != 0 && to[0] != r.rows:
		return false
	case slices.Equal(rest, []int64{c, 1, 1}):
	case slices.Equal(rest, []int64{1, 1, c}):
		view = channelsLast
	default:
		return false
	}
	first.done, next.done = true, true
	r.set(next, value{isNode: true, node: x, view: view})
	return true
}

// shapeText is a shape of the file, without the rows.
func shapeText(sides []int64) string {
	return strings.ReplaceAll(fmt.Sprint(sides[min(1, len(sides)):]), strconv.Itoa(rowCount), "rows")
}

// sides are those of a layer's output in the file, without the rows.
func (r *importer) sides(x int) model.Shape {
	out := r.b.Out(x)
	if r.oneWide && len(out) == 3 {
		return out[:2]
	}
	return out
}

// squeeze drops sides of 1 of an image of one pixel, which becomes a list.
func (r *importer) squeeze(n *step) {
	if r.oneDirection(n) {
		return
	}
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	axes := r.imageAxes(n)
	if len(r.b.Out(x)) == 1 && len(axes) > 0 && axes[0] >= 2 { // after a mean that kept its side
		r.layer(n, x)
		return
	}
	if have := r.b.Out(x); len(have) == 3 && !r.oneWide && (have[1] == 1 && slices.Equal(axes, []int64{2}) ||
		have[2] == 1 && slices.Equal(axes, []int64{3})) {
		r.layer(n, r.b.Sequence(r.name(n, ""), x))
		return
	}
	if have := r.b.Out(x); len(have) != 3 || have[1] != 1 || have[2] != 1 || !slices.Equal(axes, []int64{2, 3}) {
		r.fault(n, "it drops the sides %v of %v; disdel drops height and width of 1", axes, []int(have))
		return
	}
	r.flat(n, x)
}

// softmax comes last. Its logarithm is replaced by itself, as the order of the classes is the same.
func (r *importer) softmax(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	usual := int64(-1)
	if r.opset < 13 {
		usual = 1
	}
	axis := n.whole("axis", usual)
	switch {
	case len(r.b.Out(x)) != 1 || axis != 1 && axis != -1:
		r.fault(n, "it is over axis %d of %v; disdel has softmax over a list of numbers", axis, []int(r.b.Out(x)))
		return
	case n.out[0] != r.outputs[0].name && r.beforeOutput(n.out[0]):
		r.fault(n, "disdel has softmax only as the last layer")
		return
	case n.kind == "LogSoftmax" && r.keepOutput:
		r.fault(n, "disdel has no layer for logarithms of probabilities; without --keep-output the answers are probabilities")
		return
	case n.kind == "LogSoftmax":
		r.notes = append(r.notes, "the last layer is softmax: answers are probabilities, "+
			"where the file gives their logarithms")
	}
	r.layer(n, r.b.Same(r.name(n, ""), x, model.OpSoftmax))
}

// beforeOutput tells whether a node computes with a value before it is the output.
func (r *importer) beforeOutput(name string) bool {
	return slices.ContainsFunc(r.users[name], func(n *step) bool {
		return !slices.Contains([]string{"Identity", "Dropout", "ZipMap", "Normalizer"}, n.kind)
	})
}

// add sums layers of one shape.
func (r *importer) add(n *step) {
	if r.positions(n) {
		return
	}
	if len(n.in) == 1 {
		r.pass(n)
		return
	}
	if r.scaled(n) {
		return
	}
	var list []int
	var order view
	for i := range n.in {
		x, view, ok := r.seen(n, i)
		if !ok {
			return
		}
		if i > 0 && view != order {
			r.fault(n, "it adds layers whose axes have different orders")
			return
		}
		order = view
		if r.oneWide && len(list) > 0 { // a norm or a dense layer has made a sequence of one of them
			x, list[0] = r.asSequence(n, x, list[0]), r.asSequence(n, list[0], x)
		}
		if slices.Contains(list, x) || len(list) > 0 && !slices.Equal(r.b.Out(x), r.b.Out(list[0])) {
			r.fault(n, "it adds %v and %v; disdel adds different layers of one shape", []int(r.b.Out(list[0])),
				[]int(r.b.Out(x)))
			return
		}
		list = append(list, x)
	}
	r.set(n, value{isNode: true, node: r.b.Add(r.name(n, ""), list...), view: order})
}

// asSequence is a layer as a sequence where another one is none of one pixel's width.
func (r *importer) asSequence(n *step, x, other int) int {
	if len(r.b.Out(x)) != 3 || len(r.b.Out(other)) != 2 {
		return x
	}
	return r.b.Sequence(r.name(n, ""), x)
}

// concat joins the channels of images or sequences, vectors, or states.
func (r *importer) concat(n *step) {
	if r.classToken(n) || r.joinsStates(n) {
		return
	}
	var order view
	var list []int
	for i := range n.in {
		x, view, ok := r.seen(n, i)
		if !ok {
			return
		}
		if len(list) > 0 && (view != order || len(r.b.Out(x)) != len(r.b.Out(list[0]))) {
			r.fault(n, "its input %v has another shape than its first one, or its axes another order",
				[]int(r.b.Out(x)))
			return
		}
		list, order = append(list, x), view
	}
	along := int64(1)
	if order != asLayer {
		along = 2
	}
	axis := n.whole("axis", 0)
	if axis < 0 {
		axis += int64(len(r.sides(list[0]))) + 1
	}
	switch {
	case len(list) == 1:
		r.pass(n)
	case axis != along || order != asLayer && len(r.b.Out(list[0])) == 3:
		r.fault(n, "axis is %d; disdel joins the channels of images and of sequences, and vectors", axis)
	default:
		r.set(n, value{isNode: true, node: r.b.Concat(r.name(n, ""), list...), view: order})
	}
}

// cast passes on tokens, and values that stay float32. Whole numbers of the data are tokens.
func (r *importer) cast(n *step) {
	v, _ := r.in(n, 0)
	switch to := n.whole("to", 0); {
	case to == float32s || v.view == asTokens || v.view == tokensTurned:
	case (to == int64s || to == int32s) && v.isNode && v.view == asLayer && r.isData(v.node):
		v.view = asTokens
	default:
		r.fault(n, "disdel computes with float32 only")
		return
	}
	r.set(n, v)
}

// isData tells whether a node is the data as a list.
func (r *importer) isData(x int) bool {
	g, err := r.b.Graph()
	if err != nil || len(g.Nodes[x].Out) != 1 {
		return false
	}
	return x == 0 || g.Nodes[x].Op == model.OpFlatten && g.Nodes[x].Inputs[0] == 0
}

func (r *importer) constant(n *step) {
	switch o, list := n.options["value"], n.options["value_ints"].list; {
	case o.array != nil:
		r.set(n, constant(o.array))
	case len(list) > 0:
		r.setList(n, list)
	default:
		r.fault(n, "disdel reads constants of the option value")
	}
}

// pass gives what a node takes.
func (r *importer) pass(n *step) {
	v, _ := r.in(n, 0)
	r.set(n, v)
}

// shape is known, except for the number of rows.
func (r *importer) shape(n *step) {
	v, _ := r.in(n, 0)
	list := []int64{rowCount}
	switch out := r.b.Out(v.node); {
	case v.isNode && v.view == tokensTurned:
		list = []int64{int64(out[0]), rowCount}
	case v.isNode && (v.view == byDirection || v.view == directionsTurned) && len(out) == 2:
		directions := 1
		if r.hasDirections(v.node) {
			directions = 2
		}
		list = []int64{int64(out[1]), rowCount, int64(directions), int64(out[0] / directions)}
		if v.view == byDirection {
			list[1], list[2] = list[2], list[1]
		}
	case v.isNode && !v.headed() && v.view == positionsFirst && len(out) == 2:
		list = []int64{int64(out[1]), rowCount, int64(out[0])}
	case v.isNode && !v.headed() && v.view == channelsLast:
		for _, side := range append(slices.Clone(out[1:]), out[0]) {
			list = append(list, int64(side))
		}
	case v.isNode && v.view == asTokens:
		list = append(list, int64(out[0]))
	default:
		x, ok := r.from(n, 0)
		if !ok {
			return
		}
		for _, side := range r.sides(x) {
			list = append(list, int64(side))
		}
	}
	if list[0] == rowCount && r.rows == 1 && len(r.b.Out(v.node)) == 3 {
		list[0] = 1
	}
	r.setShape(n, list)
}

// setShape says that a node gives the sides of a value, or from opset 15 on some of them.
func (r *importer) setShape(n *step, list []int64) {
	from, to := n.someSides(len(list))
	r.setList(n, list[from:to])
}

// someSides are the first (included) and the last (not) of the sides that a Shape gives.
func (n *step) someSides(count int) (from, to int) {
	place := func(name string, usual int) int {
		at := n.whole(name, int64(usual))
		if at < 0 {
			at += int64(count)
		}
		return int(min(max(at, 0), int64(count)))
	}
	from = place("start", 0)
	return from, max(from, place("end", count))
}

// setList says that a node gives a list of integers.
func (r *importer) setList(n *step, list []int64) {
	r.set(n, constant(&array{name: label(n), kind: int64s, sides: []int{len(list)}, ints: list}))
}

// folded is a list of integers that a node takes.
func (r *importer) folded(n *step, i int) ([]int64, bool) {
	v, _ := r.in(n, i)
	if !v.isList {
		r.fault(n, "disdel computes this only of shapes")
	}
	return v.whole, v.isList
}

// gather reads a Gather of a layer's output or of weights; fold has read the others.
func (r *importer) gather(n *step) {
	if !r.takesPosition(n) && !r.someStates(n) && !r.embedding(n) && !r.gathers(n, n.whole("axis", 0)) {
		r.fault(n, "disdel computes this only of shapes")
	}
}

// firstAxis puts an axis of one before those of a constant.
func (r *importer) firstAxis(n *step) bool {
	v, _ := r.in(n, 0)
	list := v.array.floats32()
	if list == nil || !slices.Equal(r.list(n, 1, "axes"), []int64{0}) {
		return false
	}
	r.setArray(n, list, append([]int{1}, v.array.sides...))
	return true
}

// setArray gives a constant that a node computes of others. The values may be a view.
func (r *importer) setArray(n *step, list []float32, sides []int) {
	r.set(n, value{array: &array{name: label(n), kind: float32s, sides: sides, float: list}})
}

// joinedArrays joins constants along their first axis, as the gates of a recurrence.
func (r *importer) joinedArrays(n *step) bool {
	var lists [][]float32
	var sides []int
	size := 0
	for i := range n.in {
		v, _ := r.in(n, i)
		list := v.array.floats32()
		if list == nil || len(v.array.sides) == 0 || i > 0 && !slices.Equal(v.array.sides[1:], sides[1:]) {
			return false
		}
		if i == 0 {
			sides = slices.Clone(v.array.sides)
		} else {
			sides[0] += v.array.sides[0]
		}
		lists, size = append(lists, list), size+len(list)
	}
	if n.whole("axis", 0) != 0 {
		return false
	}
	out := r.values(n, size)
	if out == nil {
		return true
	}
	at := 0
	for _, list := range lists {
		at += copy(out[at:], list)
	}
	r.setArray(n, out, sides)
	return true
}

// cutArray takes part of a constant along its first axis.
func (r *importer) cutArray(n *step) bool {
	starts, ends := r.list(n, 1, "starts"), r.list(n, 2, "ends")
	axes, steps := r.list(n, 3, "axes"), r.list(n, 4, "")
	v, _ := r.in(n, 0)
	list := v.array.floats32()
	if list == nil || len(v.array.sides) == 0 || len(starts) != 1 || len(ends) != 1 || !slices.Equal(axes, []int64{0}) ||
		len(steps) > 0 && steps[0] != 1 {
		return false
	}
	sides := slices.Clone(v.array.sides)
	from, to := within(starts[0], sides[0]), within(ends[0], sides[0])
	if from >= to {
		return false
	}
	row := len(list) / sides[0]
	sides[0] = to - from
	r.setArray(n, list[from*row:to*row:to*row], sides)
	return true
}

// within is a place of a list as Slice has it: below 0 it counts from the end.
func within(at int64, length int) int {
	if at < 0 {
		at += int64(length)
	}
	return int(max(0, min(at, int64(length))))
}

// slice takes the pixels of an image at a stride, as a convolution of single pixels.
func (r *importer) slice(n *step) {
	starts, ends := r.list(n, 1, "starts"), r.list(n, 2, "ends")
	axes, steps := r.list(n, 3, "axes"), r.list(n, 4, "")
	if v, _ := r.in(n, 0); v.zeros {
		r.pass(n)
		return
	}
	if r.someStates(n) || r.slicesChannels(n, starts, ends, axes, steps) ||
		r.slicesPosition(n, starts, ends, axes, steps) {
		return
	}
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	in := r.b.Out(x)
	if r.someChannels(n, x, starts, ends, axes, steps) {
		return
	}
	unchanged := len(in) == 3 && len(steps) == 2 &&
		slices.Equal(axes, []int64{2, 3}) && slices.Equal(starts, []int64{0, 0}) &&
		len(ends) == 2 && min(steps[0], steps[1]) >= 1 && max(steps[0], steps[1]) < 1<<20 &&
		ends[0] >= int64(in[1]) && ends[1] >= int64(in[2])
	if !unchanged {
		r.fault(n, "disdel reads slices of channels, and of whole images with a step in height and width")
		return
	}
	name := r.name(n, "")
	ones := r.values(n, in[0])
	if ones == nil {
		return
	}
	for i := range ones {
		ones[i] = 1
	}
	r.keep(name, ones, nil)
	w := model.Window{Kernel: model.Sides{H: 1, W: 1}, Stride: model.Sides{H: int(steps[0]), W: int(steps[1])}}
	r.notes = append(r.notes, "layer "+name+" is a convolution that takes single pixels; training changes its weights")
	r.layer(n, r.b.Conv(name, x, in[0], w, in[0], false))
}

// pad adds channels of zeros, as a convolution of single pixels.
func (r *importer) pad(n *step) {
	x, view, ok := r.seen(n, 0)
	if !ok {
		return
	}
	in, pads := r.b.Out(x), r.pads(n, len(r.sides(x))+1)
	if view == channelsLast && len(pads) == 8 && len(in) == 3 {
		pads = []int64{pads[0], pads[3], pads[1], pads[2], pads[4], pads[7], pads[5], pads[6]}
	} else if view != asLayer {
		pads = nil
	}
	if r.oneWide && len(pads) == 6 {
		pads = slices.Concat(pads[:3], []int64{0}, pads[3:], []int64{0})
	}
	if mode := n.options["mode"].text; mode != "" && mode != "constant" || len(in) != 3 || len(pads) != 8 {
		r.fault(n, "disdel reads only zeros around images")
		return
	}
	if !r.addsZeros(n) {
		r.fault(n, "it pads with other values than 0")
		return
	}
	before, after := pads[1], pads[5]
	if len(in) == 3 && r.aroundImage(n, x, view, pads) {
		return
	}
	if before < 0 || after < 0 || max(before, after) > 1<<12 || in[0] > 1<<12 ||
		slices.ContainsFunc(slices.Concat(pads[:1], pads[2:5], pads[6:]), func(v int64) bool { return v != 0 }) {
		r.fault(n, "it pads %v; disdel reads new channels here; write other padding into the convolution or pool", pads)
		return
	}
	filters := in[0] + int(before+after)
	weight := r.values(n, filters*in[0])
	if weight == nil {
		return
	}
	for i := range in[0] {
		weight[(i+int(before))*in[0]+i] = 1
	}
	name := r.name(n, "")
	r.keep(name, weight, nil)
	r.notes = append(r.notes, "layer "+name+" is a convolution that adds channels of zeros; training changes its weights")
	r.set(n, value{isNode: true, node: r.b.Conv(name, x, filters, model.Square(1, 1, 0), 1, false), view: view})
}

// unsqueeze reads PyTorch's adaptive mean over positions: that over the pixels of an image one pixel high.
func (r *importer) unsqueeze(n *step) {
	isHeight := func(list []int64) bool { return slices.Equal(list, []int64{2}) || slices.Equal(list, []int64{-2}) }
	over := func(s *step) bool {
		axes := slices.Sorted(slices.Values(r.list(s, 1, "axes")))
		return s.kind == "ReduceMean" && s.whole("keepdims", 1) == 1 &&
			(slices.Equal(axes, []int64{2, 3}) || slices.Equal(axes, []int64{-2, -1}))
	}
	back := func(s *step) bool { return s.kind == "Squeeze" && isHeight(r.list(s, 1, "axes")) }
	steps := r.chain(n, over, back)
	if !isHeight(r.list(n, 1, "axes")) || steps == nil {
		loose(constants)(r, n)
		return
	}
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	steps[0].done, steps[1].done = true, true
	if len(r.b.Out(x)) == 2 {
		r.layer(steps[1], r.b.TakePosition(r.name(n, ""), x, model.TakeMean))
		return
	}
	r.layer(steps[1], r.b.GlobalPool(r.name(n, ""), x))
}
