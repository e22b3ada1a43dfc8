package export

import (
	"maps"
	"slices"

	"github.com/disdel/disdel/model"
)

// arrangement is a layer's output whose pixels a file has brought into another order, as windows or as blocks. Its
// values are places among those of the layer, [height width channels].
type arrangement struct {
	tensor
	height, width, channels int

	proj *projected3   // the values are queries, keys and values; nil: those of a layer
	unit bool          // they were divided by their lengths
	norm bool          // it is these lengths
	part *windowScores // it is scores or what comes behind them; nil: it is values
}

// arrangedKinds are nodes that bring values into another order.
var arrangedKinds = []string{"Reshape", "Transpose", "Slice", "Concat", "Unsqueeze", "Squeeze", "Gather", "Pad"}

// asArranged is an input as an arrangement: one already, or an image in its usual order.
func (r *importer) asArranged(v value) *arrangement {
	if v.arranged != nil {
		return v.arranged
	}
	if !v.isNode || v.means > 0 || v.headed() || v.view != channelsLast && v.view != asLayer {
		return nil
	}
	out := r.b.Out(v.node)
	if len(out) != 3 || out.Len() > mostMoved {
		return nil
	}
	a := &arrangement{height: out[1], width: out[2], channels: out[0]}
	a.sides = []int{1, out[1], out[2], out[0]}
	a.v = make([]float64, out.Len())
	for i := range a.v {
		a.v[i] = float64(i)
	}
	if v.view == asLayer {
		a.tensor, _ = a.turned([]int64{0, 3, 1, 2})
	}
	return a
}

// arrange reads a node of values in another order. It is false where the node is none.
func (r *importer) arrange(n *step) bool {
	v, _ := r.in(n, 0)
	anyOf := false
	for i := range n.in {
		o, _ := r.in(n, i)
		anyOf = anyOf || o.arranged != nil
	}
	if !anyOf && !r.beginsArrangement(n, v) {
		return false
	}
	if slices.Contains(arrangedKinds, n.kind) && (v.arranged == nil || v.arranged.part == nil) {
		return r.rearrange(n, v)
	}
	if !anyOf {
		return false
	}
	if n.kind == "Shape" {
		from, to := n.someSides(len(v.arranged.sides))
		t := tensor{sides: []int{to - from}}
		for _, side := range v.arranged.sides[from:to] {
			t.v = append(t.v, float64(side))
		}
		return r.give(n, t, false)
	}
	if !r.windowed(n) && !r.perPixel(n) {
		r.fault(n, "disdel reads pixels in another order only around attention within windows")
	}
	return true
}

// beginsArrangement tells whether a node brings the pixels of an image into another order.
func (r *importer) beginsArrangement(n *step, v value) bool {
	if !v.isNode || v.means > 0 || v.headed() || len(r.b.Out(v.node)) != 3 || r.rows != 1 {
		return false
	}
	to, _ := r.in(n, 1)
	if v.view == channelsLast {
		return n.kind == "Reshape" && !r.isFlatLast(v, to.whole) || n.kind == "Slice" || n.kind == "Pad"
	}
	return v.view == asLayer && n.kind == "Reshape" && len(to.whole) == 6
}

// rearrange reads a node that brings values into another order.
func (r *importer) rearrange(n *step, v value) bool {
	a := r.asArranged(v)
	if a == nil {
		return false
	}
	out, ok := *a, false
	if n.kind == "Pad" {
		out, ok = r.padded(n, a)
	} else {
		out.tensor, ok = r.moved(n, a.tensor, func(i int) (tensor, bool) {
			o, there := r.in(n, i)
			if !there {
				return tensor{}, false
			}
			if n.kind == "Concat" {
				b := r.asArranged(o)
				if b == nil || o.node != v.node || b.proj != a.proj {
					return tensor{}, false
				}
				return b.tensor, true
			}
			return o.read()
		})
	}
	if !ok {
		r.fault(n, "disdel brings the pixels of one image into another order only as attention within windows does")
		return true
	}
	r.setArranged(n, v.node, &out)
	return true
}

// setArranged says that a node gives an arrangement, or the layer itself where it has its usual order.
func (r *importer) setArranged(n *step, node int, a *arrangement) {
	out := r.b.Out(node)
	if a.proj == nil && !a.norm && len(a.sides) == 4 && len(out) == 3 {
		h, w, c := out[1], out[2], out[0]
		last := slices.Equal(a.sides, []int{1, h, w, c})
		first := slices.Equal(a.sides, []int{1, c, h, w})
		place := func(row, column, channel int) float64 { return float64((row*a.width+column)*a.channels + channel) }
		for i := 0; i < len(a.v) && (last || first); i++ {
			last = last && a.v[i] == place(i/c/w, i/c%w, i%c)
			first = first && a.v[i] == place(i/w%h, i%w, i/w/h)
		}
		if last {
			r.set(n, value{isNode: true, node: node, view: channelsLast})
			return
		}
		if first {
			r.set(n, value{isNode: true, node: node})
			return
		}
	}
	r.set(n, value{isNode: true, node: node, view: channelsLast, arranged: a})
}

