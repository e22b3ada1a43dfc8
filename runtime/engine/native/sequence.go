package native

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// byLanes is embedded by kinds that the plan never lays out by rows.
type byLanes struct{}

func (byLanes) forwardRows(l *layer, _ *kernel.Worker, _ *Engine) {
	panic(fmt.Sprintf("native: the plan lays %v out by rows", l.node.Op))
}

// sequence is the layer's output as kernels of sequences take it.
func (l *layer) sequence() kernel.Sequence {
	return kernel.Sequence{Image: l.v.Image, Rows: l.rows}
}

// tokens are those that say which positions are padding; nil: there is none.
func (l *layer) tokens() kernel.Tokens {
	if !l.node.Masked {
		return nil
	}
	return l.in[len(l.in)-1].out
}

// embedding looks tokens up in its weights.
type embedding struct{}

func (embedding) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.Embed(l.sequence(), l.in[0].out, l.table(l.weight.value), l.out)
	w.Sync()
}

func (embedding) backward(l *layer, w *kernel.Worker, e *Engine) {
	switch {
	case l.node.Lent:
		w.Copy(l.weight.grad[:l.weight.used], e.slice.shared)
		w.Sync()
	case l.weight.direct && e.first > 0: // it is added to
	case !l.tied(): // else the layer with the same weight has written its gradient
		w.Clear(l.weight.grad)
		w.Sync()
	}
	w.EmbedBack(l.sequence(), l.in[0].out, l.grad, l.table(l.weight.grad), l.node.Padded)
	w.Sync()
}

func (embedding) passGradient(*layer, *kernel.Worker, int, bool) {}

// tied tells whether a dense layer has the weight of this embedding.
func (l *layer) tied() bool { return l.v.Conv.Filters > 0 }

func (l *layer) table(values []float32) kernel.Table {
	return kernel.Table{Values: values, Packed: l.tied()}
}

// positions adds a vector of each position.
type positions struct{ elementwise }

func (positions) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.AddPositions(l.sequence(), l.in[0].out, l.positions(), l.out)
	w.Sync()
}

// positions are the vectors of all positions, learned or sines.
func (l *layer) positions() []float32 {
	if l.node.Fixed {
		return l.shared
	}
	return l.weight.value
}

func (positions) backward(l *layer, w *kernel.Worker, _ *Engine) {
	if !l.trains() {
		return
	}
	w.PositionsBack(l.sequence(), l.grad, l.weight.grad)
	w.Sync()
}

// setSines writes the fixed vectors of positions (Vaswani 2017, 3.5). Channel 2i of position t is the sine of
// t / 10000^(2i/C), and the next channel its cosine.
func setSines(out []float32, channels, positions int) {
	for t := range positions {
		for c := range channels {
			at := float64(t) / math.Pow(10000, float64(c-c%2)/float64(channels))
			if c%2 == 0 {
				out[t*channels+c] = float32(math.Sin(at))
			} else {
				out[t*channels+c] = float32(math.Cos(at))
			}
		}
	}
}

// layerNorm brings the channels of each position to mean 0 and variance 1; with OpRMSNorm the mean stays.
type layerNorm struct{ elementwise }

func (l *layer) layerNorm() kernel.LayerNorm {
	return kernel.LayerNorm{
		Sequence: l.sequence(), Eps: l.node.Eps, Centered: l.node.Op != model.OpRMSNorm,
		Gamma: l.weight.value, Beta: values(l.bias), Kept: l.shared,
	}
}

func (layerNorm) forward(l *layer, w *kernel.Worker, _ *Engine) {
	n := l.layerNorm()
	w.LayerNorm(&n, l.in[0].out, l.out)
	w.Sync()
}

func (layerNorm) backward(l *layer, w *kernel.Worker, _ *Engine) {
	n := l.layerNorm()
	if l.trains() {
		l.clearGradients(w)
		w.LayerNormSums(&n, l.in[0].out, l.grad, l.weight.grad, gradOf(l.bias))
		w.Sync()
	}
	w.LayerNormBack(&n, l.in[0].out, l.grad)
	w.Sync()
}

