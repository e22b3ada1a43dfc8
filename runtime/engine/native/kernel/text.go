package kernel

import (
	"math"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Text is successive positions of one text, a row each (see plan.Image). First is the first of them.
type Text struct {
	Image
	Rows, First int
}

// row is the channels of a row.
func (s *Text) row(x []float32, r int) []float32 { return x[r*s.Row():][:s.C] }

// rows are this worker's rows.
func (s *Text) rows(w *Worker) (from, to int) { return w.share(s.Rows) }

// TextEmbed is Embed; tokens has one value a row.
func (w *Worker) TextEmbed(s Text, tokens []float32, table Table, y []float32) {
	from, to := s.rows(w)
	for r := from; r < to; r++ {
		values, stride := table.row(int(tokens[r]), s.C)
		for c, out := 0, s.row(y, r); c < s.C; c++ {
			out[c] = values[c*stride]
		}
	}
}

// TextPositions is AddPositions.
func (w *Worker) TextPositions(s Text, x, table, y []float32) {
	from, to := s.rows(w)
	for r := from; r < to; r++ {
		out, add := s.row(y, r), table[(s.First+r)*s.C:][:s.C]
		for c, v := range s.row(x, r) {
			out[c] = v + add[c]
		}
	}
}

// TextLayerNorm is LayerNorm; n gives the numbers and the weights.
func (w *Worker) TextLayerNorm(n *LayerNorm, s Text, x, y []float32) {
	from, to := s.rows(w)
	for r := from; r < to; r++ {
		in, out := s.row(x, r), s.row(y, r)
		var mean, squares float64
		for _, v := range in {
			mean += float64(v)
		}
		if mean /= float64(s.C); !n.Centered {
			mean = 0
		}
		for _, v := range in {
			squares += (float64(v) - mean) * (float64(v) - mean)
		}
		inverse := 1 / sqrt(squares/float64(s.C)+n.Eps)
		for c, v := range in {
			out[c] = float32((float64(v)-mean)*inverse)*n.Gamma[c] + float32(at(n.Beta, c, 0))
		}
	}
}

// TextAttention is a causal Attention of some positions of a text to all positions up to theirs. Its Text has the
// channels of queries, keys and values.
type TextAttention struct {
	Text
	Heads, KVHeads, Width int
	Theta                 float64   // base of rotary angles, see model.Attention; 0: there are none
	Positions             int       // that the text may have
	Tokens                []float32 // of all positions; those of 0 are padding. nil: there is none
	Cache                 []float32 // keys and values of all positions, see plan.TextCacheLen, for each head of keys
	Scratch               []float32 // see plan.TextScratchLen
}

// textHead is what a worker computes at a time: a head of keys and values, and the heads of queries that share it.
type textHead struct {
	*TextAttention
	w               *Worker
	group           int
	keys, values    []float32 // of the cache
	queries         []float32 // [shared][rows][Width]
	scores, outputs []float32 // [rows][Padded(Positions)], [rows][Padded(Width)]
}

// TextAttention keeps the keys and values of x, and computes the outputs y. A row of y is out.Row() values.
func (w *Worker) TextAttention(a *TextAttention, x []float32, out Image, y []float32) {
	shared := a.Heads / a.KVHeads
	cache, room := plan.TextCacheLen(a.Width, a.Positions), plan.TextScratchLen(a.Width, shared, a.Positions)
	from, to := w.share(a.KVHeads)
	for g := from; g < to; g++ {
		h := textHead{TextAttention: a, w: w, group: g}
		h.keys, h.values = cut(a.Cache[g*cache:][:cache], plan.Padded(a.Positions)*a.Width)
		h.queries, h.scores = cut(a.Scratch[g*room:][:room], shared*a.Rows*a.Width)
		h.scores, h.outputs = cut(h.scores, a.Rows*plan.Padded(a.Positions))
		for r := range a.Rows {
			h.load(x, r, shared)
		}
		for k := range shared {
			h.attend(k, out, y, g*shared+k)
		}
	}
}

func cut(x []float32, at int) (before, after []float32) { return x[:at], x[at:] }

// load keeps the key and the value of a row, and scales its queries.
func (h *textHead) load(x []float32, r, shared int) {
	in, position := h.row(x, r), h.First+r
	key := in[(h.Heads+h.group)*h.Width:][:h.Width]
	queries := func(k int) []float32 { return h.queries[(k*h.Rows+r)*h.Width:][:h.Width] }
	scale := float32(1 / sqrt(float64(h.Width)))
	for k := range shared {
		for c, v := range in[(h.group*shared+k)*h.Width:][:h.Width] {
			queries(k)[c] = v * scale
		}
	}
	for c := 0; h.Theta > 0 && c < h.Width/2; c++ { // as attentionTask.turn
		sin, cos := math.Sincos(float64(position) / math.Pow(h.Theta, float64(c)/float64(h.Width/2)))
		turnPair(key, c, float32(sin), float32(cos))
		for k := range shared {
			turnPair(queries(k), c, float32(sin), float32(cos))
		}
	}
	for c, v := range key {
		h.keys[(position/lanes*h.Width+c)*lanes+position%lanes] = v
	}
	for c, v := range in[(h.Heads+h.KVHeads+h.group)*h.Width:][:h.Width] {
		h.values[(c/lanes*h.Positions+position)*lanes+c%lanes] = v
	}
}

// turnPair rotates channel c of a head with the one half a head behind it.
func turnPair(x []float32, c int, sin, cos float32) {
	a, b := x[c], x[c+len(x)/2]
	x[c], x[c+len(x)/2] = a*cos-b*sin, a*sin+b*cos
}

// attend computes the outputs of the k-th head of queries that shares the keys.
func (h *textHead) attend(k int, out Image, y []float32, head int) {
	end, row, wide := h.First+h.Rows, plan.Padded(h.Positions), plan.Padded(h.Width)
	h.w.rowsTimes(h.Rows, h.Width, end, h.queries[k*h.Rows*h.Width:], h.Width, h.keys, h.scores, row)
	for r := range h.Rows {
		h.soften(h.scores[r*row:][:plan.Padded(end)], h.First+r+1)
	}
	for b := 0; b < wide; b += lanes {
		h.w.rowsTimes(h.Rows, end, lanes, h.scores, row, h.values[b*h.Positions:], h.outputs[b:], wide)
	}
	for r := range h.Rows {
		copy(y[r*out.Row()+head*h.Width:][:h.Width], h.outputs[r*wide:])
	}
}

// soften turns scores into shares of a sum of 1, those of the first seen positions but for padding, and 0 elsewhere.
func (h *textHead) soften(scores []float32, seen int) {
	none := float32(math.Inf(-1))
	top := none
	for k, v := range scores {
		switch {
		case k >= seen || h.Tokens != nil && h.Tokens[k] == 0:
			scores[k] = none
		case v > top || v != v:
			top = v
		}
	}
	if top == none {
		clear(scores)
		return
	}
	less, sums, sum := &h.w.soft[0], &h.w.soft[1], float32(0)
	for l := range less {
		less[l], sums[l] = top, 0
	}
	h.w.softmaxRows(scores, scores, less, sums, len(scores)/lanes, lanes)
	for _, v := range sums {
		sum += v
	}
	for k := range scores {
		scores[k] /= sum
	}
}

// rowsTimes writes y = x W for some rows of x; W is [units/16][inner][16]. xRow and yRow are the values from one row to
// the next; units are whole vectors in y.
func (w *Worker) rowsTimes(rows, inner, units int, x []float32, xRow int, weights, y []float32, yRow int) {
	c := plan.Dense(inner, units, rows)
	c.In.Depth = xRow
	l := rowsProduct{
		c: &c, out: Image{C: units, H: 1, W: 1, Lanes: rows, Depth: yRow}, x: x, weights: weights, y: y, k1: c.Blocks(),
	}
	w.patches(&l, 0, rows, 0, 1)
}
