package export

import (
	"math"
	"slices"
)

// hiddenScore names the constant that stands for scores that a mask of truth values hides.
const hiddenScore = "\x00hidden score"

// wholeAttention reads ONNX's Attention (opset 23): the products, the softmax and what hides scores in one node. Its
// input 0 has the queries, [rows heads positions width] or [rows positions channels].
func (r *importer) wholeAttention(n *step, v value, h *headed) bool {
	cached := slices.ContainsFunc(n.in[min(4, len(n.in)):], func(in string) bool { return in != "" })
	if cached || n.number("softcap", 0) != 0 {
		return false
	}
	var more [2]*headed
	for i := range more {
		other, ok := r.in(n, i+1)
		if !ok || other.heads == nil || other.node != v.node {
			return false
		}
		more[i] = other.heads.clone()
	}
	keys, values, joined := more[0], more[1], len(h.axes) == 3
	if joined && !(h.splitHeads(n.whole("q_num_heads", 0)) && keys.splitHeads(n.whole("kv_num_heads", 0)) &&
		values.splitHeads(n.whole("kv_num_heads", 0))) {
		return false
	}
	if len(h.axes) != 4 || len(keys.axes) != 4 || len(values.axes) != 4 {
		return false
	}
	if queries, with := h.count(), keys.count(); with != queries && keys.spread == 0 {
		if queries%with != 0 || !keys.spreadAt(1, queries/with) || !values.spreadAt(1, queries/with) {
			return false
		}
	}
	keys.axes[2], keys.axes[3] = keys.axes[3], keys.axes[2]
	usual := 1 / math.Sqrt(float64(h.channels/h.count()))
	if !h.times(keys) || !r.hideByNode(n, h) {
		return false
	}
	h.factor *= n.number("scale", usual)
	if h.at = softened; !h.times(values) {
		return false
	}
	if joined {
		h.axes[1], h.axes[2] = h.axes[2], slices.Concat(h.axes[1], h.axes[3])
		h.axes = h.axes[:3]
	}
	return true
}

// hideByNode reads what an Attention hides: the positions behind a position, and what its mask says.
func (r *importer) hideByNode(n *step, h *headed) bool {
	h.causal = n.whole("is_causal", 0) != 0
	mask, ok := r.in(n, 3)
	if !ok {
		return true
	}
	by, at := &step{kind: "Add", in: []string{n.in[0], n.in[3]}}, 0
	kind := mask.array
	if mask.batches != nil {
		kind = mask.batches[0]
	}
	if kind != nil && kind.kind != float32s { // truth values
		r.at[hiddenScore] = constant(&array{kind: float32s, sides: []int{}, float: []float32{-math.MaxFloat32}})
		by, at = &step{kind: "Where", in: []string{n.in[3], n.in[0], hiddenScore}}, 1
	}
	return r.hide(by, at, h)
}

// clone is a copy whose axes may be changed.
func (h *headed) clone() *headed {
	out := *h
	out.axes = slices.Clone(h.axes)
	return &out
}

// splitHeads makes [rows heads positions width] of [rows positions channels].
func (h *headed) splitHeads(heads int64) bool {
	if heads < 1 || len(h.axes) != 3 || !h.reshape([]int64{0, 0, heads, -1}, true) {
		return false
	}
	h.axes[1], h.axes[2] = h.axes[2], h.axes[1]
	return true
}

// expand reads an Expand that repeats the heads of keys or values along a new axis, for the queries that share them.
func (h *headed) expand(to []int64) bool {
	if len(to) != len(h.axes) {
		return false
	}
	sides := h.sides()
	for i, side := range to {
		switch {
		case side == 1 || side == -1 || side == sides[i] || side == h.length(h.axes[i]):
		case len(h.axes[i]) > 0 || i == 0 || !h.spreadAt(i, int(side)):
			return false
		}
	}
	return true
}

// spreadAt has each head of keys or values several times, one after the other. An axis of heads, or one behind it, gets
// the copies.
func (h *headed) spreadAt(axis, times int) bool {
	if h.at != projected || h.spread > 0 || h.shared > 0 || times < 2 || times > mostFolded {
		return false
	}
	if heads := h.axis(headPart); h.heads > 1 && !slices.Equal(h.axes[axis], heads) &&
		!slices.Equal(h.axes[axis-1], heads) {
		return false
	}
	h.spread = times
	h.axes[axis] = append(slices.Clone(h.axes[axis]), sharedPart)
	return true
}

// splitFor splits the heads of queries into those of keys that were repeated, and their copies.
func (h *headed) splitFor(keys *headed) {
	heads := max(keys.heads, 1)
	if keys.spread == 0 || h.shared > 0 || h.heads != heads*keys.spread {
		return
	}
	h.heads, h.shared = heads, keys.spread
	for i, axis := range h.axes {
		if at := slices.Index(axis, headPart); at >= 0 {
			h.axes[i] = slices.Concat(axis[:at], h.axis(headPart, sharedPart), axis[at+1:])
		}
	}
}
