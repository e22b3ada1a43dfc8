package native

import (
	"math"

	"github.com/disdel/disdel"
)

// Piece is one array of an engine's state, which can be read and set without a copy of all the others.
type Piece struct {
	disdel.Tensor      // name and shape, without data
	Trainable     bool // or a moment of what is
	Moment        bool // or the count of steps: of the optimiser, not of the network

	engine *Engine
	param  *param // nil: the count of steps
	values []float32
}

// Pieces are those of Weights, then those of OptimizerState, in their order and under their names.
func (e *Engine) Pieces() []Piece {
	var out []Piece
	for i := range e.params {
		p := &e.params[i]
		out = append(out, Piece{Tensor: disdel.Tensor{Name: p.Name, Shape: p.Shape}, Trainable: p.Trainable, engine: e, param: p, values: p.value})
	}
	if !e.cfg.Training {
		return out
	}
	out = append(out, Piece{Tensor: disdel.Tensor{Name: "step", Shape: []int{1}}, Moment: true, engine: e})
	for m, kind := range stateNames(e.cfg.Optimizer) {
		for i := range e.params {
			if p := &e.params[i]; p.Trainable {
				t := disdel.Tensor{Name: p.Name + "." + kind, Shape: p.Shape}
				out = append(out, Piece{Tensor: t, Trainable: true, Moment: true, engine: e, param: p, values: p.moments[m]})
			}
		}
	}
	return out
}

// Len is how many values a piece has.
func (p Piece) Len() int {
	if p.param == nil {
		return 1
	}
	return p.param.Len()
}

// Read copies the values into dst, of length Len, in PyTorch's layout.
func (p Piece) Read(dst []float32) {
	if p.param == nil {
		dst[0] = float32(p.engine.steps)
		return
	}
	p.param.convert(func(there, here int) { dst[there] = p.values[here] })
}

// Write takes a copy of t. It returns Corrupt for another name or shape and Diverged for values that are not finite; then
// nothing was changed.
func (p Piece) Write(t disdel.Tensor) error {
	if p.param == nil {
		if t.Name != p.Name || len(t.Data) != 1 {
			return &disdel.Error{Kind: disdel.Corrupt, Op: "set optimiser state", Msg: t.Name + " where the count of steps belongs"}
		}
		p.engine.steps = int(math.Round(float64(t.Data[0])))
		return nil
	}
	if err := p.param.accepts(t, p.Name); err != nil {
		return err
	}
	p.param.load(p.values, t.Data)
	return nil
}