// clearGradients writes zeros, also behind the last value: what is there counts in the scale of 8-bit moments.
func (l *layer) clearGradients(w *kernel.Worker) {
	for _, p := range l.params {
		w.Clear(p.grad)
	}
	w.Sync()
}

// groupNorm brings groups of an image's channels to mean 0 and variance 1.
type groupNorm struct {
	elementwise
	byLanes
}

func (l *layer) groupNorm() kernel.GroupNorm {
	return kernel.GroupNorm{LayerNorm: l.layerNorm(), Groups: l.node.Groups}
}

func (groupNorm) forward(l *layer, w *kernel.Worker, _ *Engine) {
	n := l.groupNorm()
	w.GroupNorm(&n, l.in[0].out, l.out)
	w.Sync()
}

func (groupNorm) backward(l *layer, w *kernel.Worker, _ *Engine) {
	n := l.groupNorm()
	if l.trains() {
		l.clearGradients(w)
		w.GroupNormSums(&n, l.in[0].out, l.grad, l.weight.grad, l.bias.grad)
		w.Sync()
	}
	w.GroupNormBack(&n, l.in[0].out, l.grad)
	w.Sync()
}

// classToken puts a learned position before the others.
type classToken struct{ byLanes }

func (classToken) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.Copy(l.out[l.v.Image.Pixel():], l.in[0].out)
	w.Spread(l.sequence(), l.weight.value, l.out)
	w.Sync()
}

func (classToken) backward(l *layer, w *kernel.Worker, _ *Engine) {
	if l.trains() {
		w.SpreadBack(l.sequence(), l.grad, l.weight.grad)
		w.Sync()
	}
}

func (classToken) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	pass(w, l.in[k].grad, l.grad[l.v.Image.Pixel():], add)
}

// takePosition makes a vector of a sequence.
type takePosition struct {
	gathering
	byLanes
}

func (takePosition) forward(l *layer, w *kernel.Worker, _ *Engine) {
	w.TakePosition(l.in[0].sequence(), kernel.Take(l.node.Take), l.tokens(), l.in[0].out, l.out)
	w.Sync()
}

func (takePosition) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	grad := cleared(w, l.in[k].grad, add)
	w.TakePositionBack(l.in[k].sequence(), kernel.Take(l.node.Take), l.tokens(), l.grad, grad)
	w.Sync()
}

// attention is of queries, keys and values.
type attention struct{ gathering }

func (l *layer) attention(scratch []float32) kernel.Attention {
	n := l.node
	return kernel.Attention{
		Sequence: l.in[0].sequence(), Heads: n.Heads, KVHeads: n.KVHeads, Width: n.Out[0] / n.Heads, Causal: n.Causal,
		Theta: n.Theta, Tokens: l.tokens(), Kept: l.shared, Scratch: scratch,
	}
}

func (attention) forward(l *layer, w *kernel.Worker, _ *Engine) {
	a := l.attention(l.work)
	w.Attention(&a, l.in[0].out, l.out)
	w.Sync()
}

func (attention) passGradient(l *layer, w *kernel.Worker, k int, add bool) {
	grad := cleared(w, l.in[k].grad, add)
	a := l.attention(l.back)
	w.AttentionBack(&a, l.in[k].out, l.out, l.grad, grad)
	w.Sync()
}

// checkTokens returns Invalid for a value that is no token of the network's embedding.
func (e *Engine) checkTokens(op string, x []float32) error {
	n := e.g.Vocabulary()
	if n == 0 {
		return nil
	}
	for i, v := range x {
		if v >= 0 && v < float32(n) && v == float32(int32(v)) {
			continue
		}
		row, at := i/e.g.Input().Len(), i%e.g.Input().Len()
		return &disdel.Error{
			Kind: disdel.Invalid, Op: op,
			Msg: fmt.Sprintf("row %d of the batch has %v at position %d, and tokens are whole numbers from 0 to %d",
				row, v, at, n-1),
			Hint: "add the data set with --scale none, or raise the vocabulary of the embedding",
		}
	}
	return nil
}
