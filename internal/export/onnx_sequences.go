package export

import (
	"slices"
	"strings"

	"github.com/disdel/disdel/model"
)

// positions reads the sum of a sequence and a constant for each position.
func (r *importer) positions(n *step) bool {
	for i := range min(2, len(n.in)) {
		v, _ := r.in(n, i)
		if !v.isSequence(r) || len(n.in) != 2 {
			continue
		}
		other, _ := r.in(n, 1-i)
		out := r.b.Out(v.node)
		list, sides := other.array.floats32(), []int{out[1], out[0]}
		if t, ok := other.read(); ok && list != nil && len(t.sides) == 3 && t.sides[0] > 1 {
			if row, same := r.oneRow(t); same {
				other = constant(&array{kind: float32s, sides: row.sides, float: list[:len(row.v)]})
				list = other.array.float
			}
		}
		if v.view == asLayer {
			sides = out
		}
		if list == nil || !slices.Equal(other.array.sides, append([]int{1}, sides...)) &&
			(out[1] == 1 || !slices.Equal(other.array.sides, sides)) {
			return false
		}
		name, fixed := r.name(n, n.in[1-i]+".weight"), false
		if v.view == asLayer {
			turned := r.values(n, len(list))
			if turned == nil {
				return true
			}
			turn(turned, list, out[0], out[1])
			fixed, list = slices.Equal(list, sines(out[0], out[1])), turned
		}
		if !fixed {
			r.keep(name, list, nil)
		}
		r.set(n, value{isNode: true, node: r.b.Positions(name, v.node, fixed), view: v.view})
		return true
	}
	return false
}

// classToken reads constants that a file puts before the positions.
func (r *importer) classToken(n *step) bool {
	last := len(n.in) - 1
	v, _ := r.in(n, last)
	if last < 1 || !v.isSequence(r) {
		return false
	}
	axis, channels := 1, r.b.Out(v.node)[0]
	if v.view == asLayer {
		axis = 2
	}
	if n.whole("axis", 0) != int64(axis) {
		return false
	}
	var tokens []tensor
	var names []string
	for i := range last {
		constant, _ := r.in(n, i)
		t, ok := constant.read()
		if !ok || constant.array.kind != float32s || len(t.sides) != 3 || t.sides[3-axis] != channels ||
			t.sides[0] < 1 {
			return false
		}
		if t, ok = r.oneRow(t); !ok {
			return false
		}
		if axis == 2 {
			t, _ = t.turned([]int64{1, 0})
		}
		for _, token := range t.split(t.sides[0]) {
			tokens, names = append(tokens, token), append(names, constant.array.name)
		}
	}
	for i, token := range slices.Backward(tokens) {
		name := r.name(n, names[i]+".weight")
		list := r.values(n, channels)
		for k := range list {
			list[k] = float32(token.v[k])
		}
		r.keep(name, list, nil)
		v.node = r.b.ClassToken(name, v.node)
	}
	r.set(n, v)
	return true
}

// oneRow is what a tensor has for each row, where that is the same.
func (r *importer) oneRow(t tensor) (tensor, bool) {
	rows := t.split(t.sides[0])
	differ := func(row tensor) bool { return !slices.Equal(row.v, rows[0].v) }
	if len(rows) == 0 || len(rows) > 1 && (int64(len(rows)) != r.rows || slices.ContainsFunc(rows, differ)) {
		return t, false
	}
	return rows[0], true
}

// isSequence tells whether a value is a sequence, [rows channels positions] or [rows positions channels].
func (v *value) isSequence(r *importer) bool {
	return v.isNode && !v.headed() && v.means == 0 && (v.view == asLayer || v.view == channelsLast) &&
		len(r.b.Out(v.node)) == 2
}

// filled is a list of one number, or zeros that a recurrence starts from.
func (r *importer) filled(n *step) {
	length, ok := r.folded(n, 0)
	fill := n.options["value"].array
	list, number := fill.numbers()
	if v := fill.floats32(); ok && (fill == nil || len(v) == 1 && v[0] == 0) {
		r.set(n, value{zeros: true})
		return
	}
	if !ok || len(length) != 1 || length[0] < 0 || length[0] > mostFolded || !number || len(list) != 1 {
		r.fault(n, "disdel computes lists of up to %d equal integers here", mostFolded)
		return
	}
	r.setList(n, slices.Repeat(list, int(length[0])))
}

