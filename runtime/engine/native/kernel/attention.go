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
	Windows               Windows // in which pixels of an image attend to each other; the zero value: there are none
	Kept                  []float32
	Scratch               []float32
}

// mostQueries is the most queries in a block.
const mostQueries = 64

// attentionTask is one head of keys and values, the heads of queries that share it, and some rows of the batch. Each
// row has matrices of its own, [positions][channels]. Scores are [keys][queries]: a lane is a query, and a product's
// vectors are queries or channels.
type attentionTask struct {
	Attention
	w             *Worker
	lane          int // the first of 16 at work
	first         int // the first row of the batch
	rows          int
	group         int // the head of keys
	wide          int // values of a position in the matrices
	block, many   int // queries and keys in a block
	k, v, dk, dv  []float32
	q, o          []float32 // blocks of queries and of the outputs' gradient, [rows][queries][channels]
	qt, ot, dqt   []float32 // a block of one row, [channels][queries]; ot are outputs, or their gradient
	s, ds         []float32 // scores and their gradients, [keys][queries]
	dots          []float32 // of the outputs and their gradient, [rows][queries]
	pixel, turned []float32 // 16 lanes of a pixel, [channels][16] and [16][channels]
	// top are the largest scores of the queries so far, sum the sums of their exponentials less the largest
	top, sum [mostQueries]float32
	factor   [lanes]float32
	less     [lanes]float32 // the largest scores of a query; 0 if there is none

	windowTask
}

// eachTask calls f for this worker's tasks.
func (w *Worker) eachTask(a *Attention, back bool, f func(t *attentionTask)) {
	shape := a.shape()
	length, tasks := shape.Scratch(back), a.tasks()
	from, to := w.share(tasks)
	t := &w.task
	for i := from; i < to; i++ {
		lane := i / a.KVHeads * lanes
		*t = attentionTask{
			Attention: *a, w: w, lane: lane, first: lane, rows: min(shape.Rows, a.Rows-lane), group: i % a.KVHeads,
			wide: shape.Row(), block: shape.Queries(), many: shape.Keys(),
		}
		t.cut(shape, a.Scratch[i*length:][:length], back)
		t.eachWindow(back, func() { f(t) })
	}
	w.task = attentionTask{} // which would keep the arrays alive
}

// shape is what a worker computes at a time.
func (a *Attention) shape() plan.AttentionShape {
	if a.Windows.Is() {
		return plan.WindowShape(&a.Windows.Windows, a.Width)
	}
	return a.Image.Attention(a.Width)
}

// tasks is how many tasks there are.
func (a *Attention) tasks() int {
	if a.Fold > 0 {
		return a.KVHeads
	}
	return a.KVHeads * a.active() / lanes
}

// cut cuts the scratch into the task's arrays. Tiles read behind an array, which nobody uses.
func (t *attentionTask) cut(s plan.AttentionShape, scratch []float32, back bool) {
	take := func(n int, arrays ...*[]float32) {
		for _, a := range arrays {
			*a, scratch = scratch[:n], scratch[n:]
		}
	}
	take(s.Matrix(), &t.k, &t.v)
	take(s.Block(), &t.q)
	take(t.block*t.wide, &t.qt, &t.ot)
	take(t.block*t.many, &t.s)
	take(lanes*t.wide, &t.pixel, &t.turned)
	take(s.Biases(), &t.bias)
	if back {
		take(s.Sums(), &t.sums)
		take(s.Biases(), &t.dbias)
		take(s.Matrix(), &t.dk, &t.dv)
		take(s.Block(), &t.o)
		take(t.block*t.wide, &t.dqt)
		take(t.block*t.many, &t.ds)
		take(s.Rows*t.block, &t.dots)
	}
}

