package export

import "slices"

// noFloats are nodes that give no float32, whatever they take.
var noFloats = []string{
	"Shape", "Size", "ArgMax", "ArgMin", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "IsNaN", "And",
}

// simplify takes nodes away that give what they take, as Keras writes them between all others.
func (s *source) simplify() {
	in, floats, same, makers := s.inputs[0], map[string]bool{}, map[string]string{}, map[string]*step{}
	floats[in.name] = in.kind == float32s
	truths := map[string]int64{}
	if in.kind != float32s {
		truths[in.name] = aToken
	}
	for name, a := range s.arrays {
		floats[name] = a.kind == float32s
	}
	for _, n := range s.steps {
		for i, name := range n.in {
			if to, ok := same[name]; ok {
				n.in[i] = to
			}
		}
		if len(n.in) == 0 && len(n.out) > 0 {
			makers[n.out[0]] = n
		}
		if len(n.in) == 0 || len(n.out) == 0 {
			continue
		}
		if passed := s.passedToken(n, truths, makers); passed != "" {
			same[n.out[0]], n.done = passed, true
			continue
		}
		from, to := n.in[0], n.whole("to", 0)
		is := floats[from] && !slices.Contains(noFloats, n.kind)
		switch n.kind {
		case "Identity":
			n.done = true
		case "Cast":
			is = to == float32s
			n.done = is && floats[from] || from == in.name && in.kind != float32s && (to == int32s || to == int64s)
		case "Where":
			test := makers[from]
			from = n.in[len(n.in)-1]
			if test == nil || len(test.in) == 0 || test.in[0] != from && test.kind != "Greater" {
				break
			}
			switch soft := makers[from]; test.kind {
			case "Less": // tokens below 0 would count from the end, and there are none
				n.done = from == in.name && in.kind != float32s && len(test.in) == 2 && s.isZero(test.in[1], makers)
			case "IsNaN": // PyTorch's, of rows that attend to nothing; there are none
				n.done = soft != nil && soft.kind == "Softmax"
			case "Greater": // PyTorch's softplus, which is its input there
				n.done = soft != nil && len(n.in) == 3 && s.isSoftplus(soft, test, n.in[1], makers)
			}
		}
		if n.done = n.done && len(n.out) == 1 && n.out[0] != s.outputs[0].name; n.done {
			same[n.out[0]] = from
			continue
		}
		for _, name := range n.out {
			floats[name], makers[name] = is, n
		}
	}
	s.steps = slices.DeleteFunc(s.steps, func(n *step) bool { return n.done })
}

// isSoftplus tells whether a node gives softplus of x, or softplus(b x) / b, and a test those values where that is x.
func (s *source) isSoftplus(n, test *step, x string, makers map[string]*step) bool {
	if n.kind == "Div" && len(n.in) == 2 {
		soft := makers[n.in[0]]
		if soft == nil || len(soft.in) != 1 {
			return false
		}
		times := makers[soft.in[0]]
		return times != nil && times.kind == "Mul" && slices.Equal(times.in, []string{x, n.in[1]}) &&
			soft.kind == "Softplus" && s.isAbove(test, soft.in[0], makers)
	}
	return n.kind == "Softplus" && slices.Equal(n.in, []string{x}) && s.isAbove(test, x, makers)
}

// isAbove tells whether a node compares a value with a number from which on softplus is its input.
func (s *source) isAbove(n *step, value string, makers map[string]*step) bool {
	const least = 17 // e^-17 is less than half of the last digit of a float32 of 17
	if len(n.in) != 2 || n.in[0] != value {
		return false
	}
	a := s.arrays[n.in[1]]
	if n := makers[n.in[1]]; n != nil && n.kind == "Constant" {
		a = n.options["value"].array
	}
	list := a.floats32()
	return len(list) == 1 && list[0] >= least
}

// aToken stands for a token among truth values.
const aToken = 2

// passedToken follows the answer to whether a token is below 0, which none is. TensorFlow asks it before embeddings.
// truths has what a file computes of it, 0 or 1. It returns the value that a sum or a product with it gives, if any.
func (s *source) passedToken(n *step, truths map[string]int64, makers map[string]*step) string {
	first, known := truths[n.in[0]]
	switch {
	case len(n.out) != 1 || n.out[0] == s.outputs[0].name:
	case n.kind == "Cast" && known:
		truths[n.out[0]] = first
	case n.kind == "Less" && first == aToken && len(n.in) == 2 && s.isZero(n.in[1], makers):
		truths[n.out[0]] = 0
	case n.kind == "Not" && known && first != aToken:
		truths[n.out[0]] = 1 - first
	case (n.kind == "Mul" || n.kind == "Add") && len(n.in) == 2:
		for i, name := range n.in {
			switch truth, ok := truths[name]; {
			case !ok || truth == aToken:
			case n.kind == "Mul" && truth == 0:
				truths[n.out[0]] = 0
				return ""
			case (n.kind == "Mul") == (truth == 1):
				return n.in[1-i]
			}
		}
	}
	return ""
}

// isZero tells whether a name is the constant 0.
func (s *source) isZero(name string, makers map[string]*step) bool {
	a := s.arrays[name]
	if n := makers[name]; n != nil && n.kind == "Constant" {
		a = n.options["value"].array
	}
	list, ok := a.numbers()
	number := a.floats32()
	return ok && len(list) == 1 && list[0] == 0 || len(number) == 1 && number[0] == 0
}
