package export

import (
	"slices"

	"github.com/disdel/disdel/model"
)

// beginImage reads an input of images. TensorFlow's files have channels last, and nothing but a Transpose or, of one
// channel, a Reshape that takes the input.
func (r *importer) beginImage(in end) (model.Shape, value) {
	shape, users := model.Shape(slices.Clone(in.sides[1:])), r.users[in.name]
	turned := model.Shape{shape[2], shape[0], shape[1]}
	turns := func(n *step) bool {
		return n.kind == "Transpose" && slices.Equal(n.options["perm"].list, []int64{0, 3, 1, 2})
	}
	reshapes := func(n *step) bool {
		to := r.list(n, 1, "")
		return n.kind == "Reshape" && shape[2] == 1 && len(n.out) == 1 && len(to) == 4 && n.in[0] == in.name &&
			(to[0] == -1 || to[0] == 0 || to[0] == r.rows) &&
			slices.Equal(to[1:], []int64{1, int64(shape[0]), int64(shape[1])})
	}
	var both func(n *step) bool // also behind nodes that take each value by itself, or put zeros around the image
	both = func(n *step) bool {
		if turns(n) || reshapes(n) {
			return true
		}
		each := slices.Contains([]string{"Mul", "Div", "Add", "Sub", "Pad"}, n.kind) && len(n.out) > 0
		return each && len(r.users[n.out[0]]) > 0 && !slices.ContainsFunc(r.users[n.out[0]],
			func(n *step) bool { return !turns(n) && !(n.kind != "Reshape" && both(n)) })
	}
	if len(users) == 0 || slices.ContainsFunc(users, func(n *step) bool { return !both(n) }) {
		return shape, value{isNode: true}
	}
	if shape[2] > 1 {
		r.notes = append(r.notes, "rows have their channels first here, where the file has them last")
	}
	for _, n := range users {
		if reshapes(n) {
			r.at[n.out[0]], n.done = value{isNode: true}, true
		}
	}
	return turned, value{isNode: true, view: channelsLast}
}

// isFlatLast tells whether a shape makes a list of an image or a sequence whose channels come last.
func (r *importer) isFlatLast(v value, to []int64) bool {
	if !v.isNode || v.view != channelsLast || v.means > 0 || v.headed() || v.arranged != nil ||
		len(r.b.Out(v.node)) < 2 || len(to) != 2 {
		return false
	}
	rows := to[0] == rowCount || to[0] == 0 || r.rows > 0 && to[0] == r.rows
	all := int64(r.b.Out(v.node).Len())
	return to[1] == all && (rows || to[0] == -1) || to[1] == -1 && rows
}

// flatLast makes a list of an image or a sequence whose channels come last. A dense layer takes it by other weights,
// and other layers behind one that orders it.
func (r *importer) flatLast(n *step, v value) bool {
	if !r.isFlatLast(v, []int64{0, -1}) {
		return false
	}
	out := r.b.Out(v.node)
	v = value{isNode: true, node: r.b.Flatten(r.name(n, ""), v.node), view: flattenedLast}
	if out[0] == 1 || out[0] == out.Len() {
		v.view = asLayer
	}
	if v.view != asLayer && !r.isMultipliedNext(n.out[0]) && out.Len() <= mostScaled {
		node, ok := r.chosen(n, v.node, lastOrder(out))
		if v = (value{isNode: true, node: node}); !ok {
			return true
		}
	}
	r.set(n, v)
	return true
}

// isMultipliedNext tells whether nothing but dense layers takes a value.
func (r *importer) isMultipliedNext(name string) bool {
	users := r.users[name]
	return len(users) > 0 && !slices.ContainsFunc(users, func(n *step) bool {
		pass := n.kind == "Identity" || n.kind == "Dropout" || n.kind == "Cast"
		return !(n.kind == "Gemm" || n.kind == "MatMul" || pass && len(n.out) > 0 && r.isMultipliedNext(n.out[0]))
	})
}

// lastOrder says where the values of an output are in disdel, in the order of a file whose channels come last.
func lastOrder(out model.Shape) (list []int) {
	channels, pixels := out[0], out.Len()/out[0]
	for p := range pixels {
		for c := range channels {
			list = append(list, c*pixels+p)
		}
	}
	return list
}

// channelsBefore are the weights of a dense layer behind an image that the file flattens with its channels last.
func (r *importer) channelsBefore(n *step, weight []float32, x, units int) []float32 {
	g, err := r.b.Graph()
	out := r.values(n, len(weight))
	if err != nil || out == nil {
		return nil
	}
	shape := g.Nodes[g.Nodes[x].Inputs[0]].Out
	channels, pixels := shape[0], shape.Len()/shape[0]
	for u := range units {
		for c := range channels {
			for p := range pixels {
				out[(u*channels+c)*pixels+p] = weight[(u*pixels+p)*channels+c]
			}
		}
	}
	return out
}
