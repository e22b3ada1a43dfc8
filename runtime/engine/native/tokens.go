package native

import (
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// checkLanguage returns Invalid for a language model with a loss that it has not.
func checkLanguage(s *engine.Spec) error {
	if !s.Graph.PredictsTokens() || s.Loss == CrossEntropy && s.LabelSmoothing == 0 {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine",
		Msg:  "a language model is trained with crossEntropy and without label smoothing",
		Hint: "leave training.loss and training.labelSmoothing out",
	}
}

// outputs is the number of values that Predict returns for a row: of a language model those of one position.
func outputs(g *model.Graph) int {
	if g.PredictsTokens() {
		return g.Output()[0]
	}
	return g.Output().Len()
}

// tokens are the network's tokens for the rows of a pass.
func (e *Engine) tokens() []float32 {
	if e.slice != nil {
		return e.slice.tokens
	}
	return e.x
}

// nextToken is the loss of a language model for the rows of a pass.
func (e *Engine) nextToken() *kernel.NextToken {
	return &kernel.NextToken{
		Sequence: e.layers[e.head].sequence(), Tokens: e.tokens(), Padded: e.padded, Losses: e.positions, Right: e.hits,
	}
}

// targets counts the positions of rows that have a target: not the last one, and none before padding.
func (e *Engine) targets(x []float32) int {
	n := kernel.NextToken{Tokens: x, Padded: e.padded}
	n.H, n.W = e.g.Output()[1], 1
	count := 0
	for r := range len(x) / n.H {
		for t := range n.H {
			if n.Target(t, r) >= 0 {
				count++
			}
		}
	}
	return count
}

// lossOfTokens is lossOf for a language model. The gradient is that of the mean over all targets of the batch. Without
// labels it writes the probabilities of the token behind each row.
func (e *Engine) lossOfTokens(w *kernel.Worker, gradient bool) {
	head, n := &e.layers[e.head], e.nextToken()
	switch {
	case e.plan.Spec.Text:
		e.exportText(w)
		return
	case e.target.Classes == nil:
		e.exportLast(w)
		return
	}
	var grad []float32
	if gradient {
		grad = head.grad
	}
	w.NextToken(n, head.out, grad, float32(1/float64(max(1, e.counted))))
	w.Sync()
	if w.ID == 0 {
		if e.first == 0 {
			e.loss, e.correct = 0, 0
		}
		for r := range e.rows {
			e.losses[e.first+r] = 0
			for t := range n.Image.Positions() {
				pixel, lane := n.Lane(t)
				e.losses[e.first+r] += n.Losses[pixel*n.Lanes+lane+r]
				if n.Right[pixel*n.Lanes+lane+r] {
					e.correct++
				}
			}
			e.loss += e.losses[e.first+r]
		}
	}
	w.Sync()
}

// exportLast writes the probabilities of the token behind the last token of each row.
func (e *Engine) exportLast(w *kernel.Worker) {
	s, n := e.layers[e.head].sequence(), e.g.Output()[0]
	for r := e.rows * w.ID / w.N; r < e.rows*(w.ID+1)/w.N; r++ {
		last := s.Image.Positions() - 1
		if e.length > 0 {
			last = e.length - 1
		}
		for e.length == 0 && e.padded && last > 0 && e.tokens()[r*s.Image.Positions()+last] == 0 {
			last--
		}
		row := e.out[(e.first+r)*n:][:n]
		for c := range row {
			row[c] = e.layers[e.head].out[s.Index(last, c, r)]
		}
		applySoftmax(row)
	}
	w.Sync()
}

// lengthen makes a row of a language model that is shorter than others as long as they are. What fills it does not
// matter, since no position reads ahead.
func (e *Engine) lengthen(in dataset.Matrix) dataset.Matrix {
	n := e.g.Input().Len()
	if !e.g.PredictsTokens() || in.Rows != 1 || len(in.Values) == 0 || len(in.Values) >= n {
		return in
	}
	e.length = len(in.Values)
	return dataset.Dense(1, append(slices.Clone(in.Values), make([]float32, n-e.length)...), nil).Input
}
