package kernel

import (
	"math"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Windows has an Attention work within the windows of an image. Scores have a bias by the distance of their pixels
// (Liu 2021).
type Windows struct {
	plan.Windows
	Out   Image     // of the pixels whose outputs are kept: the map's first rows and columns
	Table []float32 // the biases, [distances][heads]
	Scale []float32 // logarithms of the heads' scales: scores are cosines, times these; nil: products of any length
}

// leastNorm keeps the division by a norm away from zero, as PyTorch's normalize does.
const leastNorm = 1e-12

// windowTask is a task's part of windows.
type windowTask struct {
	window, windows int
	divided         bool      // bias has hidden scores
	bias, dbias     []float32 // of a window's scores, [keys][queries]
	sums            []float32 // gradients of the biases by distance, and behind them that of the scale
}

// eachWindow calls f for each window, or once where there are none.
func (t *attentionTask) eachWindow(back bool, f func()) {
	if t.windows = 1; !t.Windows.Is() {
		f()
		return
	}
	t.H, t.W, t.windows = t.Windows.Len(), 1, t.Windows.Count()
	t.setBias(false)
	if back {
		clear(t.dbias)
		clear(t.sums)
	}
	for t.window = range t.windows {
		if divided := t.Windows.Divided(t.window); divided || t.divided {
			t.setBias(divided)
		}
		f()
	}
	if back {
		t.byDistance()
	}
}

// from is the pixel that a place at work is in the input.
func (t *attentionTask) from(px int) int {
	if !t.Windows.Is() {
		return px
	}
	row, column := t.Windows.Pixel(t.window, px)
	return row*t.Windows.MapW + column
}

// to is the pixel that a place at work is in the output, -1 where it is left out.
func (t *attentionTask) to(px int) int {
	if !t.Windows.Is() {
		return px
	}
	row, column := t.Windows.Pixel(t.window, px)
	if row >= t.Windows.Out.H || column >= t.Windows.Out.W {
		return -1
	}
	return row*t.Windows.Out.W + column
}

// across is how far the biases of two keys are apart.
func (t *attentionTask) across() int { return len(t.bias) / t.Positions() }

// setBias writes the biases of the scores of the head at work. In a divided window, scores of places of different parts
// get less, as in PyTorch: the large scores of a network with Cosine may still count.
func (t *attentionTask) setBias(divided bool) {
	t.divided = divided
	across := t.across()
	for k := range t.Positions() {
		row := t.bias[k*across:][:across]
		clear(row[t.Positions():])
		for i := range t.Positions() {
			row[i] = t.Windows.Table[t.Windows.Distance(i, k)*t.Heads+t.group]
			if divided && t.Windows.Part(t.window, i) != t.Windows.Part(t.window, k) {
				row[i] -= plan.ApartScore
			}
		}
	}
}

// addBias adds the biases of some keys and of a block of queries to their scores.
func (t *attentionTask) addBias(i, j, keys int) {
	if !t.Windows.Is() {
		return
	}
	across := t.across()
	t.eachVector(i, func(l int) {
		t.w.eachRow(t.w.f.addRows, t.s[l:], t.block, t.bias[j*across+i+l:], across, t.factorOf(1), nil, keys)
	})
}

// sumBias adds the gradients of scores to those of their biases.
func (t *attentionTask) sumBias(i, j, keys int) {
	if !t.Windows.Is() {
		return
	}
	across := t.across()
	t.eachVector(i, func(l int) {
		t.w.eachRow(t.w.f.addRows, t.dbias[j*across+i+l:], across, t.ds[l:], t.block, t.factorOf(1), nil, keys)
	})
}

// byDistance adds up the gradients of biases of one distance.
func (t *attentionTask) byDistance() {
	across := t.across()
	for k := range t.Positions() {
		for i := range t.Positions() {
			t.sums[t.Windows.Distance(i, k)] += t.dbias[k*across+i]
		}
	}
}

// scale is the scale of a head.
func (s *Windows) scale(head int) float32 {
	return min(float32(math.Exp(float64(s.Scale[head]))), plan.LargestScale)
}

// unit writes 16 lanes of a pixel as vectors of length 1 into t.pixel.
func (t *attentionTask) unit(src []float32) {
	inverse, _ := t.norms(src, nil)
	t.factor = inverse
	t.w.eachRow(t.w.f.mulRows, t.pixel, lanes, src, t.Lanes, &t.factor, nil, t.Width)
}

// norms are the inverse lengths of 16 lanes of a pixel, and their products with t.pixel where that is asked for.
func (t *attentionTask) norms(src []float32, dots *[lanes]float32) (inverse [lanes]float32, long [lanes]bool) {
	t.less = [lanes]float32{}
	t.w.eachRow(t.w.f.dotRows, src, t.Lanes, src, t.Lanes, nil, &t.less, t.Width)
	for l, square := range t.less {
		norm := float32(sqrt(float64(square)))
		inverse[l], long[l] = 1/max(norm, leastNorm), norm > leastNorm
	}
	if dots != nil {
		t.less = [lanes]float32{}
		t.w.eachRow(t.w.f.dotRows, src, t.Lanes, t.pixel, lanes, nil, &t.less, t.Width)
		*dots = t.less
	}
	return inverse, long
}

// unitBack turns the gradient of vectors of length 1 in t.pixel into that of the vectors in src. That of queries, times
// the scale, also gives the gradient of the scale's logarithm.
func (t *attentionTask) unitBack(src []float32, scale float32, queries bool) {
	var dots, along [lanes]float32
	inverse, long := t.norms(src, &dots)
	for l := range along {
		if along[l] = 0; long[l] {
			along[l] = -dots[l] * inverse[l] * inverse[l] * inverse[l]
		}
		if queries && l < t.rows && t.Windows.Scale[t.group] <= largestLogarithm {
			t.sums[t.Windows.Distances()] += dots[l] * inverse[l] * scale
		}
	}
	t.factor = inverse
	t.w.eachRow(t.w.f.mulRows, t.pixel, lanes, t.pixel, lanes, &t.factor, nil, t.Width)
	t.factor = along
	t.w.eachRow(t.w.f.addRows, t.pixel, lanes, src, t.Lanes, &t.factor, nil, t.Width)
}

var largestLogarithm = float32(math.Log(plan.LargestScale))

// WindowSums writes the gradients of the biases and, if dScale is not nil, of the scales' logarithms, which an
// AttentionBack has left in the scratch.
func (w *Worker) WindowSums(a *Attention, dTable, dScale []float32) {
	shape := a.shape()
	length, distances := shape.Scratch(true), shape.Distances
	at := a.sumsAt(shape)
	from, to := w.share(a.Heads)
	for head := from; head < to; head++ {
		for task := head; task < a.tasks(); task += a.Heads {
			sums := a.Scratch[task*length+at:][:distances+1]
			for d, v := range sums[:distances] {
				dTable[d*a.Heads+head] += v
			}
			if dScale != nil {
				dScale[head] += sums[distances]
			}
		}
	}
}

// sumsAt is where the sums lie in the scratch of a task.
func (a *Attention) sumsAt(s plan.AttentionShape) int {
	return 2*s.Matrix() + s.Block() + 2*s.Queries()*s.Row() + s.Queries()*s.Keys() + 2*lanes*s.Row() + s.Biases()
}

// SpaceToDepth writes y, an image of pixels that are each a block of h x wide pixels of x.
func (w *Worker) SpaceToDepth(out Image, h, wide int, x, y []float32) {
	part := out.Pixel() / (h * wide)
	from, to := w.share(out.H * out.W)
	for px := from; px < to; px++ {
		for k := range h * wide {
			copy(y[px*out.Pixel()+k*part:][:part], x[inBlock(out, h, wide, px, k)*part:])
		}
	}
}

// SpaceToDepthBack writes the gradient of x, or adds it.
func (w *Worker) SpaceToDepthBack(out Image, h, wide int, dy, dx []float32, add bool) {
	part := out.Pixel() / (h * wide)
	from, to := w.share(out.H * out.W)
	for px := from; px < to; px++ {
		for k := range h * wide {
			src, dst := dy[px*out.Pixel()+k*part:][:part], dx[inBlock(out, h, wide, px, k)*part:][:part]
			if !add {
				copy(dst, src)
				continue
			}
			for i, v := range src {
				dst[i] += v
			}
		}
	}
}

// inBlock is the pixel of the larger image that is number k of a block.
func inBlock(out Image, h, wide, px, k int) int {
	row, column := px/out.W*h+k/wide, px%out.W*wide+k%wide
	return row*out.W*wide + column
}
