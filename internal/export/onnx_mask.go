package export

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/disdel/disdel/model"
)

// Encoders of text take a mask beside the tokens: 1 for a token, 0 for padding. A network of disdel takes no mask, but
// hides token 0 from all attentions where its embedding is padded. So a file is read where its mask does the same. To
// know that, what the file computes of the mask is computed of batches of rows whose masks are known: the first one
// hides nothing, and the others hide different positions, so that each position is told from all others.

// tokenMask and tokenTypes are inputs that a file may have beside the tokens.
const tokenMask, tokenTypes = "attention_mask", "token_type_ids"

// isHidden tells whether a mask hides a position. Mask 0 hides none.
func isHidden(mask, position int) bool { return mask > 0 && (position+1)>>(mask-1)&1 == 1 }

// takeBeside takes inputs beside the tokens away. There is one text, so that all tokens have type 0.
func (s *source) takeBeside(list []end) error {
	in := &s.inputs[0]
	for _, e := range list {
		if len(in.sides) != 2 || in.kind == float32s {
			return unfit("the input %.80q goes with rows of tokens, and %.80q with the sides %v is none of integers; "+
				"disdel knows padding by its token, 0", e.name, in.name, in.sides)
		}
		if in.sides[1] == 0 {
			return nil // begin says what is wrong with the tokens
		}
		if len(e.sides) != 2 || e.sides[1] != 0 && e.sides[1] != in.sides[1] || slices.Max(in.sides) > mostFolded {
			return unfit("the input %.80q has the sides %v, and the tokens have %v; disdel reads it for up to %d "+
				"rows and tokens", e.name, e.sides, in.sides, mostFolded)
		}
		if e.name == tokenMask {
			s.mask = &e
			s.notes = append(s.notes, "the input attention_mask is left out: token 0 is taken for padding, "+
				"and no attention sees it")
			continue
		}
		s.arrays[e.name] = &array{
			name: e.name, kind: int64s, sides: []int{1, in.sides[1]}, ints: make([]int64, in.sides[1]),
		}
		s.notes = append(s.notes, "the input token_type_ids is left out: all tokens have type 0")
	}
	return nil
}

// batch is how many rows each batch has.
func (r *importer) batch() int {
	switch {
	case r.rows > 0:
		return int(r.rows)
	case r.inputs[0].sides[1] == 2: // a side of rows is told from others
		return 3
	}
	return 2
}

// masks is how many masks there are. A file without a mask may count rows all the same.
func (r *importer) masks() int {
	if r.mask == nil {
		return 1
	}
	return bits.Len(uint(r.inputs[0].sides[1])) + 1
}

// batches is how many batches have all masks.
func (r *importer) batches() int { return (r.masks() + r.batch() - 1) / r.batch() }

// beginMask gives the mask its values.
func (r *importer) beginMask() {
	if r.mask == nil {
		return
	}
	span, rows, v := r.inputs[0].sides[1], r.batch(), value{}
	for b := range r.batches() {
		a := &array{name: r.mask.name, kind: int64s, sides: []int{rows, span}}
		for i := range rows * span {
			seen := int64(1)
			if isHidden((b*rows+i/span)%r.masks(), i%span) {
				seen = 0
			}
			a.ints = append(a.ints, seen)
		}
		if r.mask.kind == float32s {
			a.kind, a.ints, a.float = float32s, nil, ofWhole(a.ints)
		}
		v.batches = append(v.batches, a)
	}
	r.at[r.mask.name] = v
}

func ofWhole(list []int64) (out []float32) {
	for _, x := range list {
		out = append(out, float32(x))
	}
	return out
}

// hasMask tells whether a node takes what is computed of the mask.
func (r *importer) hasMask(n *step) bool {
	return slices.ContainsFunc(n.in, func(name string) bool { return r.at[name].batches != nil })
}

// countsRows tells whether a node counts the rows of a batch.
func (r *importer) countsRows(n *step) bool {
	if n.kind != "Range" || len(r.inputs) == 0 || len(r.inputs[0].sides) != 2 {
		return false
	}
	v, _ := r.in(n, 1)
	return len(v.whole) == 1 && rowsIn(v.whole[0]) > 0
}

