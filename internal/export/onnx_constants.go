package export

import (
	"math"
	"slices"
)

// mostMoved is how many values of a constant, or places of an image, a node may compute or bring into another order.
const mostMoved = 1 << 23

// tensor is values in an order: of a constant, or places of values in a layer's output. NaN stands for the number of
// rows, which a shape may have, or a multiple of it.
type tensor struct {
	sides []int
	v     []float64
}

// size is the product of sides, -1 where it is too large or a side is none.
func size(sides []int) int {
	n := 1
	for _, side := range sides {
		if side < 0 || side > mostMoved {
			return -1
		}
		if n *= side; n > mostMoved {
			return -1
		}
	}
	return n
}

// each makes a tensor of values by their places.
func each(sides []int, f func(at []int) float64) (tensor, bool) {
	n := size(sides)
	if n < 0 {
		return tensor{}, false
	}
	out, at := tensor{sides, make([]float64, n)}, make([]int, len(sides))
	for i := range out.v {
		out.v[i] = f(at)
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < sides[k] {
				break
			}
			at[k] = 0
		}
	}
	return out, true
}

// place is where a value lies; sides of 1 stand for any.
func (t *tensor) place(at []int) int {
	i := 0
	for k, side := range t.sides {
		i *= side
		if side > 1 {
			i += at[k+len(at)-len(t.sides)]
		}
	}
	return i
}

// read makes a tensor of a constant that is not large.
func (v *value) read() (t tensor, ok bool) {
	a := v.array
	if a == nil || a.length() > mostMoved || v.isNode {
		return t, false
	}
	t.sides = a.sides
	if list := a.floats32(); list != nil {
		for _, x := range list {
			t.v = append(t.v, float64(x))
		}
		return t, true
	}
	for _, x := range a.integers() {
		if k := rowsIn(x); k > 0 {
			t.v = append(t.v, ofRows(k))
		} else {
			t.v = append(t.v, float64(x))
		}
	}
	return t, len(t.v) == a.length()
}

// ofRows is the NaN that stands for k times the number of rows. Its lowest bits have k; moves keep them.
func ofRows(k int64) float64 {
	return math.Float64frombits(math.Float64bits(math.NaN())&^(2*mostRows-1) | uint64(k))
}

// whole is a number as an integer; the largest ones stand for the end of an axis.
func whole(x float64) int64 {
	switch k := int64(math.Float64bits(x) & (2*mostRows - 1)); {
	case math.IsNaN(x) && k > 0: // float32 has no such bits
		return manyRows(k)
	case !(x > -1<<62):
		return math.MinInt64 + 1
	case x > 1<<62:
		return math.MaxInt64
	default:
		return int64(x)
	}
}

// give says that a node gives a constant.
func (r *importer) give(n *step, t tensor, floats bool) bool {
	if len(t.v) > r.folds {
		r.fault(n, "it computes %d values; disdel computes fewer of constants", len(t.v))
		return true
	}
	r.folds -= len(t.v)
	a := &array{name: label(n), kind: int64s, sides: slices.Clone(t.sides), ints: []int64{}}
	if floats {
		a.kind, a.ints, a.float = float32s, nil, make([]float32, len(t.v))
	}
	for i, x := range t.v {
		if floats {
			a.float[i] = float32(x)
		} else {
			a.ints = append(a.ints, whole(x))
		}
	}
	r.set(n, constant(a))
	return true
}

// ofTwo computes with two numbers.
var ofTwo = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b }, "Sub": func(a, b float64) float64 { return a - b },
	"Mul": func(a, b float64) float64 { return a * b }, "Min": math.Min, "Max": math.Max,
	"Equal": func(a, b float64) float64 {
		switch {
		case a == b:
			return 1
		case (math.IsNaN(a) || math.IsNaN(b)) && !(a < 0 || b < 0): // rows are at least 0
			return math.NaN()
		}
		return 0
	},
	"And":            func(a, b float64) float64 { return truth(a != 0 && b != 0) },
	"GreaterOrEqual": func(a, b float64) float64 { return truth(a >= b) },
	"Less":           func(a, b float64) float64 { return truth(a < b) },
	"LessOrEqual":    func(a, b float64) float64 { return truth(a <= b) },
	"Greater":        func(a, b float64) float64 { return truth(a > b) },
	"Div":            func(a, b float64) float64 { return a / b },
	"Pow":            math.Pow,
	"Mod":            func(a, b float64) float64 { return a - b*math.Floor(a/b) },
}