// padded puts zeros below and to the right of an image.
func (r *importer) padded(n *step, a *arrangement) (out arrangement, ok bool) {
	pads := r.pads(n, len(a.sides))
	if len(pads) != 2*len(a.sides) || len(a.sides) != 4 || a.proj != nil {
		return out, false
	}
	down, right := pads[5], pads[6]
	for i, pad := range pads {
		if i != 5 && i != 6 && pad != 0 || pad < 0 || pad > 1<<12 {
			return out, false
		}
	}
	out = *a
	if down+right == 0 {
		return out, true
	}
	if mode := n.options["mode"].text; mode != "" && mode != "constant" || !r.addsZeros(n) {
		return out, false
	}
	for i, x := range a.v {
		if x != float64(i) {
			return out, false
		}
	}
	if len(a.v) != a.height*a.width*a.channels || a.sides[1] != a.height || a.sides[2] != a.width {
		return out, false
	}
	out.height, out.width = a.height+int(down), a.width+int(right)
	sides := []int{1, out.height, out.width, a.channels}
	next := -1.0
	out.tensor, ok = each(sides, func([]int) float64 { next++; return next })
	return out, ok
}

// pixels tells where the pixels of an arrangement whose channels come last are, and how its channels are ordered.
func (a *arrangement) pixels() (order []int, ok bool) {
	rank := len(a.sides)
	if a.proj != nil || a.norm || a.part != nil || rank == 0 || a.sides[rank-1] != a.channels || a.channels == 0 {
		return nil, false
	}
	c := a.channels
	for k := range c {
		order = append(order, int(a.v[k])%c)
	}
	for i, x := range a.v {
		if at := int(a.v[i-i%c]) / c; int(x) != at*c+order[i%c] {
			return nil, false
		}
	}
	return order, true
}

// perPixel reads a node that computes each pixel by itself, whatever their order. The layer computes them in their
// usual order.
func (r *importer) perPixel(n *step) bool {
	v, _ := r.in(n, 0)
	if v.arranged == nil {
		if v, _ = r.in(n, 1); v.arranged == nil {
			return false
		}
	}
	a := v.arranged
	order, ok := a.pixels()
	node := v.node
	if !ok {
		if node, order, ok = r.blocks(n, v); !ok {
			return false
		}
		b := &arrangement{height: r.b.Out(node)[1], width: r.b.Out(node)[2], channels: a.sides[len(a.sides)-1]}
		b.sides = a.sides
		b.v = make([]float64, len(a.v))
		for i := range b.v {
			b.v[i] = float64(i - i%b.channels + order[i%b.channels])
		}
		a = b
		for name, o := range r.at { // others read the same blocks
			if o.arranged == v.arranged {
				r.at[name] = value{isNode: true, node: node, view: channelsLast, arranged: a}
			}
		}
	}
	if out := r.b.Out(node); a.height != out[1] || a.width != out[2] {
		return false
	}
	before := map[string]value{}
	for i, name := range n.in {
		o, _ := r.in(n, i)
		switch {
		case o.arranged != nil:
			if o.arranged != a && !slices.Equal(o.arranged.v, a.v) {
				return false
			}
			before[name] = o
			o.arranged = nil
			r.at[name] = o
		case n.kind == "MatMul" && i > 0 && !slices.IsSorted(order) && o.array.floats32() != nil:
			before[name] = o
			t, known := ordered(o.array, order)
			if !known {
				return false
			}
			r.at[name] = constant(t)
		}
	}
	r.within, r.order = a, order
	if !r.curve(n) {
		nodeReaders()[n.kind](r, n)
	}
	r.within, r.order = nil, nil
	maps.Copy(r.at, before)
	return true
}

// byLayer is a list of the channels of the node at work, as its layer orders them. The file's order is r.order.
func (r *importer) byLayer(list []float32) []float32 {
	if len(r.order) != len(list) || slices.IsSorted(r.order) {
		return list
	}
	out := make([]float32, len(list))
	for k, to := range r.order {
		out[to] = list[k]
	}
	return out
}

// ordered is a constant whose first side is channels in a file's order, by the layer's channels.
func ordered(a *array, order []int) (*array, bool) {
	if len(a.sides) == 0 || a.sides[0] != len(order) {
		return nil, false
	}
	list, row := a.floats32(), a.length()/len(order)
	out := &array{name: a.name, kind: float32s, sides: a.sides, float: make([]float32, len(list))}
	for k, to := range order {
		copy(out.float[to*row:][:row], list[k*row:][:row])
	}
	return out, true
}

// blocks adds a layer that makes one pixel of each block of an image, where an arrangement is that.
func (r *importer) blocks(n *step, v value) (node int, order []int, ok bool) {
	a, out := v.arranged, r.b.Out(v.node)
	if a.proj != nil || a.part != nil || len(a.sides) != 4 || len(out) != 3 || a.height != out[1] || a.width != out[2] {
		return 0, nil, false
	}
	h, w, c := a.sides[1], a.sides[2], a.sides[3]
	if h < 1 || w < 1 || out[1]%h != 0 || out[2]%w != 0 || c*h*w != out.Len() {
		return 0, nil, false
	}
	block := model.Sides{H: out[1] / h, W: out[2] / w}
	for k := range c {
		at := int(a.v[k])
		pixel := at / out[0]
		order = append(order, (pixel/out[2]*block.W+pixel%out[2])*out[0]+at%out[0])
		if pixel/out[2] >= block.H || pixel%out[2] >= block.W {
			return 0, nil, false
		}
	}
	for i, x := range a.v {
		down, right, k := i/c/w, i/c%w, order[i%c]
		part := k / out[0]
		row, column := down*block.H+part/block.W, right*block.W+part%block.W
		if int(x) != (row*out[2]+column)*out[0]+k%out[0] {
			return 0, nil, false
		}
	}
	return r.b.SpaceToDepth(r.name(&step{name: r.name(n, "") + ".blocks"}, ""), v.node, block), order, true
}