// Attention computes the output of x, the queries, keys and values.
func (w *Worker) Attention(a *Attention, x, y []float32) {
	w.eachTask(a, false, func(t *attentionTask) {
		t.loadKeys(x)
		t.eachBlock(func(head, i int) {
			t.loadQueries(x, head, i)
			for r := range t.rows {
				t.forward(r, head, i)
			}
			out := t.out()
			t.eachPixel(i, t.block, func(px int) {
				if to := t.to(px); to >= 0 {
					at := (to*out.C+head*t.Width)*out.Lanes + t.lane
					t.gather(y[at:], out.Lanes, t.q, px, i, t.block)
				}
			})
		})
	})
}

// AttentionBack adds the gradient of x to dx; y and dy are the output and its gradient. With windows, dx may be nil.
// WindowSums then gives the gradients of their weights.
func (w *Worker) AttentionBack(a *Attention, x, y, dy, dx []float32) {
	w.eachTask(a, true, func(t *attentionTask) {
		t.loadKeys(x)
		if t.Causal { // else the first block of queries meets all keys
			clear(t.dk)
			clear(t.dv)
		}
		t.eachBlock(func(head, i int) {
			t.loadQueries(x, head, i)
			t.loadSlopes(y, dy, head, i)
			for r := range t.rows {
				t.backward(r, head, i)
			}
			t.keep(t.q, x, dx, head*t.Width, i, t.block, -1)
		})
		t.keep(t.dk, x, dx, t.keyChannel(), 0, t.Positions(), -1)
		t.keep(t.dv, x, dx, t.valueChannel(), 0, t.Positions(), 0)
	})
}

// eachBlock calls f for each block of queries of each head.
func (t *attentionTask) eachBlock(f func(head, i int)) {
	for h := t.group * t.shared(); h < (t.group+1)*t.shared(); h++ {
		for i := 0; i < t.Positions(); i += t.block {
			f(h, i)
		}
	}
}

// eachPixel calls f for the pixels of n positions from i on, and of a folded sequence for each 16 lanes of them.
func (t *attentionTask) eachPixel(i, n int, f func(px int)) {
	fold := max(1, t.Fold)
	for px := i / fold; px < min(t.H, (i+n)/fold); px++ {
		if t.Fold == 0 {
			f(px)
			continue
		}
		for t.lane = 0; t.lane < t.Lanes; t.lane += lanes {
			f(px)
		}
	}
}

// eachLane calls f for the lanes at work that hold a row of this task: the row, counted from the task's first, and the
// position.
func (t *attentionTask) eachLane(px int, f func(l, row, position int)) {
	if t.Fold == 0 {
		for l := range t.rows {
			f(l, l, px)
		}
		return
	}
	for l := 0; l < lanes; l += t.Span() {
		for row := range t.rows {
			f(l+row, row, px*t.Fold+(t.lane+l)/t.Span())
		}
	}
}

// lies tells where the first of the lanes at work is in matrices that have n positions from i on, and how far the next
// one is behind it. It returns false where the distance of lanes differs: between rows and between positions.
func (t *attentionTask) lies(px, i, n int) (at, step int, even bool) {
	switch {
	case t.Fold == 0:
		return (px - i) * t.wide, n * t.wide, true
	case t.Span() == 1:
		return (px*t.Fold + t.lane - i) * t.wide, t.wide, true
	default:
		return (px*t.Fold + t.lane/t.Span() - i) * t.wide, n * t.wide, t.Span() == lanes
	}
}

// shared is how many heads of queries share one of keys.
func (a *Attention) shared() int { return a.Heads / a.KVHeads }

// out is the sequence of the outputs.
func (a *Attention) out() Sequence {
	s := a.Sequence
	s.C = a.Heads * a.Width
	return s
}

// scale is what products of queries and keys are multiplied with.
func (t *attentionTask) scale() float32 {
	if t.Windows.Scale != nil {
		return t.Windows.scale(t.group)
	}
	return float32(1 / sqrt(float64(t.Width)))
}

// factorOf is a vector of one value.
func (t *attentionTask) factorOf(value float32) *[lanes]float32 {
	t.factor = filled(value)
	return &t.factor
}

// filled is a vector of one value.
func filled(value float32) (out [lanes]float32) {
	for l := range out {
		out[l] = value
	}
	return out
}

