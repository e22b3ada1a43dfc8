package export

import (
	"math"
	"slices"
	"strings"

	"github.com/disdel/disdel/model"
)

// projected3 is the convolution that makes queries, keys and values, and once they are mixed, how.
type projected3 struct {
	name         string
	weight, bias []float32
	scale        float64 // of what the arrangement has

	mixed *model.WindowAttention // nil: they are not mixed yet
	table []float32              // biases by distance
	logs  []float32              // of the scales of cosines
}

// windowScores are products of queries and keys, [windows x heads places places], and what is added to them.
type windowScores struct {
	queries, keys tensor // [windows x heads places width]
	scale         float64
	units         bool
	add           []float64
	logs          []float32
	softened      bool
	computed      bool // the file computes what is added
}

// windowed reads a node of an attention within windows. It is false where the node is none.
func (r *importer) windowed(n *step) bool {
	v, _ := r.in(n, 0)
	o, _ := r.in(n, 1)
	if v.arranged == nil {
		v, o = o, v
	}
	a := v.arranged
	switch {
	case a.proj == nil:
		return n.kind == "MatMul" && r.project(n, v, o)
	case a.part != nil && o.arranged != nil:
		return (n.kind == "MatMul" || n.kind == "Einsum") && r.mix(n, v, o)
	case a.part != nil:
		return r.onScores(n, v, o)
	case a.proj.mixed != nil:
		return n.kind == "MatMul" && r.mixedOut(n, v, o)
	}
	b := *a
	switch n.kind {
	case "Mul":
		list := o.array.floats32()
		if len(list) != 1 {
			return false
		}
		p := *a.proj
		p.scale *= float64(list[0])
		b.proj = &p
	case "ReduceL2":
		axes := r.list(n, 1, "axes")
		if len(axes) != 1 || axes[0] != -1 && axes[0] != int64(len(a.sides)-1) || n.whole("keepdims", 1) != 1 {
			return false
		}
		b.norm = true
	case "Clip", "Max", "Expand":
		if !a.norm {
			return false
		}
	case "Div":
		if o.arranged == nil || !o.arranged.norm || !slices.Equal(o.arranged.v, a.v) || a.norm || a.unit {
			return false
		}
		b.unit = true
	case "MatMul", "Einsum":
		return r.multiply(n, v, o)
	default:
		return false
	}
	r.set(n, value{isNode: true, node: v.node, view: channelsLast, arranged: &b})
	return true
}

// project reads the product that makes queries, keys and values of pixels in windows.
func (r *importer) project(n *step, v, weights value) bool {
	a := v.arranged
	order, ok := a.pixels()
	c := a.channels
	list := weights.array.floats32()
	if !ok || !slices.IsSorted(order) || list == nil || !slices.Equal(weights.array.sides, []int{c, 3 * c}) {
		return false
	}
	end := n
	if next := r.only(n.out[0]); next != nil && next.kind == "Add" {
		end = next
	}
	for _, u := range r.users[end.out[0]] {
		if !slices.Contains([]string{"Reshape", "Slice", "Split", "Shape"}, u.kind) {
			return false
		}
	}
	p := &projected3{name: strings.TrimSuffix(r.name(n, ""), ".matmul"), scale: 1}
	if p.weight = r.values(n, len(list)); p.weight == nil {
		return true
	}
	turn(p.weight, list, c, 3*c)
	bias, last, ok := r.bias(n, 3*c)
	if p.bias = bias; !ok {
		return true
	}
	b := wider(a, 3*c)
	b.proj = p
	r.set(last, value{isNode: true, node: v.node, view: channelsLast, arranged: b})
	return true
}

// wider is an arrangement of the same pixels with other channels.
func wider(a *arrangement, channels int) *arrangement {
	b := *a
	b.sides, b.channels = slices.Clone(a.sides), channels
	b.sides[len(b.sides)-1] = channels
	b.v = make([]float64, 0, len(a.v)/a.channels*channels)
	for i := 0; i < len(a.v); i += a.channels {
		pixel := int(a.v[i]) / a.channels
		for k := range channels {
			b.v = append(b.v, float64(pixel*channels+k))
		}
	}
	return &b
}