// expand passes on a constant that it leaves as large as it is, and zeros.
func (r *importer) expand(n *step) {
	v, _ := r.in(n, 0)
	to, ok := r.folded(n, 1)
	if !ok {
		return
	}
	list := v.array.floats32()
	larger := v.array == nil || slices.ContainsFunc(to, func(side int64) bool { return side != 1 && side != -1 })
	if v.array != nil && len(to) > 1 && len(to) == len(v.array.sides) && v.array.sides[0] == 1 && to[0] == rowCount {
		larger = !slices.EqualFunc(to[1:], v.array.sides[1:], func(side int64, has int) bool {
			return side == int64(has) || side == 1 || side == -1
		})
	}
	zeros := v.zeros || list != nil && !slices.ContainsFunc(list, func(x float32) bool { return x != 0 })
	switch {
	case !larger:
		r.set(n, v) // zeros, too: a class token starts as such
	case zeros:
		r.set(n, value{zeros: true})
	default:
		r.fault(n, "disdel reads this of zeros, and of a constant for one row")
	}
}

// state is what a recurrent layer knows at the end, of one direction.
type state struct {
	node     int  // its output for all positions
	backward bool // of the direction that ends at the first position
	both     bool // the layer has two directions
}

// gateOrder says where ONNX has the gates that disdel has first, second, and so on.
func gateOrder(op model.Op) []int {
	if op == model.OpLSTM {
		return []int{0, 2, 3, 1} // i f g o, of i o f c
	}
	return []int{1, 0, 2} // r z n, of z r h
}

// recurrent reads an LSTM or a GRU of one direction or two.
func recurrent(op model.Op) nodeReader {
	return func(r *importer, n *step) {
		v, _ := r.in(n, 0)
		units, both := n.whole("hidden_size", 0), n.options["direction"].text == "bidirectional"
		switch {
		case !v.isNode || v.view != positionsFirst || len(r.b.Out(v.node)) != 2:
			r.fault(n, "its input 0 is no sequence whose positions come first")
		case !r.plainRecurrence(n, op):
		case units < 1 || units > 1<<20:
			r.fault(n, "hidden_size is %d; it must be at least 1", units)
		default:
			r.addRecurrent(n, op, v.node, int(units), both)
		}
	}
}

// plainRecurrence tells whether a node computes what PyTorch's layer does, and says what is different.
func (r *importer) plainRecurrence(n *step, op model.Op) bool {
	usual := []string{"Sigmoid", "Tanh", "Tanh"}[:op.Gates()-1]
	names := n.options["activations"].texts
	for i, name := range names {
		if !strings.EqualFold(name, usual[i%len(usual)]) {
			r.fault(n, "its activations are %.20q; disdel has %q", names[:min(len(names), 6)], usual)
			return false
		}
	}
	unread := "" // the option or input that disdel does not have
	for _, option := range []string{"clip", "input_forget", "layout", "activation_alpha", "activation_beta"} {
		if o := n.options[option]; o.number != 0 || o.whole != 0 || o.numbers != nil {
			unread = option
		}
	}
	direction := n.options["direction"].text
	_, lengths := r.in(n, 4)
	_, peepholes := r.in(n, 7)
	switch {
	case unread != "":
		r.fault(n, "it has %s, which disdel does not", unread)
	case direction != "" && direction != "forward" && direction != "bidirectional":
		r.fault(n, "direction is %.20q; disdel reads forward and bidirectional", direction)
	case op == model.OpGRU && n.whole("linear_before_reset", 0) != 1:
		r.fault(n, "linear_before_reset is 0; disdel computes a GRU as PyTorch does, with 1")
	case lengths:
		r.fault(n, "it has a length for each row; disdel reads rows of one length")
	case peepholes:
		r.fault(n, "it has peepholes, which disdel does not")
	case !r.startsAtZero(n, 5) || op == model.OpLSTM && !r.startsAtZero(n, 6):
		r.fault(n, "its first state is no constant of zeros")
	default:
		return true
	}
	return false
}