// scatter writes 16 lanes of the channels of a pixel, [channels][stride], into matrices with n positions from i on.
func (t *attentionTask) scatter(dst, src []float32, stride, px, i, n int) {
	if at, step, even := t.lies(px, i, n); even {
		t.w.Transpose(dst[at:], step, src, stride, t.Width, lanes)
		return
	}
	t.w.Transpose(t.turned, t.wide, src, stride, t.Width, lanes)
	t.eachLane(px, func(l, row, position int) {
		copy(dst[(row*n+position-i)*t.wide:][:t.wide], t.turned[l*t.wide:])
	})
}

// gather undoes scatter. Lanes without a row become zero.
func (t *attentionTask) gather(dst []float32, stride int, src []float32, px, i, n int) {
	if at, step, even := t.lies(px, i, n); even && t.rows == min(lanes, t.Span()) {
		t.w.Transpose(dst, stride, src[at:], step, lanes, t.Width)
		return
	}
	clear(t.turned)
	t.eachLane(px, func(l, row, position int) {
		copy(t.turned[l*t.wide:][:t.Width], src[(row*n+position-i)*t.wide:])
	})
	t.w.Transpose(dst, stride, t.turned, t.wide, lanes, t.Width)
}

// load copies n positions from i on, of the channels of a head. With sign 1 they are rotated; 0: they are not.
func (t *attentionTask) load(dst, x []float32, channel, i, n int, sign float64) {
	t.eachPixel(i, n, func(px int) {
		src, stride := x[(t.from(px)*t.C+channel)*t.Lanes+t.lane:], t.Lanes
		if t.Windows.Scale != nil && sign != 0 {
			t.unit(src)
			src, stride = t.pixel, lanes
		}
		if t.Theta != 0 && sign != 0 {
			t.w.eachRow(t.w.f.mulRows, t.pixel, lanes, src, stride, t.factorOf(1), nil, t.Width)
			t.turnPixel(px, sign)
			src, stride = t.pixel, lanes
		}
		t.scatter(dst, src, stride, px, i, n)
	})
}

// keep adds matrices to the gradient of the channels of a head. With a sign they are of queries or keys, which were
// scaled and turned.
func (t *attentionTask) keep(src, x, dx []float32, channel, i, n int, sign float64) {
	scale := float32(1)
	if sign != 0 {
		scale = t.scale()
	}
	t.eachPixel(i, n, func(px int) {
		t.gather(t.pixel, lanes, src, px, i, n)
		t.turnPixel(px, sign)
		at := (t.from(px)*t.C+channel)*t.Lanes + t.lane
		if t.Windows.Scale != nil && sign != 0 {
			t.unitBack(x[at:], scale, channel < t.Heads*t.Width)
		}
		if dx == nil {
			return
		}
		t.w.eachRow(t.w.f.addRows, dx[at:], t.Lanes, t.pixel, lanes, t.factorOf(scale), nil, t.Width)
	})
}

// loadQueries loads a block. Behind the last position it has zeros.
func (t *attentionTask) loadQueries(x []float32, head, i int) {
	if i+t.block > t.Positions() {
		clear(t.q)
	}
	t.load(t.q, x, head*t.Width, i, t.block, 1)
}

// loadSlopes loads a block of the outputs' gradient, and sums its products with the outputs for each query.
func (t *attentionTask) loadSlopes(y, dy []float32, head, i int) {
	if i+t.block > t.Positions() {
		clear(t.o)
		clear(t.dots)
	}
	out := t.out()
	t.eachPixel(i, t.block, func(px int) {
		t.less = [lanes]float32{}
		to := t.to(px)
		if to < 0 { // nothing reads it
			clear(t.pixel)
			t.scatter(t.o, t.pixel, lanes, px, i, t.block)
			t.eachLane(px, func(_, row, position int) { t.dots[row*t.block+position-i] = 0 })
			return
		}
		at := (to*out.C+head*t.Width)*out.Lanes + t.lane
		t.w.eachRow(t.w.f.dotRows, dy[at:], out.Lanes, y[at:], out.Lanes, nil, &t.less, t.Width)
		t.scatter(t.o, dy[at:], out.Lanes, px, i, t.block)
		t.eachLane(px, func(l, row, position int) { t.dots[row*t.block+position-i] = t.less[l] })
	})
}