// timesRows multiplies where one number at most depends on the number of rows. It gives -Inf where no shape has the
// product.
func timesRows(a, b float64) float64 {
	if math.IsNaN(b) {
		a, b = b, a
	}
	k := whole(b)
	if math.IsNaN(a) {
		k = rowsIn(whole(a)) * max(0, min(k, mostRows+1))
	}
	switch {
	case !math.IsNaN(a):
		return a * b
	case math.IsNaN(b) || k < 1 || k > mostRows:
		return math.Inf(-1)
	}
	return ofRows(k)
}

// truth is 1 for true.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

var ofOne = map[string]func(x float64) float64{
	"Neg":  func(x float64) float64 { return -x },
	"Relu": func(x float64) float64 { return max(x, 0) }, "Exp": math.Exp, "Cast": func(x float64) float64 { return x },
	"Sqrt": math.Sqrt, "Tanh": math.Tanh, "Erf": math.Erf, "Sin": math.Sin, "Cos": math.Cos,
	"Reciprocal": func(x float64) float64 { return 1 / x },
	"Sigmoid":    func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"Not":        func(x float64) float64 { return 1 - math.Min(math.Abs(x), 1) },
}

// fold computes a node of constants. It is false where the node has other inputs, or is none that disdel computes here.
func (r *importer) fold(n *step) bool {
	switch {
	case r.hasMask(n) || r.countsRows(n):
		return r.foldBatches(n)
	case n.kind == "Shape" && slices.Equal(n.in, []string{tokenTypes}) && len(n.out) > 0:
		if a := r.arrays[tokenTypes]; a != nil && len(a.sides) == 2 { // it is the same for all rows
			r.setShape(n, []int64{rowCount, int64(a.sides[1])})
			return true
		}
	}
	computed := slices.ContainsFunc(n.in, func(name string) bool {
		a := r.at[name].array
		return a != nil && a.computed
	})
	if r.movesWeights(n) {
		r.markComputed(n, computed)
		return true
	}
	var in []tensor
	floats, rows := false, false
	computed = computed || ofTwo[n.kind] != nil || ofOne[n.kind] != nil && n.kind != "Cast" ||
		n.kind == "MatMul" || n.kind == "ScatterND"
	for i, name := range n.in {
		v, ok := r.in(n, i)
		t, known := v.read()
		if name == "" {
			known = true
		} else if !ok || !known {
			return false
		}
		in = append(in, t)
		floats = floats || v.array != nil && v.array.kind == float32s
		rows = rows || slices.ContainsFunc(v.whole, func(x int64) bool { return rowsIn(x) > 0 })
	}
	if len(in) == 0 || len(n.out) == 0 || in[0].sides == nil && in[0].v == nil {
		return false
	}
	out, ok := tensor{}, false
	switch f, g := ofTwo[n.kind], ofOne[n.kind]; {
	case f != nil && len(in) == 2:
		if n.kind == "Div" && !floats {
			f = func(a, b float64) float64 { return math.Trunc(a / b) }
		}
		multiple := rows && n.kind == "Mul"
		if multiple {
			f = timesRows
		} else if rows && n.kind != "Equal" || (n.kind == "Div" || n.kind == "Mod") && slices.Contains(in[1].v, 0) {
			r.fault(n, "it computes with the number of rows, or divides by 0")
			return true
		}
		floats = floats && !slices.Contains(noFloats, n.kind)
		out, ok = together(in, func(v []float64) float64 { return f(v[0], v[1]) })
		if multiple && slices.Contains(out.v, math.Inf(-1)) {
			r.fault(n, "it multiplies the number of rows by itself, or by a number that is no side")
			return true
		}
	case g != nil && len(in) == 1:
		if n.kind == "Cast" {
			if to := n.whole("to", 0); to == float32s {
				floats = true
			} else if floats {
				g = math.Trunc
				floats = false
			}
		}
		out, ok = together(in, func(v []float64) float64 { return g(v[0]) })
	default:
		out, floats, ok = r.foldOther(n, in, floats)
	}
	if !ok || !r.give(n, out, floats) {
		return false
	}
	r.markComputed(n, computed && floats)
	return true
}

// markComputed says of the constant that a node gives that it is computed of weights.
func (r *importer) markComputed(n *step, computed bool) {
	if a := r.at[n.out[0]].array; a != nil {
		a.computed = computed
	}
}