// startsAtZero tells whether an input is left out, or zeros.
func (r *importer) startsAtZero(n *step, i int) bool {
	v, ok := r.in(n, i)
	list := v.array.floats32()
	return !ok || v.zeros || list != nil && !slices.ContainsFunc(list, func(x float32) bool { return x != 0 })
}

// addRecurrent adds the layer with its weights, and says what the node's outputs are.
func (r *importer) addRecurrent(n *step, op model.Op, x, units int, both bool) {
	directions, rows, inputs := 1, op.Gates()*units, r.b.Out(x)[0]
	if both {
		directions = 2
	}
	name := r.name(n, "")
	arrays := []struct {
		in, columns int
		to          []string // of what the columns are, or the halves of a list
	}{{1, inputs, []string{".input.weight"}}, {2, units, []string{".weight"}}, {3, 1, []string{".input.bias", ".bias"}}}
	for _, a := range arrays {
		sides := []int{directions, rows, a.columns}
		if a.in == 3 {
			sides = []int{directions, 2 * rows}
		}
		from := []float32(nil)
		if _, ok := r.in(n, a.in); !ok && a.in == 3 {
			r.notes = append(r.notes, "layer "+name+" has no bias in the file; training changes its own")
		} else {
			list, have, ok := r.floats(n, a.in)
			if !ok {
				return
			}
			if from = list; !slices.Equal(have, sides) {
				r.fault(n, "its input %d has the shape %v, and it needs %v", a.in, have, sides)
				return
			}
		}
		for i := range directions * len(a.to) {
			list := r.values(n, rows*a.columns)
			if list == nil {
				return
			}
			for to, gate := range gateOrder(op) {
				size := units * a.columns
				if from != nil {
					copy(list[to*size:(to+1)*size], from[i*len(list)+gate*size:])
				}
			}
			r.weights[name+[]string{"", ".reverse"}[i/len(a.to)]+a.to[i%len(a.to)]] = list
		}
	}
	add := r.b.Recurrent
	if both {
		add = r.b.Bidirectional
	}
	node := add(name, x, op, units)
	ends := []state{{node: node, both: both}, {node: node, both: both, backward: true}}
	r.ended(n, value{isNode: true, node: node, view: byDirection}, value{states: ends[:directions]})
}

// ended says what the outputs of a recurrence are: all positions, and the states at the end.
func (r *importer) ended(n *step, all, last value) {
	for i, name := range n.out {
		switch {
		case name == "":
		case i == 0:
			r.at[name] = all
		case i == 1:
			r.at[name] = last
		case len(r.users[name]) > 0:
			r.fault(n, "its third output is used; disdel gives the states of its units, and not its cells")
		}
	}
}

// oneDirection reads a Squeeze of what a recurrence of one direction gives.
func (r *importer) oneDirection(n *step) bool {
	v, _ := r.in(n, 0)
	axes := r.list(n, 1, "axes")
	switch {
	case v.view == byDirection && slices.Equal(axes, []int64{1}) && !r.hasDirections(v.node):
		v.view = positionsFirst
		r.set(n, v)
	case len(v.states) == 1 && !v.picked && slices.Equal(axes, []int64{0}):
		r.pick(n, v.states[0])
	default:
		return false
	}
	return true
}

// joinDirections reads the last step of joining the two directions of a recurrence.
func (r *importer) joinDirections(n *step, v value, sides []int64) {
	out := r.b.Out(v.node)
	rows := len(sides) == 3 && (sides[0] == 0 || sides[0] == int64(out[1])) &&
		(sides[1] == 0 || sides[1] == rowCount || sides[1] == -1 || r.rows > 0 && sides[1] == r.rows)
	if !rows || sides[2] != int64(out[0]) && (sides[2] != -1 || sides[1] == -1) {
		r.fault(n, "it makes another shape of two directions than [%d rows %d]", out[1], out[0])
		return
	}
	v.view = positionsFirst
	r.set(n, v)
}

// hasDirections tells whether a node joins the two directions of a recurrence.
func (r *importer) hasDirections(node int) bool {
	g, err := r.b.Graph()
	return err == nil && g.Nodes[node].Op == model.OpConcat
}

// pick gives one state of a recurrence, [rows units]. One of two directions needs the other one beside it.
func (r *importer) pick(n *step, s state) {
	if s.both {
		r.set(n, value{states: []state{s}, picked: true})
		return
	}
	r.layer(n, r.b.TakePosition(r.name(n, ""), s.node, model.TakeLast))
}