func (t *attentionTask) loadKeys(x []float32) {
	t.load(t.k, x, t.keyChannel(), 0, t.Positions(), 1)
	t.load(t.v, x, t.valueChannel(), 0, t.Positions(), 0)
}

func (t *attentionTask) keyChannel() int   { return (t.Heads + t.group) * t.Width }
func (t *attentionTask) valueChannel() int { return (t.Heads + t.KVHeads + t.group) * t.Width }

// turnPixel rotates the pixel at work by its positions; with sign -1, back.
func (t *attentionTask) turnPixel(px int, sign float64) {
	if t.Theta == 0 || sign == 0 {
		return
	}
	span := min(lanes, t.Span())
	for l := 0; l < lanes; l += span {
		position := px
		if t.Fold > 0 {
			position = px*t.Fold + (t.lane+l)/t.Span()
		}
		t.turn(t.pixel, position, l, l+span, sign)
	}
}

// turn rotates channel c with channel c + Width/2 by the angle position / Theta^(2c/Width), in some lanes.
func (t *attentionTask) turn(b []float32, position, from, to int, sign float64) {
	half := t.Width / 2
	for c := range half {
		sin, cos := math.Sincos(sign * float64(position) / math.Pow(t.Theta, float64(c)/float64(half)))
		x, y := vec(b[c*lanes:]), vec(b[(c+half)*lanes:])
		for l := from; l < to; l++ {
			x[l], y[l] = x[l]*float32(cos)-y[l]*float32(sin), x[l]*float32(sin)+y[l]*float32(cos)
		}
	}
}

// seen is how many of some keys from j on query i attends to, but for padding.
func (t *attentionTask) seen(i, j, keys int) int {
	if t.Causal {
		keys = min(keys, i-j+1)
	}
	return max(keys, 0)
}

// eachKeys calls f for the blocks of keys that queries of a block from i on attend to.
func (t *attentionTask) eachKeys(i int, f func(j, keys int)) {
	last := t.seen(i+t.block-1, 0, t.Positions())
	for j := 0; j < last; j += t.many {
		f(j, min(t.many, last-j))
	}
}

// eachPanel calls f for the columns of a tile among the queries of a block from i on, with how many of some keys from j
// on they attend to.
func (t *attentionTask) eachPanel(i, j, keys int, f func(column, wide, seen int)) {
	wide := t.w.vectors * lanes
	for c := 0; c < t.block && i+c < t.Positions(); c += wide {
		if seen := t.seen(i+c+wide-1, j, keys); seen > 0 {
			f(c, wide, seen)
		}
	}
}

// eachVector calls f for each 16 queries of a block.
func (t *attentionTask) eachVector(i int, f func(l int)) {
	for l := 0; l < t.block && i+l < t.Positions(); l += lanes {
		f(l)
	}
}

// forward computes a block of outputs of a row of the batch, of queries of a head from i on, in the queries' place.
func (t *attentionTask) forward(r, head, i int) {
	q := t.q[r*t.block*t.wide:][:t.block*t.wide]
	t.turnQueries(q)
	for l := range t.top {
		t.top[l], t.sum[l] = float32(math.Inf(-1)), 0
	}
	t.eachKeys(i, func(j, keys int) {
		at := (r*t.Positions() + j) * t.wide
		t.scores(t.s, t.k[at:], t.qt, i, j, keys)
		t.addBias(i, j, keys)
		t.hide(r, i, j, keys)
		t.eachVector(i, func(l int) { t.soften(l, i, j, keys) })
		t.eachPanel(i, j, keys, func(c, wide, seen int) {
			t.w.multiplyAt(t.Width, wide, seen, strided{t.v[at:], 1, t.wide}, t.s[c:], t.block, t.ot[c:], t.block, j > 0)
		})
	})
	t.eachVector(i, func(l int) { t.finish(r, head, i, l) })
	t.w.Transpose(q, t.wide, t.ot, t.block, t.Width, t.block)
}