// heads3 is a tensor as [windows x heads places width]; with turned, its last two sides are exchanged.
func heads3(t tensor, turned bool) (tensor, bool) {
	rank := len(t.sides)
	if rank < 3 {
		return t, false
	}
	all := size(t.sides[:rank-2])
	if all < 1 {
		return t, false
	}
	t.sides = []int{all, t.sides[rank-2], t.sides[rank-1]}
	if turned {
		return t.turned([]int64{0, 2, 1})
	}
	return t, true
}

// multiply reads the product of queries and keys.
func (r *importer) multiply(n *step, v, o value) bool {
	q, k := v.arranged, o.arranged
	if k == nil || o.node != v.node || k.part != nil || k.proj == nil || q.norm || k.norm || q.unit != k.unit ||
		k.proj.name != q.proj.name {
		return false
	}
	if v.arranged != r.at[n.in[0]].arranged {
		q, k = k, q
	}
	turned := n.kind == "MatMul"
	if !turned && !isEinsum(n, true) {
		return false
	}
	s := &windowScores{scale: q.proj.scale * k.proj.scale, units: q.unit}
	var ok, fits bool
	s.queries, ok = heads3(q.tensor, false)
	s.keys, fits = heads3(k.tensor, turned)
	if !ok || !fits || !slices.Equal(s.queries.sides, s.keys.sides) {
		return false
	}
	places := s.queries.sides[1]
	sides := append(slices.Clone(q.sides[:len(q.sides)-2]), places, places)
	if size(sides) < 1 {
		return false
	}
	b := *q
	p := *q.proj
	p.scale = 1
	b.proj, b.part, b.tensor = &p, s, tensor{sides: sides}
	r.set(n, value{isNode: true, node: v.node, view: channelsLast, arranged: &b})
	return true
}

// isEinsum tells whether a node multiplies rows with rows, or shares with values, of each head.
func isEinsum(n *step, rows bool) bool {
	text := strings.ToLower(strings.ReplaceAll(n.options["equation"].text, " ", ""))
	ins, out, ok := strings.Cut(text, "->")
	a, b, two := strings.Cut(ins, ",")
	if !ok || !two || len(a) < 3 || len(b) != len(a) || len(out) != len(a) {
		return false
	}
	k := len(a) - 2
	if a[:k] != b[:k] || a[:k] != out[:k] || a[k] != out[k] {
		return false
	}
	if rows {
		return a[k+1] == b[k+1] && out[k+1] == b[k] && b[k] != a[k]
	}
	return a[k+1] == b[k] && out[k+1] == b[k+1]
}

