package actions

import (
	"context"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
)

// array is a tensor of a worker's state. One without data is read from the engine when it is needed: a state that is
// stored while the engine's memory is in use must not need as much again.
type array struct {
	disdel.Tensor
	from engine.Array
}

// storedName is what an array of an engine is called in a worker's state.
func storedName(a engine.Array) string {
	if a.Role == engine.Moment {
		return optimizerPrefix + a.Name
	}
	return a.Name
}

// arrays is the engine's state, as far as want says so, under the names that it is stored by.
func (t *trainer) arrays(want func(engine.Role) bool) []array {
	var all []array
	for _, a := range t.engine.State() {
		if want(a.Role) {
			all = append(all, array{Tensor: disdel.Tensor{Name: storedName(a), Shape: a.Shape}, from: a})
		}
	}
	return all
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
	values := buffer[:a.from.Len()]
	a.from.ReadAt(values, 0) //nolint:errcheck // it is the whole array
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
			largest = max(largest, a.from.Len())
		}
	}
	w.buffer = make([]float32, largest)
	return w
}

// read is the values of array i, good until it is called again.
func (w *written) read(i int) []float32 { return w.all[i].into(w.buffer) }

// store stores arrays as the worker's state, one after another.
func (t *trainer) store(ctx context.Context, id disdel.UpdateID, kept bool, w *written) error {
	if !kept {
		if err := t.swap.named(ctx); err != nil {
			return err
		}
	}
	text, err := t.note(kept)
	if err != nil {
		return err
	}
	return t.session.saveState(ctx, id, text, w.shapes, w.read)
}

// recollection takes a stored state, array by array, into the engine; what is no part of the engine goes to
// trainer.kept.
type recollection struct {
	t      *trainer
	kept   bool // only what goes from round to round
	arrays map[string]engine.Array
}

func (t *trainer) recollection() *recollection {
	r := &recollection{t: t, arrays: map[string]engine.Array{}}
	for _, a := range t.engine.State() {
		r.arrays[storedName(a)] = a
	}
	return r
}

func (r *recollection) take(v disdel.Tensor) error {
	optimizer := strings.HasPrefix(v.Name, optimizerPrefix)
	switch a, ok := r.arrays[v.Name]; {
	case strings.HasPrefix(v.Name, residualPrefix) || r.kept && !optimizer:
		v.Data = slices.Clone(v.Data)
		r.t.kept = append(r.t.kept, v)
		return nil
	case ok:
		v.Name = a.Name
		r.t.own = r.t.own || optimizer
		return a.Set(v)
	default:
		return &disdel.Error{Kind: disdel.Corrupt, Op: "read state", Job: r.t.req.Job, Msg: "the network has no " + v.Name}
	}
}
