package actions

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
)

// recall loads the state that an earlier leg or attempt of this round stored, and tells whether there was one. State
// that passes from round to round is loaded, too, or kept for from.
func (t *trainer) recall(ctx context.Context) (mid bool, err error) {
	again := t.req.Leg > 0 || t.req.Attempt > 1
	if t.req.Probe || !again && !t.carries() {
		return false, nil
	}
	if at := t.midway(); again && at != t.req.ID() {
		if mid, err = t.recallFrom(ctx, at); mid || err != nil || !t.carries() {
			return mid, err
		}
	}
	return t.recallFrom(ctx, t.req.ID())
}

// midway is where a worker's state inside a round is stored. Without an exchange it replaces the state of the round
// before. With one it is valid only as long as its deltas are in the store, so that the state of the round before
// stays.
func (t *trainer) midway() disdel.UpdateID {
	id := t.req.ID()
	if t.swap != nil {
		id.Level = 1
	}
	return id
}

func (t *trainer) recallFrom(ctx context.Context, at disdel.UpdateID) (mid bool, err error) {
	r := t.recollection()
	err = t.session.state(ctx, t.req, at, func(text string) (func(disdel.Tensor) error, error) {
		var n note
		if json.Unmarshal([]byte(text), &n) != nil || !n.Kept && !t.goesOn(&n) {
			return nil, nil
		}
		if mid = !n.Kept; mid {
			t.at = position{
				epoch: n.Epoch, batch: n.Next, done: n.Done, rows: n.Rows, seen: n.Seen, sum: n.Sum,
				losses: n.Losses, accuracies: n.Accuracies, blind: n.Right == nil,
			}
			if n.Right != nil {
				t.at.right = *n.Right
			}
		}
		r.kept = n.Kept
		return r.take, nil
	})
	// without it, the round is trained anew
	if k := disdel.KindOf(err); k == disdel.NotFound || k == disdel.Corrupt && (at != t.req.ID() || !t.carries()) {
		t.at, t.own, t.kept = position{}, false, nil // some of it may have been read
		return false, nil
	}
	if err != nil || !mid {
		return false, err
	}
	return true, t.differenceAgain(ctx)
}

// goesOn tells whether a state inside the round is valid: not for a plan that was given up, nor for deltas that were
// dropped when the round began again.
func (t *trainer) goesOn(n *note) bool {
	if t.swap != nil && n.Log == "" && n.Done > 0 { // of deltas, and it does not say which
		return false
	}
	return n.BatchSize == t.batch() && n.Shard == t.req.Shard && n.Log == t.swap.log()
}

// from starts the round from its reference, with the optimiser state that the job asks for.
func (t *trainer) from(ctx context.Context, reference disdel.Weights) error {
	weights, optimizer, _ := split(reference)
	t.statistics(weights)
	if err := engine.SetWeights(t.engine, weights); err != nil {
		return err
	}
	if err := t.difference(ctx, reference); err != nil {
		return err
	}
	switch {
	case t.req.Moments == disdel.StateAverage:
		if err := t.setOptimizerState(optimizer); err != nil {
			return err
		}
	case t.req.Moments == disdel.StateKeep && t.own: // as recall set it
	default:
		if err := t.engine.Reset(engine.Moment); err != nil {
			return err
		}
	}
	return nil
}

// statistics sets the running statistics of batch norms in w as the job asks for: the reference has their averages.
func (t *trainer) statistics(w disdel.Weights) {
	if t.req.Statistics != disdel.StateReset && t.req.Statistics != disdel.StateKeep {
		return
	}
	own := map[string]disdel.Tensor{}
	for _, v := range t.kept {
		own[v.Name] = v
	}
	trainable := map[string]bool{}
	for _, p := range t.graph.Params() {
		trainable[p.Name] = p.Trainable
	}
	for i, v := range w {
		if trainable[v.Name] {
			continue
		}
		mine, ok := own[v.Name]
		switch {
		case t.req.Statistics == disdel.StateKeep && ok && len(mine.Data) == len(v.Data):
			w[i].Data = mine.Data
		case t.req.Statistics == disdel.StateReset:
			w[i].Data = make([]float32, len(v.Data))
			if strings.HasSuffix(v.Name, "running_var") {
				for k := range w[i].Data {
					w[i].Data[k] = 1
				}
			}
		}
	}
}

// difference keeps the reference if updates are differences from it. Every worker computes that of the first round
// itself and stores it: the aggregation adds it once.
func (t *trainer) difference(ctx context.Context, reference disdel.Weights) error {
	if !t.req.Wire.Differences() {
		return nil
	}
	t.ref = reference
	if t.req.Round > 0 {
		return nil
	}
	if t.req.Moments == disdel.StateAverage {
		t.ref = append(t.ref, t.optimizerState()...)
	}
	return t.session.store.PutReference(ctx, t.req.Job, 0, t.ref)
}

// differenceAgain reads the reference again for a worker that continues in the middle of a round.
func (t *trainer) differenceAgain(ctx context.Context) error {
	if !t.req.Wire.Differences() {
		return nil
	}
	w, err := t.session.reference(ctx, t.req, t.like())
	t.ref = w
	return err
}