// onScores reads what a file does with scores before they are multiplied with values.
func (r *importer) onScores(n *step, v, o value) bool {
	b, s := *v.arranged, *v.arranged.part
	list := o.array.floats32()
	switch n.kind {
	case "Reshape":
		to, ok := o.read()
		places := s.queries.sides[1]
		known, open := 1, -1
		var sides []int
		for i, x := range to.v {
			if x == -1 && open < 0 {
				x, open = 1, i
			}
			if !(x >= 1 && x <= mostMoved) || known > mostMoved {
				return false
			}
			known *= int(x)
			sides = append(sides, int(x))
		}
		all := size(b.sides)
		if open >= 0 && all%known == 0 {
			sides[open] = all / known
		}
		if rank := len(sides); !ok || size(sides) != all || rank < 3 || sides[rank-1] != places ||
			sides[rank-2] != places {
			return false
		}
		b.tensor = tensor{sides: sides}
	case "Add":
		t, ok := o.read()
		if !ok || list == nil || s.softened || s.scale == 0 {
			return false
		}
		zeros := tensor{b.sides, s.add}
		if s.add == nil {
			zeros.v = make([]float64, size(b.sides))
		}
		sum, ok := together([]tensor{zeros, t}, func(v []float64) float64 { return v[0] + v[1] })
		if !ok || !slices.Equal(sum.sides, b.sides) {
			return false
		}
		s.add = sum.v
		masks := !slices.ContainsFunc(t.v, func(x float64) bool { return x != 0 && x > -model.ApartScore })
		s.computed = s.computed || o.array.computed && !masks
	case "Mul":
		if s.softened || s.add != nil || s.logs != nil || list == nil {
			return false
		}
		sides := o.array.sides
		if len(list) == 1 && !(s.units && len(sides) > 2) { // with one head, its scale has three sides
			s.scale *= float64(list[0])
			break
		}
		if !s.units || len(sides) < 3 || sides[len(sides)-3] != len(list) || len(b.sides) < 3 ||
			b.sides[len(b.sides)-3] != len(list) {
			return false
		}
		for _, x := range list {
			if !(x > 0) {
				return false
			}
			s.logs = append(s.logs, float32(math.Log(float64(x))))
		}
	case "Softmax":
		if axis := n.whole("axis", -1); axis != -1 && axis != int64(len(b.sides)-1) || s.softened {
			return false
		}
		s.softened = true
	default:
		return false
	}
	b.part = &s
	r.set(n, value{isNode: true, node: v.node, view: channelsLast, arranged: &b})
	return true
}

// mix reads the product of shares and values, and finds out which windows there are.
func (r *importer) mix(n *step, v, o value) bool {
	a, values := v.arranged, o.arranged
	s := a.part
	if n.kind == "Einsum" && !isEinsum(n, false) || !s.softened || values.part != nil || values.proj == nil {
		return false
	}
	if values.unit || values.norm || values.proj.mixed != nil || values.proj.name != a.proj.name ||
		values.proj.scale != 1 || o.node != v.node {
		return false
	}
	t, ok := heads3(values.tensor, false)
	if !ok || !slices.Equal(t.sides, s.queries.sides) {
		return false
	}
	c, width := a.channels/3, t.sides[2]
	w := model.WindowAttention{Heads: c / max(width, 1), Cosine: s.units, NoBias: a.proj.bias == nil}
	if width < 1 || c%width != 0 || s.units != (s.logs != nil) || s.units && len(s.logs) != w.Heads {
		return false
	}
	p := *a.proj
	if !findWindows(a, t, &w, &p) {
		r.fault(n, "disdel reads attention only in windows of a map, shifted or in a grid, with a bias by distance")
		return true
	}
	if factor := s.scale * math.Sqrt(float64(width)); !s.units && !near(factor, 1) {
		p.weight, p.bias = slices.Clone(p.weight), slices.Clone(p.bias)
		for i := range c * c {
			p.weight[i] = float32(float64(p.weight[i]) * factor)
		}
		for i := range min(c, len(p.bias)) {
			p.bias[i] = float32(float64(p.bias[i]) * factor)
		}
	} else if s.units && s.scale != 1 {
		return false
	}
	p.mixed, p.logs = &w, s.logs
	if s.computed {
		r.notes = append(r.notes, "layer "+p.name+" has a table of biases that the file computes by a network; "+
			"training changes the table, and not that network")
	}
	b := *values
	b.proj, b.channels = &p, c
	b.sides = values.sides
	b.v = make([]float64, len(values.v))
	for i, x := range values.v { // of the values' pixel and channel
		b.v[i] = float64(int(x)/(3*c)*c + int(x)%(3*c) - 2*c)
	}
	r.set(n, value{isNode: true, node: v.node, view: channelsLast, arranged: &b})
	return true
}