// foldBatches computes a node of each batch. It is false where the node has other inputs than constants.
func (r *importer) foldBatches(n *step) bool {
	in := map[string]value{}
	for i, name := range n.in {
		if v, ok := r.in(n, i); ok {
			in[name] = v
		}
		if v := in[name]; name != "" && v.array == nil && v.batches == nil {
			return false
		}
	}
	first := in[n.in[0]]
	if n.kind == "Shape" && first.batches != nil {
		var list []int64
		for _, side := range first.batches[0].sides {
			list = append(list, int64(side))
		}
		if len(list) > 0 && list[0] == int64(r.batch()) {
			list[0] = rowCount
		}
		r.setShape(n, list)
		return true
	}
	if n.kind == "Expand" && r.isSpread(n, first) { // a side of 1 stands for any there
		r.set(n, first)
		return true
	}
	var out value
	for i := range r.batches() {
		for name, v := range in {
			r.at[name] = r.ofBatch(n, v, i)
		}
		if !r.fold(n) {
			break
		}
		out.batches = append(out.batches, r.at[n.out[0]].array)
	}
	maps.Copy(r.at, in)
	if len(out.batches) < r.batches() {
		delete(r.at, n.out[0])
		return false
	}
	r.set(n, out)
	return true
}

// isSpread tells whether all nodes that take what an Expand gives, of as many sides, compute with single values.
func (r *importer) isSpread(n *step, v value) bool {
	to, _ := r.in(n, 1)
	single := []string{"Where", "Cast"}
	return v.batches != nil && len(to.whole) == len(v.batches[0].sides) &&
		!slices.ContainsFunc(r.users[n.out[0]], func(u *step) bool { return !slices.Contains(single, u.kind) })
}

// ofBatch is a constant with the number of rows of a batch.
func (r *importer) ofBatch(n *step, v value, i int) value {
	if v.batches != nil {
		return constant(v.batches[i])
	}
	joins := n.kind == "Concat" || n.kind == "GatherND"
	if joins && len(v.array.sides) > 1 && v.array.sides[0] == 1 && v.array.kind != float32s {
		a := *v.array // what stands for each row
		a.sides = append([]int{r.batch()}, a.sides[1:]...)
		a.data, a.ints = nil, slices.Repeat(a.integers(), r.batch())
		return constant(&a)
	}
	if !slices.ContainsFunc(v.whole, func(x int64) bool { return rowsIn(x) > 0 }) {
		return v
	}
	a := &array{name: v.array.name, kind: int64s, sides: v.array.sides}
	for _, x := range v.whole {
		if k := rowsIn(x); k > 0 {
			x = k * int64(r.batch())
		}
		a.ints = append(a.ints, x)
	}
	return constant(a)
}

// readsMask refuses a node that takes the mask, unless it hides scores.
func (r *importer) readsMask(n *step) bool {
	if !r.hasMask(n) || r.scoresOf(n) >= 0 || n.kind == "Attention" {
		return false
	}
	if !r.meansTokens(n) {
		r.fault(n, "it computes with attention_mask; disdel reads a mask only where it hides scores of an attention, "+
			"and in the mean of the tokens that are no padding")
	}
	return true
}

// meansTokens reads the product of a sequence with the mask, and the quotient of its sum and the number of tokens: the
// mean of the positions that are no padding.
func (r *importer) meansTokens(n *step) bool {
	i := slices.IndexFunc(n.in, func(name string) bool { return r.at[name].isNode })
	at := slices.IndexFunc(n.in, func(name string) bool { return r.at[name].batches != nil })
	if i < 0 || at < 0 {
		return false
	}
	v, _ := r.in(n, i)
	mask, _ := r.in(n, at)
	span, places := r.inputs[0].sides[1], n.kind == "Mul"
	if n.kind == "Where" && at == 0 && len(n.in) == 3 {
		other, _ := r.in(n, 3-i)
		list := other.array.floats32()
		places = len(list) == 1 && list[0] == 0
	}
	switch {
	case v.headed() || len(r.b.Out(v.node)) != 2 || r.b.Out(v.node)[1] != span:
		return false
	case places && v.view == channelsLast:
		v.view = withoutPadding
		r.set(n, v)
		return r.isOfMask(mask, []int{r.batch(), span, r.b.Out(v.node)[0]}, func(mask, position int) float64 {
			return truth(isHidden(mask, position) == (i == 2)) // the other value of a Where
		})
	case n.kind == "Div" && i == 0 && v.view == tokensSum:
		node := r.b.TakePosition(r.name(n, ""), v.node, model.TakeMean)
		r.means = append(r.means, node)
		r.layer(n, node)
		return r.isOfMask(mask, []int{r.batch(), r.b.Out(v.node)[0]}, func(mask, _ int) (tokens float64) {
			for position := range span {
				tokens += truth(!isHidden(mask, position))
			}
			return tokens
		})
	}
	return false
}

