package kernel

import (
	"math"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Attention is softmax(Q K^T / sqrt(Width)) V for each head (Vaswani 2017). The channels of the sequence are the
// heads of queries, of keys and of values. Scores are computed block by block, and memory never has all of
// them (Dao 2022, FlashAttention). The way back computes them again, from a number that is kept for each query.
type Attention struct {
	Sequence
	Heads, KVHeads, Width int
	Causal                bool    // a position attends to none that are behind it
	Theta                 float64 // base of rotary angles, see model.Attention; 0: there are none
	Tokens                Tokens  // padding, which nothing attends to
	Kept                  []float32
	Scratch               []float32
}

const (
	block = plan.AttentionBlock
	row   = block * lanes // of scores
)

// attentionTask is what one worker computes at a time: 16 lanes of a head of keys and values and the heads of queries
// that share it. Of a folded sequence these are all lanes, 16 after the other: they have the same rows. The queries of
// a block are pixels then, and its keys are positions, which stand in all lanes of their rows.
type attentionTask struct {
	Attention
	w      *Worker
	lane   int                   // the first of 16 at work
	group  int                   // the head of keys
	q      []float32             // blocks [positions][Width][16]
	k, v   []float32             //
	o      []float32             // the outputs, and on the way back their gradient
	dq     []float32             //
	dk     []float32             //
	dv     []float32             //
	s, ds  []float32             // scores and their gradients, [queries][keys][16]
	size   int                   // values of a position in a block
	dots   [block][lanes]float32 // of the outputs and their gradient
	hidden [block][lanes]bool    // keys that are padding
	hides  bool                  // there are some
	// top are the largest scores of the queries of a block so far, sum the sums of their exponentials less the largest
	top, sum [block][lanes]float32
	factor   [lanes]float32
	less     [lanes]float32 // the largest scores of a query; 0 if there is none
}

// eachTask calls f for this worker's tasks.
func (w *Worker) eachTask(a *Attention, back bool, f func(t *attentionTask)) {
	length, size := plan.AttentionLen(a.Width, back), block*a.Width*lanes
	tasks := a.KVHeads
	if a.Fold == 0 {
		tasks *= a.active() / lanes
	}
	from, to := w.share(tasks)
	t := &w.task
	for i := from; i < to; i++ {
		*t = attentionTask{
			Attention: *a, w: w, lane: i / a.KVHeads * lanes, group: i % a.KVHeads, size: a.Width * lanes,
		}
		scratch := a.Scratch[i*length:][:length]
		blocks := [...]*[]float32{&t.q, &t.k, &t.v, &t.o, &t.dq, &t.dk, &t.dv}
		used := 4
		if back {
			used = len(blocks)
		}
		for _, b := range blocks[:used] {
			*b, scratch = scratch, scratch[size:] // a tile may read behind a block, which nobody uses
		}
		t.s, t.ds = scratch, scratch[min(len(scratch), block*row):]
		f(t)
	}
	w.task = attentionTask{} // which would keep the arrays alive
}

// Attention computes the output of x, the queries, keys and values.
func (w *Worker) Attention(a *Attention, x, y []float32) {
	w.eachTask(a, false, func(t *attentionTask) {
		t.eachVector(func() {
			for h := t.group * a.shared(); h < (t.group+1)*a.shared(); h++ {
				for i := 0; i < a.H; i += block {
					t.forward(x, y, h, i)
				}
			}
		})
	})
}

// eachVector calls f for each 16 lanes of the task.
func (t *attentionTask) eachVector(f func()) {
	if t.Fold == 0 {
		f()
		return
	}
	for t.lane = 0; t.lane < t.Lanes; t.lane += lanes {
		f()
	}
}

// position is that of lane l of 16 of the queries' pixel i.
func (t *attentionTask) position(i, l int) int {
	if t.Fold == 0 {
		return i
	}
	return i*t.Fold + (t.lane+l)/t.Span()
}

// row is the row of the batch of lane l of 16.
func (t *attentionTask) row(l int) int {
	if t.Fold == 0 {
		return t.lane + l
	}
	return (t.lane + l) % t.Span()
}

// shared is how many heads of queries share one of keys.
func (a *Attention) shared() int { return a.Heads / a.KVHeads }

// out is the sequence of the outputs.
func (a *Attention) out() *Sequence {
	s := a.Sequence
	s.C = a.Heads * a.Width
	return &s
}

func (a *Attention) scale() float32 { return float32(1 / sqrt(float64(a.Width))) }

// ends are how many queries from i on and keys from j on are in a block.
func (a *Attention) ends(i, j int) (queries, keys int) {
	return min(block, a.H-i), min(block, a.Positions()-j)
}

// load copies pixels from (included) of a head to a block; channel is the head's first.
func (t *attentionTask) load(dst []float32, s *Sequence, x []float32, channel, from int, scale float32) {
	t.factor = filled(scale)
	for i := range min(block, s.H-from) {
		at := ((from+i)*s.C+channel)*s.Lanes + t.lane
		t.w.eachRow(t.w.f.mulRows, dst[i*t.size:], lanes, x[at:], s.Lanes, &t.factor, nil, t.Width)
	}
}

// filled is a vector of one value.
func filled(value float32) (out [lanes]float32) {
	for l := range out {
		out[l] = value
	}
	return out
}

// loadPositions is load for positions, each of which gets all lanes of its rows.
func (t *attentionTask) loadPositions(dst []float32, x []float32, channel, from int) {
	if t.Fold == 0 {
		t.load(dst, &t.Sequence, x, channel, from, 1)
		return
	}
	_, keys := t.ends(0, from)
	span := t.Span()
	for k := range keys {
		first := t.Index(from+k, channel, 0)
		for c := range t.Width {
			v, to := x[first+c*t.Lanes:][:span], vec(dst[k*t.size+c*lanes:])
			copy(to[:], v)
			for l := span; l < lanes; l *= 2 {
				copy(to[l:2*l], to[:l])
			}
		}
	}
}

// keepPositions is keep for positions: their rows stand in several lanes.
func (t *attentionTask) keepPositions(src []float32, x []float32, channel, from int) {
	if t.Fold == 0 {
		t.keep(src, &t.Sequence, x, channel, from, 1)
		return
	}
	_, keys := t.ends(0, from)
	span := t.Span()
	for k := range keys {
		first := t.Index(from+k, channel, 0)
		for c := range t.Width {
			to, v := x[first+c*t.Lanes:][:span], src[k*t.size+c*lanes:][:lanes]
			for l := 0; l < lanes; l += span {
				for r, d := range v[l:][:span] {
					to[r] += d
				}
			}
		}
	}
}

// keep adds a block to pixels of a head.
func (t *attentionTask) keep(src []float32, s *Sequence, x []float32, channel, from int, scale float32) {
	t.factor = filled(scale)
	for i := range min(block, s.H-from) {
		at := ((from+i)*s.C+channel)*s.Lanes + t.lane
		t.w.eachRow(t.w.f.addRows, x[at:], s.Lanes, src[i*t.size:], lanes, &t.factor, nil, t.Width)
	}
}

func (t *attentionTask) loadQueries(x []float32, head, from int) {
	t.load(t.q, &t.Sequence, x, head*t.Width, from, t.scale())
	t.turnQueries(t.q, from, 1)
}

func (t *attentionTask) loadKeys(x []float32, from int) {
	t.loadPositions(t.k, x, t.keyChannel(), from)
	t.turnKeys(t.k, from, 1)
	t.loadPositions(t.v, x, t.valueChannel(), from)
	_, keys := t.ends(0, from)
	t.hides = false
	for k := range keys {
		for l := range lanes {
			hidden := t.Tokens.isPadding(&t.Sequence, from+k, t.row(l))
			t.hidden[k][l], t.hides = hidden, t.hides || hidden
		}
	}
}

func (t *attentionTask) keyChannel() int   { return (t.Heads + t.group) * t.Width }
func (t *attentionTask) valueChannel() int { return (t.Heads + t.KVHeads + t.group) * t.Width }

// turnKeys rotates keys by their position; with sign -1, back.
func (t *attentionTask) turnKeys(b []float32, from int, sign float64) {
	_, keys := t.ends(0, from)
	for k := range keys {
		t.turn(b[k*t.size:], from+k, 0, lanes, sign)
	}
}

// turnQueries rotates queries by their position; with sign -1, back.
func (t *attentionTask) turnQueries(b []float32, from int, sign float64) {
	queries, _ := t.ends(from, 0)
	span := min(lanes, t.Span())
	for i := range queries {
		for l := 0; l < lanes; l += span {
			t.turn(b[i*t.size:], t.position(from+i, l), l, l+span, sign)
		}
	}
}

// turn rotates channel c with channel c + Width/2 by the angle position / Theta^(2c/Width), in some lanes.
func (t *attentionTask) turn(b []float32, position, from, to int, sign float64) {
	if t.Theta == 0 {
		return
	}
	half := t.Width / 2
	for c := range half {
		sin, cos := math.Sincos(sign * float64(position) / math.Pow(t.Theta, float64(c)/float64(half)))
		x, y := vec(b[c*lanes:]), vec(b[(c+half)*lanes:])
		for l := from; l < to; l++ {
			x[l], y[l] = x[l]*float32(cos)-y[l]*float32(sin), x[l]*float32(sin)+y[l]*float32(cos)
		}
	}
}

// scores computes those of queries from first of a block from i on, and keys from j on.
func (t *attentionTask) scores(first, i, j int) {
	queries, keys := t.ends(i, j)
	clear(t.s[:block*row])
	q := operand{t.q[first*t.size:], t.size, lanes}
	t.w.lanesProduct(queries-first, keys, t.Width, q, operand{t.k, t.size, lanes}, t.s[first*row:], row)
}

// first is the first query of a block from i on that attends to keys of a block from j on, or a tile's first before it.
func (t *attentionTask) first(i, j int) int {
	queries, _ := t.ends(i, j)
	first := 0
	for first < queries && t.seen(i+first, j) == 0 {
		first++
	}
	return first - first%t.w.pairs[0]
}

// seen is how many keys of a block from j on query i attends to in any lane, but for padding.
func (t *attentionTask) seen(i, j int) int {
	_, keys := t.ends(0, j)
	if t.Causal {
		keys = min(keys, t.position(i, lanes-1)-j+1)
	}
	return max(keys, 0)
}

// last is the position behind the last key that queries from i on attend to.
func (t *attentionTask) last(i int) int {
	if t.Causal {
		return min(t.Positions(), t.position(i+block-1, lanes-1)+1)
	}
	return t.Positions()
}

// forward computes a block of outputs, of queries of a head from i on.
func (t *attentionTask) forward(x, y []float32, head, i int) {
	queries, _ := t.ends(i, 0)
	t.loadQueries(x, head, i)
	for q := range t.top {
		for l := range t.top[q] {
			t.top[q][l], t.sum[q][l] = float32(math.Inf(-1)), 0
		}
	}
	clear(t.o[:block*t.size])
	for j := 0; j < t.last(i); j += block {
		t.loadKeys(x, j)
		first := t.first(i, j)
		t.scores(first, i, j)
		for q := first; q < queries; q++ {
			t.soften(q, i, j)
		}
		_, keys := t.ends(i, j)
		t.w.lanesProduct(queries-first, t.Width, keys, operand{t.s[first*row:], row, lanes}, operand{t.v, lanes, t.size},
			t.o[first*t.size:], t.size)
	}
	out := t.out()
	for q := range queries {
		t.finish(out, y, head, i, q)
	}
}

// hide gives keys that are padding, or behind a lane's position, a score whose exponential is 0.
func (t *attentionTask) hide(q, i, j, seen int) {
	if t.Causal && t.Fold > 0 {
		for k := max(0, t.position(i+q, 0)+1-j); k < seen; k++ {
			s := vec(t.s[q*row+k*lanes:])
			for l := 0; l < lanes && t.position(i+q, l) < j+k; l++ {
				s[l] = float32(math.Inf(-1))
			}
		}
	}
	if !t.hides {
		return
	}
	for k := range seen {
		s, hidden := vec(t.s[q*row+k*lanes:]), &t.hidden[k]
		for l := range s {
			if hidden[l] {
				s[l] = float32(math.Inf(-1))
			}
		}
	}
}

// soften turns a row of scores into exponentials, less the largest score so far, and scales what was added up with a
// smaller one.
func (t *attentionTask) soften(q, i, j int) {
	seen, top, sum, less := t.seen(i+q, j), &t.top[q], &t.sum[q], &t.less
	before := *top
	t.hide(q, i, j, seen)
	s := t.s[q*row:]
	t.w.eachRow(t.w.f.maxRows, s, lanes, s, lanes, nil, top, seen)
	scale := &t.factor
	for l := range scale {
		if less[l] = top[l]; math.IsInf(float64(less[l]), -1) {
			less[l] = 0 // nothing is seen yet
		}
		scale[l] = exp32(before[l] - less[l])
		sum[l] *= scale[l]
	}
	o := t.o[q*t.size:]
	t.w.eachRow(t.w.f.mulRows, o, lanes, o, lanes, scale, nil, t.Width)
	t.w.softmaxRows(s, s, less, sum, seen, lanes)
	clear(t.s[q*row+seen*lanes : (q+1)*row])
}

// finish writes the output of a query, and keeps the logarithm of the sum of its exponentials.
func (t *attentionTask) finish(out *Sequence, y []float32, head, i, q int) {
	top, sum := &t.top[q], &t.sum[q]
	inverse := &t.factor
	for l, v := range sum {
		if inverse[l] = 0; v > 0 {
			inverse[l] = 1 / v
		}
	}
	at := ((i+q)*out.C+head*t.Width)*out.Lanes + t.lane
	t.w.eachRow(t.w.f.mulRows, y[at:], out.Lanes, t.o[q*t.size:], lanes, inverse, nil, t.Width)
	if t.Kept == nil {
		return
	}
	for l, kept := 0, t.kept(head, i+q); l < lanes; l++ {
		if kept[l] = 0; sum[l] > 0 {
			kept[l] = top[l] + float32(math.Log(float64(sum[l])))
		}
	}
}

func (t *attentionTask) kept(head, position int) *[lanes]float32 {
	return vec(t.Kept[(head*t.H+position)*t.Lanes+t.lane:])
}

// AttentionBack adds the gradient of x to dx; y and dy are the output and its gradient.
func (w *Worker) AttentionBack(a *Attention, x, y, dy, dx []float32) {
	w.eachTask(a, true, func(t *attentionTask) {
		for j := 0; j < a.Positions(); j += block {
			t.backward(x, y, dy, dx, j)
		}
	})
}

// backward is for keys from j on: their gradients, and what they add to those of the queries.
func (t *attentionTask) backward(x, y, dy, dx []float32, j int) {
	t.loadKeys(x, j)
	clear(t.dk[:block*t.size])
	clear(t.dv[:block*t.size])
	out, first := t.out(), 0
	if t.Causal {
		first = j / max(1, t.Fold)
	}
	t.eachVector(func() {
		for h := t.group * t.shared(); h < (t.group+1)*t.shared(); h++ {
			for i := first; i < t.H; i += block {
				t.loadQueries(x, h, i)
				t.load(t.o, out, dy, h*t.Width, i, 1)
				t.dot(out, y, h, i)
				t.slopes(h, i, j)
				t.turnQueries(t.dq, i, -1)
				t.keep(t.dq, &t.Sequence, dx, h*t.Width, i, t.scale())
			}
		}
	})
	t.turnKeys(t.dk, j, -1)
	t.keepPositions(t.dk, dx, t.keyChannel(), j)
	t.keepPositions(t.dv, dx, t.valueChannel(), j)
}

// dot sums the products of outputs and their gradients for each query.
func (t *attentionTask) dot(out *Sequence, y []float32, head, i int) {
	for q := range min(block, t.H-i) {
		t.dots[q] = [lanes]float32{}
		at := ((i+q)*out.C+head*t.Width)*out.Lanes + t.lane
		t.w.eachRow(t.w.f.dotRows, t.o[q*t.size:], lanes, y[at:], out.Lanes, nil, &t.dots[q], t.Width)
	}
}

// slopes computes the gradients of a block of scores, and what they give for queries, keys and values.
func (t *attentionTask) slopes(head, i, j int) {
	queries, keys := t.ends(i, j)
	first := t.first(i, j)
	t.scores(first, i, j)
	clear(t.ds[:block*row])
	s, ds, o, q := t.s[first*row:], t.ds[first*row:], t.o[first*t.size:], t.q[first*t.size:]
	n := queries - first
	t.w.lanesProduct(n, keys, t.Width, operand{o, t.size, lanes}, operand{t.v, t.size, lanes}, ds, row)
	for q := first; q < queries; q++ {
		seen, kept := t.seen(i+q, j), t.kept(head, i+q)
		t.hide(q, i, j, seen)
		t.w.softmaxRowsBack(t.ds[q*row:], t.s[q*row:], kept, &t.dots[q], seen, lanes)
		clear(t.s[q*row+seen*lanes : (q+1)*row])
		clear(t.ds[q*row+seen*lanes : (q+1)*row])
	}
	byKey := func(b []float32) operand { return operand{b, lanes, row} }
	byChannel := func(b []float32) operand { return operand{b, lanes, t.size} }
	t.w.lanesProduct(keys, t.Width, n, byKey(s), byChannel(o), t.dv, t.size)
	t.w.lanesProduct(keys, t.Width, n, byKey(ds), byChannel(q), t.dk, t.size)
	clear(t.dq[:block*t.size])
	t.w.lanesProduct(n, t.Width, keys, operand{ds, row, lanes}, byChannel(t.k), t.dq[first*t.size:], t.size)
}

// operand is an array of 16 lanes; outer and inner are the values from one row to the next, and from one term of a sum
// to the next.
type operand struct {
	values       []float32
	outer, inner int
}

// lanesProduct adds to c[i][j] the sums of a[i][k] b[j][k], for each of 16 lanes. A row of c is side by side. It reads,
// and does not use, rows behind the last up to whole tiles.
func (w *Worker) lanesProduct(rows, columns, terms int, a, b operand, c []float32, cRow int) {
	high, wide := w.pairs[0], w.pairs[1]
	tile := w.edge[:high*wide*lanes]
	p0 := &w.prod
	p0.rs, p0.ldb, p0.k, p0.middle = int64(4*a.outer), int64(4*b.outer), 1, int64(terms)
	p0.am, p0.bm = int64(4*a.inner)-w.step, int64(4*b.inner)-w.step
	for i := 0; i < rows; i += high {
		for j := 0; j < columns; j += wide {
			n := min(wide, columns-j) * lanes
			for r := range min(high, rows-i) {
				copy(tile[r*wide*lanes:][:n], c[(i+r)*cRow+j*lanes:])
			}
			for l := 0; l < lanes; l += int(w.step) / 4 {
				p0.a, p0.b, p0.c = p(a.values, i*a.outer+l), p(b.values, j*b.outer+l), p(tile, l)
				w.f.correlate(p0)
			}
			for r := range min(high, rows-i) {
				copy(c[(i+r)*cRow+j*lanes:][:n], tile[r*wide*lanes:])
			}
		}
	}
}
