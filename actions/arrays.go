package actions

import (
	"context"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
)

// array is a tensor of a worker's state. Without data it is read from the engine when it is needed, so that storing the
// state does not double the memory.
type array struct {
	disdel.Tensor
	from engine.Array
}

// storedName is the name of an engine's array in a worker's state.
func storedName(a engine.Array) string {
	if a.Role == engine.Moment {
		return optimizerPrefix + a.Name
	}
	return a.Name
}

// arrays is the part of the engine's state that want selects, with the names that it is stored under.
func (t *trainer) arrays(want func(engine.Role) bool) []array {
	var all []array
	for _, a := range t.engine.State() {
		if want(a.Role) {
			all = append(all, array{Tensor: disdel.Tensor{Name: storedName(a), Shape: a.Shape}, from: a})
		}
	}
	return all
}

// of returns the tensors of w whose names start with prefix.
func of(w disdel.Weights, prefix string) []array {
	var out []array
	for _, v := range w {
		if strings.HasPrefix(v.Name, prefix) {
			out = append(out, array{Tensor: v})
		}
	}
	return out
}

// into returns the values of an array. buffer, as long as the largest array, holds them if the array has no data.
func (a array) into(buffer []float32) []float32 {
	if a.Data != nil {
		return a.Data
	}
	values := buffer[:a.from.Len()]
	a.from.ReadAt(values, 0) //nolint:errcheck // it is the whole array
	return values
}

// written encodes arrays for storage: names and shapes first, then the values of one array at a time.
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

// read returns the values of array i; they are valid until the next call.
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

// recollection loads a stored state into the engine, array by array. Arrays that are not the engine's go to
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