// movesWeights joins or cuts weights along their first axis, as the gates of a recurrence. However large they are, this
// costs at most one copy.
func (r *importer) movesWeights(n *step) bool {
	switch n.kind {
	case "Concat":
		return r.joinedArrays(n)
	case "Slice":
		return r.cutArray(n)
	case "Unsqueeze":
		return r.firstAxis(n)
	default:
		return false
	}
}

// together computes with values at the same place; sides of 1 stand for any.
func together(in []tensor, f func(v []float64) float64) (tensor, bool) {
	var sides []int
	for _, t := range in {
		for len(sides) < len(t.sides) {
			sides = append([]int{1}, sides...)
		}
	}
	for _, t := range in {
		for k, side := range t.sides {
			if at := &sides[k+len(sides)-len(t.sides)]; *at == 1 {
				*at = side
			} else if side != 1 && side != *at {
				return tensor{}, false
			}
		}
	}
	v := make([]float64, len(in))
	return each(sides, func(at []int) float64 {
		for i := range in {
			v[i] = in[i].v[in[i].place(at)]
		}
		return f(v)
	})
}

func (r *importer) foldOther(n *step, in []tensor, floats bool) (out tensor, isFloat, ok bool) {
	switch n.kind {
	case "Where":
		if len(in) == 3 {
			v, _ := r.in(n, 1)
			out, ok = together(in, func(v []float64) float64 {
				switch {
				case math.IsNaN(v[0]):
					return v[0]
				case v[0] != 0:
					return v[1]
				}
				return v[2]
			})
			return out, v.array.kind == float32s, ok
		}
	case "Clip":
		low, high := n.number("min", math.Inf(-1)), n.number("max", math.Inf(1))
		for i, to := range []*float64{&low, &high} {
			if len(in) > i+1 && len(in[i+1].v) == 1 {
				*to = in[i+1].v[0]
			}
		}
		out, ok = together(in[:1], func(v []float64) float64 { return max(low, min(v[0], high)) })
		return out, floats, ok
	case "CumSum":
		if len(in) == 2 && len(in[1].v) == 1 && n.whole("exclusive", 0) == 0 && n.whole("reverse", 0) == 0 {
			v, _ := r.in(n, 0)
			out, ok = in[0].counted(int(whole(in[1].v[0])))
			return out, v.array.kind == float32s, ok
		}
	case "ReduceSum":
		var axes []int64
		if axes = n.options["axes"].list; len(in) > 1 {
			axes = r.list(n, 1, "")
		}
		out, ok = in[0].summed(axes, n.whole("keepdims", 1) != 0)
		v, _ := r.in(n, 0)
		return out, v.array.kind == float32s, ok
	case "Trilu":
		k := 0.0
		if len(in) > 1 && len(in[1].v) == 1 {
			k = in[1].v[0]
		}
		upper, last := n.whole("upper", 1) != 0, len(in[0].sides)-1
		if last < 1 {
			return out, floats, false
		}
		out, ok = each(in[0].sides, func(at []int) float64 {
			if d := float64(at[last] - at[last-1]); upper && d < k || !upper && d > k {
				return 0
			}
			return in[0].v[in[0].place(at)]
		})
		return out, floats, ok
	case "Shape":
		from, to := n.someSides(len(in[0].sides))
		out.sides = []int{to - from}
		for _, side := range in[0].sides[from:to] {
			out.v = append(out.v, float64(side))
		}
		return out, false, len(out.v) > 0
	case "Range":
		if len(in) == 3 && len(in[0].v)*len(in[1].v)*len(in[2].v) == 1 && in[2].v[0] > 0 &&
			in[0].v[0] <= in[1].v[0] && !floats {
			for x := in[0].v[0]; x < in[1].v[0] && len(out.v) < mostFolded; x += in[2].v[0] {
				out.v = append(out.v, x)
			}
			out.sides = []int{len(out.v)}
			return out, false, true
		}
	case "ConstantOfShape":
		fill := n.options["value"].array
		v := value{array: fill}
		x, known := v.read()
		if fill == nil {
			x, known = tensor{v: []float64{0}}, true
		}
		if !known || len(x.v) != 1 {
			return out, false, false
		}
		out, ok = each(sidesOfOneRow(in[0]), func([]int) float64 { return x.v[0] })
		return out, fill == nil || fill.kind == float32s, ok
	case "Expand":
		if len(in) == 2 {
			ones, fits := each(sidesOfOneRow(in[1]), func([]int) float64 { return 0 })
			if !fits {
				return out, floats, false
			}
			out, ok = together([]tensor{in[0], ones}, func(v []float64) float64 { return v[0] })
			return out, floats, ok
		}
	case "Flatten":
		if axis := int(n.whole("axis", 1)); len(in) == 1 && axis >= 0 && axis <= len(in[0].sides) {
			out = tensor{[]int{size(in[0].sides[:axis]), size(in[0].sides[axis:])}, in[0].v}
			return out, floats, len(out.v) > 0
		}
	case "GatherND":
		if len(in) == 2 && n.whole("batch_dims", 0) == 0 {
			v, _ := r.in(n, 0)
			out, ok = gathered(in[0], in[1])
			return out, v.array.kind == float32s, ok
		}
	case "GatherElements":
		if axis := int(n.whole("axis", 0)); len(in) == 2 && axis >= 0 && axis < len(in[0].sides) {
			v, _ := r.in(n, 0)
			out, ok = in[0].chosen(in[1], axis)
			return out, v.array.kind == float32s, ok
		}
	case "ScatterND":
		v, _ := r.in(n, 0)
		out, ok = scatter(in)
		return out, v.array.kind == float32s, ok
	case "MatMul":
		if len(in) == 2 && len(in[0].sides) >= 2 && len(in[1].sides) == 2 {
			last := len(in[0].sides) - 1
			inner, columns := in[1].sides[0], in[1].sides[1]
			if in[0].sides[last] != inner || inner > 4096 {
				return out, true, false
			}
			sides := append(slices.Clone(in[0].sides[:last]), columns)
			out, ok = each(sides, func(at []int) (sum float64) {
				from := 0
				for k, side := range in[0].sides[:last] {
					from = from*side + at[k]
				}
				for k := range inner {
					sum += in[0].v[from*inner+k] * in[1].v[k*columns+at[last]]
				}
				return sum
			})
			return out, true, ok
		}
	default:
		v, _ := r.in(n, 0)
		out, ok = r.moved(n, in[0], func(i int) (tensor, bool) {
			if i >= len(in) {
				return tensor{}, false
			}
			return in[i], true
		})
		return out, v.array != nil && v.array.kind == float32s, ok
	}
	return out, floats, false
}

