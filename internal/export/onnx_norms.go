package export

import (
	"slices"

	"github.com/disdel/disdel/model"
)

// rmsNormalization reads ONNX's own operator, of opset 23.
func (r *importer) rmsNormalization(n *step) {
	x, view, ok := r.seen(n, 0)
	if !ok {
		return
	}
	in, axis, eps := r.b.Out(x), n.whole("axis", -1), n.number("epsilon", 1e-5)
	if len(in) != 1 && view == asLayer || axis != -1 && axis != int64(len(in)) {
		r.fault(n, "its input is %v and axis is %d; disdel normalises channels that come last", []int(in), axis)
		return
	}
	weight, _, ok := r.floats(n, 1)
	switch named := n.in[min(1, len(n.in)-1)]; {
	case !ok:
	case len(weight) != in[0] || !(eps > 0):
		r.fault(n, "it has %d weights for %d values, and epsilon is %g; it must be above 0", len(weight), in[0], eps)
	default:
		if r.isFilled(named, 1) {
			named = ""
		}
		r.addRMSNorm(n, n, named, value{node: x, view: view}, eps, weight)
	}
}

// addRMSNorm adds the layer that the nodes from n to last compute of x.
func (r *importer) addRMSNorm(n, last *step, named string, x value, eps float64, weight []float32) {
	name := r.name(n, named)
	r.noteNorm(name, named)
	r.keep(name, r.byLayer(weight), nil)
	r.set(last, value{isNode: true, node: r.b.LayerNorm(name, x.node, model.OpRMSNorm, decimal(eps)), view: x.view})
}

// groupNormalization reads ONNX's own operator, of opset 18. Its scales and shifts are of channels, before opset 21 of
// groups.
func (r *importer) groupNormalization(n *step) {
	x, ok := r.from(n, 0)
	if !ok {
		return
	}
	groups, channels, eps := int(min(n.whole("num_groups", 0), 1<<20)), r.b.Out(x)[0], n.number("epsilon", 1e-5)
	if len(r.b.Out(x)) != 3 || groups < 1 || channels%groups != 0 || !(eps > 0) {
		r.fault(n, "it has %d groups of %v, and epsilon %g; disdel normalises groups of the channels of images", groups,
			[]int(r.b.Out(x)), eps)
		return
	}
	var of [2][]float32
	for i := range of {
		list, _, ok := r.floats(n, i+1)
		if !ok {
			return
		}
		if r.opset < 21 && len(list) == groups {
			list = repeated(list, channels/groups)
		}
		if len(list) != channels {
			r.fault(n, "its input %d has %d values for %d channels", i+1, len(list), channels)
			return
		}
		of[i] = list
	}
	r.addGroupNorm(n, n, n.in[1], x, groups, decimal(eps), of[0], of[1])
}

// repeated repeats each value of a list so many times.
func repeated(list []float32, times int) (out []float32) {
	for _, v := range list {
		out = append(out, slices.Repeat([]float32{v}, times)...)
	}
	return out
}