// findWindows finds the windows that queries, keys and values are in, and the biases of their scores.
func findWindows(a *arrangement, values tensor, w *model.WindowAttention, p *projected3) bool {
	s := a.part
	places := s.queries.sides[1]
	first := int(s.queries.v[0]) / a.channels
	for h := 1; h <= places; h++ {
		wide := places / h
		if places%h != 0 || a.height%h != 0 || a.width%wide != 0 {
			continue
		}
		for _, grid := range []bool{false, true} {
			m := model.Windows{MapH: a.height, MapW: a.width, H: h, W: wide, Grid: grid}
			if !grid {
				m.ShiftH, m.ShiftW = first/a.width, first%a.width
			}
			if m.ShiftH >= h || m.ShiftW >= wide || m.Count()*w.Heads != s.queries.sides[0] ||
				!areIn(&m, w.Heads, a.channels, s, values) {
				continue
			}
			if table, ok := biasesOf(&m, w.Heads, s.add); ok {
				w.Window, w.Shift, w.Grid = model.Sides{H: h, W: wide}, model.Sides{H: m.ShiftH, W: m.ShiftW}, grid
				p.table = table
				return true
			}
		}
	}
	return false
}

// areIn tells whether queries, keys and values are those of the places of windows.
func areIn(m *model.Windows, heads, channels int, s *windowScores, values tensor) bool {
	places, width := s.queries.sides[1], s.queries.sides[2]
	for i := range s.queries.v {
		group, place, k := i/width/places, i/width%places, i%width
		row, column := m.Pixel(group/heads, place)
		at := float64((row*m.MapW+column)*channels + group%heads*width + k)
		third := float64(channels / 3)
		if s.queries.v[i] != at || s.keys.v[i] != at+third || values.v[i] != at+2*third {
			return false
		}
	}
	return true
}

// biasesOf are the biases that were added to scores, by distance. Scores of places that do not attend to each other
// have one that hides them.
func biasesOf(m *model.Windows, heads int, add []float64) ([]float32, bool) {
	table := make([]float32, m.Distances()*heads)
	known := make([]bool, len(table))
	var apart [][2]float64 // what was added, and its distance and head
	places := m.Len()
	for i, x := range add {
		group, q, k := i/places/places, i/places%places, i%places
		window, head := group/heads, group%heads
		at := m.Distance(q, k)*heads + head
		switch {
		case m.Part(window, q) != m.Part(window, k):
			apart = append(apart, [2]float64{x, float64(at)})
		case !known[at]:
			table[at], known[at] = float32(x), true
		case table[at] != float32(x):
			return nil, false
		}
	}
	for _, v := range apart {
		if at := int(v[1]); !known[at] || !(v[0] <= float64(table[at])-model.ApartScore+1e-3) {
			return nil, false
		}
	}
	return table, add != nil || m.ShiftH+m.ShiftW == 0
}

// mixedOut reads the product behind an attention, and adds the layer.
func (r *importer) mixedOut(n *step, v, weights value) bool {
	a := *v.arranged
	p := a.proj
	a.proj, a.part = nil, nil
	order, ok := a.pixels()
	c := a.channels
	list := weights.array.floats32()
	if !ok || !slices.IsSorted(order) || list == nil || !slices.Equal(weights.array.sides, []int{c, c}) {
		return false
	}
	weight := r.values(n, len(list))
	if weight == nil {
		return true
	}
	turn(weight, list, c, c)
	bias, last, ok := r.bias(n, c)
	if !ok {
		return true
	}
	if (bias == nil) != (p.bias == nil) {
		return false
	}
	in := r.b.Out(v.node)
	node := r.b.WindowAttention(p.name, v.node, *p.mixed)
	g, err := r.b.Graph()
	if err != nil {
		return true // run tells it
	}
	heads := &g.Nodes[node-1]
	if m := g.Nodes[heads.Inputs[0]].Out; !slices.Equal(m[1:], []int{a.height, a.width}) || heads.Shift != p.mixed.Shift ||
		in[0] != c {
		return false
	}
	r.keep(p.name+".qkv", p.weight, p.bias)
	r.keep(p.name+".heads", p.table, nil)
	if p.logs != nil {
		r.weights[p.name+".heads.scale"] = p.logs
	}
	r.keep(p.name+".out", weight, bias)
	r.setArranged(last, node, &a)
	return true
}