// isOfMask tells whether a value has these sides, of which the last one may be 1, and what f says of the masks and
// positions.
func (r *importer) isOfMask(v value, sides []int, f func(mask, position int) float64) bool {
	for i := range r.batches() {
		a := constant(v.batches[i])
		t, ok := a.read()
		if last := len(sides) - 1; !ok || len(t.sides) != len(sides) || !slices.Equal(t.sides[:last], sides[:last]) ||
			t.sides[last] != 1 && t.sides[last] != sides[last] {
			return false
		}
		each := len(t.v) / sides[0]
		for k, x := range t.v {
			want := f((i*sides[0]+k/each)%r.masks(), k%each/t.sides[len(sides)-1])
			if x != want && want+x > 1e-6 { // a row may have no tokens
				return false
			}
		}
	}
	return true
}

// reduceSum reads the sum of the tokens of each row that are no padding.
func (r *importer) reduceSum(n *step) {
	v, _ := r.in(n, 0)
	if axes := r.list(n, 1, "axes"); v.view != withoutPadding || n.whole("keepdims", 1) != 0 ||
		!slices.Equal(axes, []int64{1}) && !slices.Equal(axes, []int64{-2}) {
		loose("the mean of the tokens that are no padding")(r, n)
		return
	}
	v.view = tokensSum
	r.set(n, v)
}

// counted are the sums of the values up to each place along an axis.
func (t tensor) counted(axis int) (tensor, bool) {
	if axis < 0 {
		axis += len(t.sides)
	}
	if axis < 0 || axis >= len(t.sides) || len(t.v) == 0 {
		return t, false
	}
	out, step := tensor{t.sides, slices.Clone(t.v)}, size(t.sides[axis+1:])
	for i := range out.v {
		if i/step%t.sides[axis] > 0 {
			out.v[i] += out.v[i-step]
		}
	}
	return out, true
}

// summed is the sum along one axis.
func (t tensor) summed(axes []int64, keep bool) (tensor, bool) {
	if len(axes) != 1 {
		return t, false
	}
	axis := int(axes[0])
	if axis < 0 {
		axis += len(t.sides)
	}
	if axis < 0 || axis >= len(t.sides) || t.sides[axis] == 1 { // a side of 1 of a mask may stand for others
		return t, false
	}
	sides, from := slices.Clone(t.sides), make([]int, len(t.sides))
	sides[axis] = 1
	out, ok := each(sides, func(at []int) (sum float64) {
		copy(from, at)
		for from[axis] = range t.sides[axis] {
			sum += t.v[t.place(from)]
		}
		return sum
	})
	if !keep {
		out.sides = slices.Delete(out.sides, axis, axis+1)
	}
	return out, ok
}

// scoresOf says which input of a node that hides scores they are; -1: the node is none.
func (r *importer) scoresOf(n *step) int {
	if n.kind != "Add" && n.kind != "Where" {
		return -1
	}
	return slices.IndexFunc(n.in, func(name string) bool { h := r.at[name].heads; return h != nil && h.at == scores })
}