// turnQueries writes a block of queries as [channels][queries], over the root of the width.
func (t *attentionTask) turnQueries(q []float32) {
	t.w.Transpose(t.qt, t.block, q, t.wide, t.block, t.Width)
	for l := 0; l < t.block; l += lanes {
		t.w.eachRow(t.w.f.mulRows, t.qt[l:], t.block, t.qt[l:], t.block, t.factorOf(t.scale()), nil, t.Width)
	}
}

// scores multiplies keys, or values, by a block of queries, or of the outputs' gradient.
func (t *attentionTask) scores(dst, keys, queries []float32, i, j, n int) {
	t.eachPanel(i, j, n, func(c, wide, seen int) {
		t.w.multiplyAt(seen, wide, t.Width, strided{keys, t.wide, 1}, queries[c:], t.block, dst[c:], t.block, false)
	})
}

// hide gives keys that are padding, or behind a query's position, a score whose exponential is 0.
func (t *attentionTask) hide(r, i, j, keys int) {
	none := float32(math.Inf(-1))
	if t.Causal {
		for k := max(0, i+1-j); k < keys; k++ {
			for l := range min(t.block, j+k-i) {
				t.s[k*t.block+l] = none
			}
		}
	}
	if t.Tokens == nil {
		return
	}
	for k := range keys {
		if t.Tokens.isPadding(&t.Sequence, j+k, t.first+r) {
			for l := range t.block {
				t.s[k*t.block+l] = none
			}
		}
	}
}

// soften turns scores of 16 queries into exponentials, less the largest score so far, and scales what was added up with
// a smaller one.
func (t *attentionTask) soften(l, i, j, keys int) {
	seen, top, sum, less := t.seen(i+l+lanes-1, j, keys), vec(t.top[l:]), vec(t.sum[l:]), &t.less
	before := *top
	s := t.s[l:]
	t.w.eachRow(t.w.f.maxRows, s, t.block, s, t.block, nil, top, seen)
	scale := &t.factor
	for l := range scale {
		if less[l] = top[l]; math.IsInf(float64(less[l]), -1) {
			less[l] = 0 // nothing is seen yet
		}
		scale[l] = exp32(before[l] - less[l])
		sum[l] *= scale[l]
	}
	if j > 0 { // nothing is added up before the first block
		t.w.eachRow(t.w.f.mulRows, t.ot[l:], t.block, t.ot[l:], t.block, scale, nil, t.Width)
	}
	t.w.softmaxRows(s, s, less, sum, seen, t.block)
	t.clearScores(t.s, l, seen, keys)
}

// clearScores makes those of 16 queries zero that they do not see.
func (t *attentionTask) clearScores(s []float32, l, seen, keys int) {
	for k := seen; k < keys; k++ {
		clear(s[k*t.block+l:][:lanes])
	}
}

// finish divides outputs of 16 queries by their sums, and keeps the logarithms of those.
func (t *attentionTask) finish(r, head, i, l int) {
	top, sum, inverse := vec(t.top[l:]), vec(t.sum[l:]), &t.factor
	for l, v := range sum {
		if inverse[l] = 0; v > 0 {
			inverse[l] = 1 / v
		}
	}
	t.w.eachRow(t.w.f.mulRows, t.ot[l:], t.block, t.ot[l:], t.block, inverse, nil, t.Width)
	if t.Kept == nil {
		return
	}
	for n := range min(lanes, t.Positions()-i-l) {
		kept := t.kept(r, head, i+l+n)
		if *kept = 0; sum[n] > 0 {
			*kept = top[n] + float32(math.Log(float64(sum[n])))
		}
	}
}

// kept is the number of a query that the way back needs.
func (t *attentionTask) kept(r, head, position int) *float32 {
	pixel, lane := t.Lane(position)
	return &t.Kept[((head*t.windows+t.window)*t.H+pixel)*t.Lanes+lane+t.first+r]
}