// joinsStates reads a Concat of states: of several layers, or of the two directions of one.
func (r *importer) joinsStates(n *step) bool {
	var list []state
	picked := true
	for i := range n.in {
		v, _ := r.in(n, i)
		if v.states == nil {
			return false
		}
		list, picked = append(list, v.states...), picked && v.picked
		if v.picked != picked || len(list) > mostFolded {
			return false
		}
	}
	axis := n.whole("axis", 0)
	switch {
	case !picked && axis == 0:
		r.set(n, value{states: list})
	case picked && (axis == 1 || axis == -1) && len(list) == 2 && list[0].node == list[1].node && !list[0].backward &&
		list[1].backward:
		r.layer(n, r.b.TakePosition(r.name(n, ""), list[0].node, model.TakeEnds))
	default:
		r.fault(n, "disdel joins the states of the two directions of one layer, the forward one first")
	}
	return true
}

// someStates reads a Gather or a Slice of the states of layers.
func (r *importer) someStates(n *step) bool {
	v, _ := r.in(n, 0)
	if v.states == nil || v.picked {
		return false
	}
	place := func(at int64) int64 {
		if at < 0 {
			at += int64(len(v.states))
		}
		return at
	}
	if n.kind == "Slice" {
		starts, ends, axes := r.list(n, 1, "starts"), r.list(n, 2, "ends"), r.list(n, 3, "axes")
		if len(starts) == 1 && len(ends) == 1 && slices.Equal(axes, []int64{0}) && len(r.list(n, 4, "")) == 0 {
			from, to := place(starts[0]), min(place(ends[0]), int64(len(v.states)))
			if from >= 0 && from < to {
				r.set(n, value{states: v.states[from:to]})
				return true
			}
		}
		return false
	}
	at, _ := r.in(n, 1)
	if n.whole("axis", 0) != 0 || len(at.whole) != 1 || at.array == nil || len(at.array.sides) != 0 ||
		place(at.whole[0]) < 0 || place(at.whole[0]) >= int64(len(v.states)) {
		return false
	}
	r.pick(n, v.states[place(at.whole[0])])
	return true
}

// embedding reads a Gather of rows of a constant, by the tokens of the input.
func (r *importer) embedding(n *step) bool {
	table, _ := r.in(n, 0)
	v, _ := r.in(n, 1)
	list := table.array.floats32()
	if list == nil || !v.isNode || v.view != asTokens && v.view != tokensTurned {
		return false
	}
	if sides := table.array.sides; len(sides) != 2 || n.whole("axis", 0) != 0 {
		r.fault(n, "it takes rows of %v; disdel has an embedding of a matrix, axis 0", sides)
		return true
	}
	name := r.name(n, n.in[0])
	r.keep(name, list, nil)
	order := channelsLast
	if v.view == tokensTurned {
		order = positionsFirst
	}
	node := r.b.Embedding(name, v.node, table.array.sides[0], table.array.sides[1], r.mask != nil)
	r.set(n, value{isNode: true, node: node, view: order})
	return true
}

// takesPosition reads a Gather of the first or the last position.
func (r *importer) takesPosition(n *step) bool {
	v, _ := r.in(n, 0)
	at, _ := r.in(n, 1)
	axis := map[view]int64{channelsLast: 1, positionsFirst: 0, asLayer: 2, firstHalf: 2, secondHalf: 2}
	if along, ok := axis[v.view]; !ok || !v.isNode || v.headed() || len(r.b.Out(v.node)) != 2 ||
		n.whole("axis", 0) != along || len(at.whole) != 1 || at.array == nil || len(at.array.sides) != 0 {
		return false
	}
	take, last := model.TakeFirst, int64(r.b.Out(v.node)[1])-1
	if v.view == firstHalf || v.view == secondHalf {
		end := state{node: v.node, both: true, backward: v.view == secondHalf}
		if at.whole[0] < 0 {
			at.whole = []int64{at.whole[0] + last + 1}
		}
		if r.set(n, value{states: []state{end}, picked: true}); at.whole[0] != 0 && end.backward ||
			at.whole[0] != last && !end.backward {
			r.fault(n, "disdel takes half of the channels only of the last position, and the others of the first")
		}
		return true
	}
	switch at.whole[0] {
	case 0:
	case -1, last:
		take = model.TakeLast
	default:
		r.fault(n, "it takes position %d of %d; disdel takes the first, the last or the mean", at.whole[0], last+1)
		return true
	}
	r.layer(n, r.b.TakePosition(r.name(n, ""), v.node, take))
	return true
}

