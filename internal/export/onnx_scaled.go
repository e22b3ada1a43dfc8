package export

import (
	"math"
	"slices"
	"strings"

	"github.com/disdel/disdel/model"
)

// mostScaled is how long a vector may be that is scaled: its layer has a matrix.
const mostScaled = 1024

// clampedUpTo is the largest bound of a Clip that a shift reaches without a loss of digits.
const clampedUpTo = 64

// constantOf is a node's constant of float32 for each channel of a layer: one number, or one for each. i is the input
// that is the layer. ok is false for other nodes of two inputs.
func (r *importer) constantOf(n *step) (list []float32, i int, ok bool) {
	if len(n.in) != 2 {
		return nil, 0, false
	}
	if r.isConstant(n, 0) {
		i = 1
	}
	v, _ := r.in(n, i)
	other, _ := r.in(n, 1-i)
	list = other.array.floats32()
	if list == nil || !v.isNode || v.means > 0 || v.headed() || v.arranged != nil ||
		v.view != asLayer && v.view != channelsLast && v.view != positionsFirst {
		return nil, 0, false
	}
	out := r.sides(v.node)
	sides := other.array.sides
	if len(sides) > len(out)+1 {
		return nil, 0, false
	}
	if len(list) == 1 {
		return list, i, true
	}
	behind := len(out) - 1
	if v.view != asLayer {
		behind = 0
	}
	if len(list) != out[0] || len(sides) <= behind {
		return nil, 0, false
	}
	last := len(sides) - 1 - behind
	for k, side := range sides {
		if side != 1 && k != last {
			return nil, 0, false
		}
	}
	return list, i, true
}

// scaled reads x * c, x / c, x + c, x - c and c - x as a layer that scales and shifts channels. It is false for other
// nodes.
func (r *importer) scaled(n *step) bool {
	list, i, ok := r.constantOf(n)
	list = r.byLayer(list)
	if !ok || n.kind == "Div" && (i == 1 || slices.Contains(list, 0)) {
		return false
	}
	v, _ := r.in(n, i)
	channels := r.b.Out(v.node)[0]
	weight, bias := make([]float64, channels), make([]float64, channels)
	for k := range channels {
		c := float64(list[min(k, len(list)-1)])
		switch weight[k] = 1; n.kind {
		case "Mul":
			weight[k] = c
		case "Div":
			weight[k] = 1 / c
		case "Add":
			bias[k] = c
		default:
			bias[k] = -c
			if i == 1 {
				weight[k], bias[k] = -1, c
			}
		}
	}
	if node, ok := r.scale(n, n.in[i], v.node, weight, bias); ok {
		r.scales[node] = shift{r.scales[node].layer, n.out[0]}
		r.set(n, value{isNode: true, node: node, view: v.view})
	}
	return true
}

// shift is a layer that only scales and shifts, and the value that it gives; "": none that a node reads by itself.
type shift struct{ layer, gives string }

// scale is a layer that scales and shifts each channel. A layer that does so already, and whose value from only n
// reads, takes this over.
func (r *importer) scale(n *step, from string, x int, weight, bias []float64) (node int, ok bool) {
	channels := len(weight)
	if s := r.scales[x]; s.gives != "" && s.gives == from && r.only(from) == n {
		old, shift, stride := r.weights[s.layer+".weight"], r.weights[s.layer+".bias"], 1
		if len(old) > channels {
			stride = channels + 1
		}
		for k := range channels {
			old[k*stride] = float32(weight[k] * float64(old[k*stride]))
			shift[k] = float32(weight[k]*float64(shift[k]) + bias[k])
		}
		return x, true
	}
	stride, out := 1, r.b.Out(x)
	if len(out) == 1 {
		stride = channels + 1
	}
	if stride > 1 && channels > mostScaled {
		r.fault(n, "it scales or shifts a vector of %d values; disdel does that of up to %d, of images and of "+
			"sequences", channels, mostScaled)
		return 0, false
	}
	w, b := r.values(n, (channels-1)*stride+1), r.values(n, channels)
	if w == nil || b == nil {
		return 0, false
	}
	for k := range channels {
		w[k*stride], b[k] = float32(weight[k]), float32(bias[k])
	}
	name := r.name(n, "")
	r.keep(name, w, b)
	switch len(out) {
	case 1:
		node = r.b.Dense(name, x, channels)
	case 2:
		node = r.b.Conv1D(name, x, channels, model.Square(1, 1, 0), channels, true)
	default:
		node = r.b.Conv(name, x, channels, model.Square(1, 1, 0), channels, true)
	}
	r.scales[node] = shift{layer: name}
	return node, true
}

// clamp reads max(low, min(x, high)) as relu or relu6 between layers that shift, or scale and shift.
func (r *importer) clamp(n *step, low, high float64) {
	x, view, ok := r.seen(n, 0)
	if !ok {
		return
	}
	op, by, to := model.OpReLU6, 6/(high-low), low // relu6((x - to) by) / by + to
	switch {
	case high >= math.MaxFloat32:
		op, by = model.OpReLU, 1
	case low <= -math.MaxFloat32:
		op, by, to = model.OpReLU, -1, high
	}
	if !(low < high) || !(math.Abs(to) <= clampedUpTo) || !(math.Abs(by) >= 1.0/clampedUpTo && math.Abs(by) <= 1e4) {
		r.fault(n, "its bounds are %g and %g; disdel has bounds of up to %d that are not almost equal. Take relu6 or "+
			"tanh", low, high, clampedUpTo)
		return
	}
	every := func(v float64) []float64 { return slices.Repeat([]float64{v}, r.b.Out(x)[0]) }
	before, ok := r.scale(n, n.in[0], x, every(by), every(-to*by))
	if !ok {
		return
	}
	last := r.b.Same(r.name(n, ""), before, op)
	if last, ok = r.scale(n, "", last, every(1/by), every(to)); ok {
		r.set(n, value{isNode: true, node: last, view: view})
	}
}

// noteScales names the layers that only scale and shift.
func (r *importer) noteScales() {
	var names []string
	for _, s := range r.scales {
		names = append(names, s.layer)
	}
	if len(names) > 0 {
		slices.Sort(names)
		r.notes = append(r.notes, "layers that only scale, shift or choose as the file says; training changes "+
			"them, unless model.init.freeze names them: "+strings.Join(names, ","))
	}
}