// backward adds to the gradients of a row's keys and values what a block of its queries gives, and puts the gradient of
// the queries in their place.
func (t *attentionTask) backward(r, head, i int) {
	at, size := r*t.block*t.wide, t.block*t.wide
	q, o := t.q[at:][:size], t.o[at:][:size]
	t.turnQueries(q)
	t.w.Transpose(t.ot, t.block, o, t.wide, t.block, t.Width)
	for l := range min(t.block, t.Positions()-i) {
		t.top[l] = *t.kept(r, head, i+l)
	}
	t.eachKeys(i, func(j, keys int) {
		at := (r*t.Positions() + j) * t.wide
		t.slopes(r, i, j, keys, at)
		add := t.Causal || i > 0 || head%t.shared() > 0
		t.addUp(t.dv[at:], t.s, o, i, j, keys, add)
		t.addUp(t.dk[at:], t.ds, q, i, j, keys, add)
		t.eachPanel(i, j, keys, func(c, wide, seen int) {
			t.w.multiplyAt(t.Width, wide, seen, strided{t.k[at:], 1, t.wide}, t.ds[c:], t.block, t.dqt[c:], t.block, j > 0)
		})
	})
	t.w.Transpose(q, t.wide, t.dqt, t.block, t.Width, t.block)
}

// slopes computes the gradients of a block of scores.
func (t *attentionTask) slopes(r, i, j, keys, at int) {
	t.scores(t.s, t.k[at:], t.qt, i, j, keys)
	t.scores(t.ds, t.v[at:], t.ot, i, j, keys)
	t.addBias(i, j, keys)
	t.hide(r, i, j, keys)
	t.eachVector(i, func(l int) {
		seen := t.seen(i+l+lanes-1, j, keys)
		kept, dots := vec(t.top[l:]), vec(t.dots[r*t.block+l:])
		t.w.softmaxRowsBack(t.ds[l:], t.s[l:], kept, dots, seen, t.block)
		t.clearScores(t.s, l, seen, keys)
		t.clearScores(t.ds, l, seen, keys)
	})
	t.sumBias(i, j, keys)
}

// addUp computes the sums of scores times rows of queries, of those queries that see a key. With add it adds them to
// the keys' or values' gradients.
func (t *attentionTask) addUp(dst, scores, queries []float32, i, j, keys int, add bool) {
	n := min(t.block, t.Positions()-i)
	step := keys
	if t.Causal {
		step = lanes
	}
	for k := 0; k < keys; k += step {
		from := 0
		if t.Causal {
			from = max(0, j+k-i)
		}
		t.w.multiplyAt(min(step, keys-k), t.wide, n-from, strided{scores[k*t.block+from:], t.block, 1},
			queries[from*t.wide:], t.wide, dst[k*t.wide:], t.wide, add)
	}
}

// strided is a matrix whose rows and columns have any distance.
type strided struct {
	values      []float32
	row, column int
}

// multiplyAt computes C = A B, or C += A B where add is set, without packing. C has whole vectors of columns. It reads,
// and does not use, rows of A and C behind the last up to a whole tile.
func (w *Worker) multiplyAt(m, n, k int, a strided, b []float32, ldb int, c []float32, ldc int, add bool) {
	x := &w.prod
	x.rs, x.ks, x.ldb, x.k = int64(4*a.row), int64(4*a.column), int64(4*ldb), int64(k)
	x.middle, x.am, x.bm, x.outer, x.ao, x.bo, x.relu, x.ahead = 1, 0, 0, 1, 0, 0, 0, 0
	x.ldc, x.mode = int64(4*ldc), fromZero
	if add {
		x.mode = fromC
	}
	if x.c2 = 64; w.square == 8 {
		x.c2 = 32
	}
	for j := 0; j < n; {
		vectors := min(w.vectors, (n-j)/lanes)
		for i := 0; i < m; {
			tile := w.rows(m - i)
			x.a, x.b, x.c, x.rows = p(a.values, i*a.row), p(b, j), p(c, i*ldc+j), int64(min(tile, m-i))
			w.f.product[tile][vectors](x)
			i += tile
		}
		j += vectors * lanes
	}
}