// hide reads what hides scores: a sum with 0 where a position attends to another one and -10000 or less elsewhere, or a
// choice between such a number and the scores. Each position may attend only to those before it, or to no padding.
func (r *importer) hide(n *step, at int, h *headed) bool {
	var in []value
	for i := range n.in {
		v, _ := r.in(n, i)
		if i == at {
			v = constant(&array{kind: float32s, sides: []int{}, float: []float32{0}})
		}
		in = append(in, v)
	}
	if n.kind == "Add" && len(in) != 2 || n.kind == "Where" && (len(in) != 3 || at == 0) {
		return false
	}
	batches, batch, padded, causal := 1, 1, r.hasMask(n), false
	if padded {
		batches, batch = r.batches(), r.batch()
	}
	for i := range batches {
		t, ok := added(in, i)
		if !ok || !h.isOfScores(t, batch) {
			return false
		}
		rows := []tensor{t}
		if batch > 1 {
			rows = t.split(batch)
			if rows == nil || len(t.sides) < len(h.axes) || !slices.Equal(h.axes[0], []part{rowsPart}) {
				return false
			}
		}
		for row, t := range rows {
			squares, mask := t.squares(), 0
			if padded {
				mask = (i*batch + row) % r.masks()
			}
			if first := squares[0]; i+row == 0 && h.span > 1 {
				causal = first.v[first.place([]int{0, 1})] <= -1e4
			}
			hidden := func(query, key int) bool { return isHidden(mask, key) || causal && key > query }
			if slices.ContainsFunc(squares, func(t tensor) bool { return !t.hides(h.span, hidden) }) {
				return false
			}
		}
	}
	h.padded, h.causal = h.padded || padded && r.mask != nil, h.causal || causal
	return true
}

// added is what a node adds to scores.
func added(in []value, batch int) (tensor, bool) {
	var list []tensor
	for _, v := range in {
		if v.batches != nil {
			v = constant(v.batches[batch])
		}
		t, ok := v.read()
		if !ok {
			return t, false
		}
		list = append(list, t)
	}
	return together(list, func(v []float64) float64 {
		switch {
		case len(v) == 2:
			return v[0] + v[1]
		case math.IsNaN(v[0]): // it depends on the number of rows
			return v[0]
		case v[0] != 0:
			return v[1]
		}
		return v[2]
	})
}

// isOfScores tells whether a tensor has its sides as scores of a batch have, or 1.
func (h *headed) isOfScores(t tensor, batch int) bool {
	last, missing := len(h.axes)-1, len(h.axes)-len(t.sides)
	if last < 1 || missing < 0 || len(t.v) == 0 || !slices.Equal(h.axes[last], h.axis(keysPart)) ||
		!slices.Equal(h.axes[last-1], h.axis(positionsPart)) {
		return false
	}
	for i, side := range t.sides {
		axis := h.axes[missing+i]
		if side != 1 && int64(side) != h.length(axis) && (side != batch || !slices.Equal(axis, []part{rowsPart})) {
			return false
		}
	}
	return true
}

// split are the parts of a tensor along its first axis; none where it does not have so many.
func (t tensor) split(count int) (list []tensor) {
	if len(t.sides) == 0 || t.sides[0] != count {
		return nil
	}
	each := len(t.v) / count
	for i := range count {
		list = append(list, tensor{t.sides[1:], t.v[i*each:][:each]})
	}
	return list
}

// squares are the parts of a tensor that have its last two axes only.
func (t tensor) squares() (list []tensor) {
	sides := slices.Concat([]int{1, 1}, t.sides)
	sides = sides[len(sides)-2:]
	each := sides[0] * sides[1]
	for from := 0; from < len(t.v); from += each {
		list = append(list, tensor{sides, t.v[from:][:each]})
	}
	return list
}

// hides tells whether a square of queries and keys hides these keys of each query, and no others.
func (t tensor) hides(span int, hidden func(query, key int) bool) bool {
	for query := range span {
		for key := range span {
			v, is := t.v[t.place([]int{query, key})], hidden(query, key)
			if is != (v <= -1e4) || !is && v != 0 {
				return false
			}
		}
	}
	return true
}

// checkMask refuses layers that leave padding out where the file does not.
func (r *importer) checkMask() {
	g, err := r.b.Graph()
	if r.mask == nil || err != nil {
		return
	}
	for i, n := range g.Nodes {
		if n.Masked && n.Op != model.OpAttention && !slices.Contains(r.means, i) {
			r.fault(&step{name: n.Name, kind: n.Op.String()}, "it reads all positions in the file, padding too; "+
				"with an attention_mask disdel leaves padding out here")
		}
	}
}
