package native

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// continueText returns the probabilities of the token behind a text. It keeps keys and values of the tokens that the
// text before began with, too, and computes the other positions. It returns Invalid for more than one row, for a text
// of no token or of more than a row has, and for values that are no tokens.
func (e *Engine) continueText(in dataset.Matrix) (dataset.Matrix, error) {
	text, most := in.Values, e.g.Input().Len()
	if in.Rows != 1 || len(text) < 1 || len(text) > most {
		return dataset.Matrix{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "predict",
			Msg: fmt.Sprintf("%d tokens in %d rows, and a text is one row of 1 to %d", len(text), in.Rows, most),
		}
	}
	if err := e.checkTokens("predict", text); err != nil {
		return dataset.Matrix{}, err
	}
	for len(text) == most && e.padded && len(text) > 1 && text[len(text)-1] == 0 {
		text, most = text[:len(text)-1], most-1
	}
	same := 0
	for !e.stale && same < min(len(text)-1, len(e.text)) && text[same] == e.text[same] {
		same++
	}
	e.text = append(e.text[:0], text...)
	for e.first = same; e.first < len(text); e.first += e.plan.Lanes {
		n := min(e.plan.Lanes, len(text)-e.first)
		e.prepare(e.text[e.first:][:n], dataset.Target{}, n, false)
		e.team.Run(e.infer)
		e.stale = false
	}
	e.x, e.first = nil, 0
	return dataset.Matrix{Rows: 1, Columns: len(e.out), Values: slices.Clone(e.out)}, nil
}

// lastOfText tells whether the pass has the last position of the text.
func (e *Engine) lastOfText() bool { return e.first+e.rows == len(e.text) }

// exportText writes the probabilities of the token behind the text.
func (e *Engine) exportText(w *kernel.Worker) {
	if w.ID == 0 && e.lastOfText() {
		copy(e.out, e.layers[e.head].out)
		applySoftmax(e.out)
	}
	w.Sync()
}

// lastPosition is the last layer of a language model that continues a text.
type lastPosition struct{ product }

func (lastPosition) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	if !e.lastOfText() {
		return
	}
	x := l.in[0].out[(e.rows-1)*l.in[0].v.Image.Row():]
	w.RowsForward(&l.v.Conv, l.v.Image, 1, x, l.weight.value, values(l.bias), l.out)
}

// text is the layer's output as kernels of texts take it.
func (l *layer) text(e *Engine) kernel.Text {
	return kernel.Text{Image: l.v.Image, Rows: e.rows, First: e.first}
}

func (embedding) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	w.TextEmbed(l.text(e), l.in[0].out, l.table(l.weight.value), l.out)
	w.Sync()
}

func (positions) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	w.TextPositions(l.text(e), l.in[0].out, l.positions(), l.out)
	w.Sync()
}

func (layerNorm) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	n := l.layerNorm()
	w.TextLayerNorm(&n, l.text(e), l.in[0].out, l.out)
	w.Sync()
}

func (attention) forwardRows(l *layer, w *kernel.Worker, e *Engine) {
	n := l.node
	a := kernel.TextAttention{
		Text: l.in[0].text(e), Heads: n.Heads, KVHeads: n.KVHeads, Width: n.Out[0] / n.Heads, Theta: n.Theta,
		Positions: n.Out[1], Cache: l.shared, Scratch: l.work,
	}
	if n.Masked {
		a.Tokens = e.text
	}
	w.TextAttention(&a, l.in[0].out, l.v.Image, l.out)
	w.Sync()
}