// sidesOfOneRow are the sides that a tensor has. A constant is the same for all rows, so that a side of rows is 1.
func sidesOfOneRow(t tensor) (list []int) {
	for _, x := range t.v {
		side := whole(x)
		if math.IsNaN(x) {
			side = rowsIn(side)
		}
		list = append(list, int(max(-1, min(side, mostMoved+1))))
	}
	return list
}

// gathered takes the values of a tensor whose places are the last axis of another one.
func gathered(t, at tensor) (out tensor, ok bool) {
	last := len(at.sides) - 1
	if last < 0 || at.sides[last] != len(t.sides) || len(t.sides) == 0 || len(at.v) == 0 {
		return out, false
	}
	out.sides = at.sides[:last]
	for rest := at.v; len(rest) > 0; rest = rest[len(t.sides):] {
		place := 0
		for k, side := range t.sides {
			p := whole(rest[k])
			if p < 0 {
				p += int64(side)
			}
			if p < 0 || p >= int64(side) {
				return out, false
			}
			place = place*side + int(p)
		}
		out.v = append(out.v, t.v[place])
	}
	return out, true
}

// scatter writes the third tensor over the first one, where the second one says.
func scatter(in []tensor) (out tensor, ok bool) {
	if len(in) != 3 || len(in[1].sides) == 0 {
		return out, false
	}
	x, at, updates := in[0], in[1], in[2]
	depth := at.sides[len(at.sides)-1]
	if depth < 1 || depth > len(x.sides) || size(x.sides[depth:]) < 0 {
		return out, false
	}
	row := size(x.sides[depth:])
	if len(updates.v) != len(at.v)/depth*row {
		return out, false
	}
	out = tensor{x.sides, slices.Clone(x.v)}
	for i := range len(at.v) / depth {
		to := 0
		for k := range depth {
			p := int(max(-1<<40, min(whole(at.v[i*depth+k]), 1<<40)))
			if p < 0 {
				p += x.sides[k]
			}
			if p < 0 || p >= x.sides[k] {
				return out, false
			}
			to = to*x.sides[k] + p
		}
		copy(out.v[to*row:][:row], updates.v[i*row:][:row])
	}
	return out, true
}
