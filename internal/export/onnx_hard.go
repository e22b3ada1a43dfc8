package export

import (
	"slices"

	"github.com/disdel/disdel/model"
)

// hardSteps reads hardSigmoid and hardSwish in steps, as Keras and PaddlePaddle write them: x + 3, Clip to 0 and 6, and
// a sixth of that. For hardSwish it is also multiplied with x, before or after. It is false where n begins neither.
func (r *importer) hardSteps(n *step) bool {
	if len(n.in) != 2 || !r.scalar(n, 3) {
		return false
	}
	from := 0
	if r.isConstant(n, 0) {
		from = 1
	}
	clips := func(s *step) bool {
		low, high, ok := r.bounds(s)
		return s.kind == "Clip" && ok && low == 0 && high == 6
	}
	divides := func(s *step) bool {
		return s.kind == "Div" && r.scalar(s, 6) && !r.isConstant(s, 0) || s.kind == "Mul" && r.scalar(s, 1.0/6)
	}
	multiplies := func(s *step) bool { return s.kind == "Mul" && slices.Contains(s.in, n.in[from]) }
	op, steps := model.OpHardSwish, r.chain(n, clips, divides, multiplies)
	if steps == nil {
		steps = r.chain(n, clips, multiplies, divides)
	}
	if steps == nil {
		op, steps = model.OpHardSigmoid, r.chain(n, clips, divides)
	}
	if steps == nil {
		return false
	}
	return r.activation(n, from, op, steps)
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
