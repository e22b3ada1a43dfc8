package export

import (
	"math"
	"slices"

	"github.com/disdel/disdel/model"
)

// curves are activations that exporters write in steps of their own.
var curves = map[model.Op]func(x float64) float64{
	model.OpGELU: func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
	model.OpGELUTanh: func(x float64) float64 {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	},
	model.OpHardSigmoid: hardSigmoidOf,
	model.OpHardSwish:   func(x float64) float64 { return x * hardSigmoidOf(x) },
}

func hardSigmoidOf(x float64) float64 { return max(0, min(x/6+0.5, 1)) }

// curvePoints are where an activation in steps is computed to find out which one it is. The far ones find bounds.
var curvePoints = []float64{
	-1e6, -1e4, -100, -20, -9, -5, -3.5, -3, -2.5, -1.5, -1, -0.5, -0.1, 0, 0.1, 0.3, 1, 1.7, 2.5, 3, 3.5, 5, 9, 20,
	100, 1e4, 1e6,
}

// mostCurveSteps is how many nodes an activation may have.
const mostCurveSteps = 12

// curve reads an activation whose first node is n, whatever its steps are: nodes that compute with one layer's values
// and numbers. It computes them for some values, and compares. It is false where they are no activation.
func (r *importer) curve(n *step) bool {
	from := slices.IndexFunc(n.in, func(name string) bool { return r.at[name].isNode })
	if from < 0 {
		return false
	}
	at, steps := map[string][]float64{n.in[from]: curvePoints}, []*step(nil)
	var found model.Op
	length := 0
	for next := n; next != nil && len(steps) < mostCurveSteps; next = r.nextOfCurve(n.in[from], steps, at) {
		v := r.onCurve(next, at)
		if v == nil {
			break
		}
		at[next.out[0]], steps = v, append(steps, next)
		if op := curveOf(v); op != model.OpUnknown && r.closed(steps) {
			found, length = op, len(steps)
		}
	}
	return length > 0 && r.activation(n, from, found, steps[:length])
}

// curveOf is the activation that has these values.
func curveOf(v []float64) model.Op {
	for op, f := range curves {
		off := 0.0
		for i, x := range curvePoints {
			off = max(off, math.Abs(v[i]-f(x))/max(1, math.Abs(x)))
		}
		if off <= 1e-6 { // false for NaN
			return op
		}
	}
	return model.OpUnknown
}

// nextOfCurve is a node that computes with what was computed already.
func (r *importer) nextOfCurve(x string, steps []*step, at map[string][]float64) *step {
	for _, name := range append([]string{x}, outputsOf(steps)...) {
		for _, u := range r.users[name] {
			if !slices.Contains(steps, u) && r.onCurve(u, at) != nil {
				return u
			}
		}
	}
	return nil
}

func outputsOf(steps []*step) (list []string) {
	for _, s := range steps {
		list = append(list, s.out[0])
	}
	return list
}

// closed tells whether only the last one of the steps gives what other nodes take.
func (r *importer) closed(steps []*step) bool {
	for _, s := range steps[:len(steps)-1] {
		if s.out[0] == r.outputs[0].name || slices.ContainsFunc(r.users[s.out[0]], func(u *step) bool {
			return !slices.Contains(steps, u)
		}) {
			return false
		}
	}
	return true
}

// onCurve is what a node makes of numbers and of values that were computed; nil: it has other inputs.
func (r *importer) onCurve(n *step, at map[string][]float64) []float64 {
	f, g := ofTwo[n.kind], ofOne[n.kind]
	if n.kind == "Clip" {
		if low, high, ok := r.bounds(n); ok {
			g = func(x float64) float64 { return max(low, min(x, high)) }
		}
	}
	count := 1
	if f != nil {
		count = 2
	}
	if len(n.out) != 1 || f == nil && g == nil || n.kind == "Cast" || n.kind != "Clip" && len(n.in) != count {
		return nil
	}
	var in [2][]float64
	for i, name := range n.in[:count] {
		if in[i] = at[name]; in[i] != nil {
			continue
		}
		list := r.at[name].array.floats32()
		if len(list) != 1 || len(r.at[name].array.sides) > 1 {
			return nil
		}
		in[i] = slices.Repeat([]float64{float64(list[0])}, len(curvePoints))
	}
	out := make([]float64, len(curvePoints))
	for i := range out {
		if f != nil {
			out[i] = f(in[0][i], in[1][i])
		} else {
			out[i] = g(in[0][i])
		}
	}
	return out
}

// chain finds the nodes behind n, each the only user of the one before it, that pass the tests. It is nil if one fails.
func (r *importer) chain(n *step, tests ...func(*step) bool) (list []*step) {
	for _, test := range tests {
		if n = r.only(n.out[0]); n == nil || len(n.out) != 1 || !test(n) {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// activation adds the layer that n and the steps behind it compute of n's input i.
func (r *importer) activation(n *step, i int, op model.Op, steps []*step) bool {
	x, view, ok := r.seen(n, i)
	if !ok {
		return false
	}
	for _, s := range steps {
		s.done = true
	}
	r.set(steps[len(steps)-1], value{isNode: true, node: r.b.Same(r.name(n, ""), x, op), view: view})
	return true
}

// hardSigmoid reads clip(alpha x + 1/2, 0, 1). disdel's has an alpha of 1/6: for another one the weights of the layer
// in front of it are multiplied.
func (r *importer) hardSigmoid(n *step) {
	alpha, beta := n.number("alpha", 0.2), n.number("beta", 0.5)
	if !near(beta, 0.5) || !near(alpha, 1.0/6) && !r.multiplied(n, 6*alpha) {
		r.fault(n, "alpha is %g and beta %g; disdel has 1/6 and 0.5, and another alpha above 0 right behind a "+
			"convolution or a dense layer", alpha, beta)
		return
	}
	gated(model.OpHardSigmoid, model.OpHardSwish)(r, n)
}

// multiplied multiplies the weights of the layer that only this node reads. It is false where there is no such layer.
func (r *importer) multiplied(n *step, by float64) bool {
	v, _ := r.in(n, 0)
	g, err := r.b.Graph()
	if err != nil || by <= 0 || !v.isNode || v.view != asLayer || r.only(n.in[0]) != n {
		return false
	}
	layer := g.Nodes[v.node]
	if layer.Op != model.OpConv && layer.Op != model.OpDense {
		return false
	}
	for _, part := range []string{".weight", ".bias"} {
		have, ok := r.weights[layer.Name+part]
		if !ok {
			continue
		}
		list := r.values(n, len(have)) // what r.weights has may be a view of the file
		if list == nil {
			return false
		}
		for i, w := range have {
			list[i] = float32(by * float64(w))
		}
		r.weights[layer.Name+part] = list
	}
	r.steeper = append(r.steeper, layer.Name)
	return true
}

// isConstant tells whether an input of a node is a constant.
func (r *importer) isConstant(n *step, i int) bool {
	v, _ := r.in(n, i)
	return v.array != nil
}