// meanOfPositions reads a mean over the positions of a sequence.
func (r *importer) meanOfPositions(n *step, v value, axes []int64) bool {
	along, ok := map[view]int64{channelsLast: 1, positionsFirst: 0, asLayer: 2}[v.view]
	if !ok || !v.isNode || v.headed() || v.means > 0 || len(r.b.Out(v.node)) != 2 || len(axes) != 1 ||
		axes[0] != along && axes[0] != along-3 {
		return false
	}
	r.layer(n, r.b.TakePosition(r.name(n, ""), v.node, model.TakeMean))
	return true
}

// positionsLead tells whether a value that is the input goes to a recurrence without a turn of its axes.
func (r *importer) positionsLead(name string, depth int) bool {
	for _, u := range r.users[name] {
		switch u.kind {
		case "LSTM", "GRU":
			return u.in[0] == name
		case "Gather", "Cast", "Dropout", "Identity":
			if depth > 0 && len(u.out) > 0 && r.positionsLead(u.out[0], depth-1) {
				return true
			}
		}
	}
	return false
}

// beginSequence reads an input of tokens, [rows positions], or of sequences, [rows channels positions]; rows and
// positions may stand in the other order, and channels may come last.
func (r *importer) beginSequence(in end) (shape model.Shape, v value) {
	sides := slices.Clone(in.sides)
	lead := r.positionsLead(in.name, 8)
	if sides[0] == 0 && sides[1] > 0 {
		lead = false
	} else if sides[0] > 0 && sides[1] == 0 {
		lead = true
	}
	if v = (value{isNode: true, view: asTokens}); in.kind == float32s {
		v.view = channelsLast
	}
	if lead {
		sides[0], sides[1] = sides[1], sides[0]
		if v.view++; in.kind == float32s {
			v.view = positionsFirst
		}
	}
	r.rows = int64(sides[0])
	if in.kind != float32s {
		return sides[1:], v
	}
	if r.channelsSecond(in.name, 8) {
		r.oneWide, v.view = true, asLayer
		return model.Shape{sides[1], sides[2], 1}, v
	}
	return model.Shape{1, sides[1], sides[2]}, v
}

// channelsSecond tells whether a node that takes a value has its channels behind the rows. It looks behind activations.
func (r *importer) channelsSecond(name string, depth int) bool {
	return slices.ContainsFunc(r.users[name], func(u *step) bool {
		switch u.kind {
		case "Conv", "ConvTranspose", "BatchNormalization", "MaxPool", "AveragePool", "InstanceNormalization", "PRelu",
			"GlobalAveragePool", "GlobalMaxPool", "Resize", "Upsample":
			return u.in[0] == name
		case "Relu", "LeakyRelu", "Elu", "Clip", "Sigmoid", "Tanh", "Softplus", "HardSigmoid", "HardSwish", "Dropout",
			"Identity", "Pad", "Reshape": // the last before normalised groups
			return depth > 0 && len(u.out) > 0 && r.channelsSecond(u.out[0], depth-1)
		}
		return false
	})
}

// channelsFirst makes a sequence of rows of numbers whose channels come last: a convolution takes one after the other.
func (r *importer) channelsFirst() int {
	width, node := r.b.Out(0)[2], 0
	if width > 1 {
		name := r.name(&step{name: "channels"}, "")
		ones := make([]float32, width*width)
		for i := range width {
			ones[i*width+i] = 1
		}
		r.keep(name, ones, nil)
		r.notes = append(r.notes, "layer "+name+" is a convolution that only takes the channels of each position; "+
			"training changes its weights, unless model.init.freeze names it")
		node = r.b.Conv(name, 0, width, model.Window{Kernel: model.Sides{H: 1, W: width}}, 1, false)
	}
	return r.b.Sequence(r.name(&step{name: "sequence"}, ""), node)
}
