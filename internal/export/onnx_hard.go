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
	steps := []*step{n, r.only(n.out[0])}
	if steps[1] == nil || steps[1].kind != "Clip" {
		return false
	}
	if low, high, ok := r.bounds(steps[1]); !ok || low != 0 || high != 6 {
		return false
	}
	divided, multiplied := false, false
	for range 2 {
		next := r.only(steps[len(steps)-1].out[0])
		switch {
		case next == nil:
		case !divided && (next.kind == "Div" && r.scalar(next, 6) && !r.isConstant(next, 0) ||
			next.kind == "Mul" && r.scalar(next, 1.0/6)):
			divided = true
		case !multiplied && next.kind == "Mul" && slices.Contains(next.in, n.in[from]):
			multiplied = true
		default:
			next = nil
		}
		if next == nil {
			break
		}
		steps = append(steps, next)
	}
	if !divided {
		return false
	}
	x, view, ok := r.seen(n, from)
	if !ok {
		return false
	}
	op := model.OpHardSigmoid
	if multiplied {
		op = model.OpHardSwish
	}
	for _, s := range steps[1:] {
		s.done = true
	}
	r.set(steps[len(steps)-1], value{isNode: true, node: r.b.Same(r.name(n, ""), x, op), view: view})
	return true
}

// isConstant tells whether an input of a node is a constant.
func (r *importer) isConstant(n *step, i int) bool {
	v, _ := r.in(n, i)
	return v.array != nil || v.isList
}
