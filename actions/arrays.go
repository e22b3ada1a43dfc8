package actions

import (
	"context"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/native"
)

// array is a tensor of a worker's state. One without data is read from the engine when it is needed: a state that is stored
// while the engine's memory is in use must not need as much again.
type array struct {
	disdel.Tensor
	optimizer, trainable bool
	piece                native.Piece
}

// piecewise is a backend whose state can be read and set array by array.
type piecewise interface{ Pieces() []native.Piece }

// arrays is the engine's state, as far as want says so, under the names that it is stored by. A backend that is not
// piecewise copies it.
func (t *trainer) arrays(want func(array) bool) ([]array, error) {
	var all []array
	if e, ok := t.engine.(piecewise); ok {
		for _, p := range e.Pieces() {
			a := array{Tensor: p.Tensor, optimizer: p.Moment, trainable: p.Trainable, piece: p}
			if a.optimizer {
				a.Name = optimizerPrefix + a.Name
			}
			all = append(all, a)
		}
		return slices.DeleteFunc(all, func(a array) bool { return !want(a) }), nil
	}
	state, err := t.optimizerState()
	if err != nil {
		return nil, err
	}
	trainable := map[string]bool{}
	for _, p := range t.graph.Params() {
		trainable[p.Name] = p.Trainable
	}
	for _, v := range t.engine.Weights() {
		all = append(all, array{Tensor: v, trainable: trainable[v.Name]})
	}
	for _, v := range state {
		all = append(all, array{Tensor: v, optimizer: true})
	}
	return slices.DeleteFunc(all, func(a array) bool { return !want(a) }), nil
}

// of is the tensors of w whose names start with prefix.
func of(w disdel.Weights, prefix string) []array {
	var out []array
	for _, v := range w {
		if strings.HasPrefix(v.Name, prefix) {
			out = append(out, array{Tensor: v})
		}
	}
	return out
}

// into reads an array; buffer, as long as the largest, is used where it has no data of its own.
func (a array) into(buffer []float32) []float32 {
	if a.Data != nil {
		return a.Data
	}
	values := buffer[:a.piece.Len()]
	a.piece.Read(values)
	return values
}

// written is arrays on their way to where they are kept: names and shapes, and the values of one at a time.
type written struct {
	all    []array
	shapes disdel.Weights
	buffer []float32
}

func newWritten(all []array) *written {
	w := &written{all: all, shapes: make(disdel.Weights, len(all))}
	largest := 0
	for i, a := range all {
		w.shapes[i] = disdel.Tensor{Name: a.Name, Shape: a.Shape}
		if a.Data == nil {
			largest = max(largest, a.piece.Len())
		}
	}
	w.buffer = make([]float32, largest)
	return w
}

// read is the values of array i, good until it is called again.
func (w *written) read(i int) []float32 { return w.all[i].into(w.buffer) }

// store stores arrays as the worker's state, one after another.
func (t *trainer) store(ctx context.Context, id disdel.UpdateID, kept bool, w *written) error {
	text, err := t.note(kept)
	if err != nil {
		return err
	}
	return t.session.saveState(ctx, id, text, w.shapes, w.read)
}

// recollection takes a stored state, array by array, into the engine; what is no part of the engine goes to trainer.kept.
type recollection struct {
	t      *trainer
	kept   bool // only what goes from round to round
	pieces map[string]native.Piece
	copies disdel.Weights // for a backend that takes everything at once
}

func (t *trainer) recollection() *recollection {
	r := &recollection{t: t}
	if e, ok := t.engine.(piecewise); ok {
		r.pieces = map[string]native.Piece{}
		for _, p := range e.Pieces() {
			name := p.Name
			if p.Moment {
				name = optimizerPrefix + name
			}
			r.pieces[name] = p
		}
	}
	return r
}

func (r *recollection) take(v disdel.Tensor) error {
	optimizer := strings.HasPrefix(v.Name, optimizerPrefix)
	switch p, ok := r.pieces[v.Name]; {
	case strings.HasPrefix(v.Name, residualPrefix) || r.kept && !optimizer:
		v.Data = slices.Clone(v.Data)
		r.t.kept = append(r.t.kept, v)
	case ok:
		v.Name = p.Name
		r.t.own = r.t.own || optimizer
		return p.Write(v)
	case r.pieces != nil:
		return &disdel.Error{Kind: disdel.Corrupt, Op: "read state", Job: r.t.req.Job, Msg: "the network has no " + v.Name}
	default:
		v.Data = slices.Clone(v.Data)
		r.copies = append(r.copies, v)
	}
	return nil
}

// set gives a backend that takes everything at once what was read for it.
func (r *recollection) set() error {
	weights, optimizer, _ := split(r.copies)
	if len(weights) > 0 {
		if err := r.t.engine.SetWeights(weights); err != nil {
			return err
		}
	}
	if len(optimizer) == 0 {
		return nil
	}
	r.t.own = true
	return r.t.setOptimizerState(optimizer)
}
