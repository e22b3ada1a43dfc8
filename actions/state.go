package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// position is how far a worker is in its round.
type position struct {
	epoch  int // of the round
	batch  int // next one of that epoch
	done   int // batches of the round
	rows   int // of the round
	seen   int // rows of the epoch, as far as the round has them
	sum    float64
	losses []float64 // by epoch of the round

	right      int       // of the rows seen
	accuracies []float64 // by epoch of the round
	blind      bool      // part of the round was trained by a version that did not count them
}

func (p *position) step(m disdel.Metrics) {
	p.batch++
	p.done++
	p.rows += m.Rows
	p.seen += m.Rows
	p.sum += m.Loss * float64(m.Rows)
	p.right += m.Correct
}

// endEpoch goes on to the next epoch and returns the mean loss of the last.
func (p *position) endEpoch() float64 {
	loss := p.sum / float64(max(p.seen, 1))
	p.losses = append(p.losses, loss)
	p.accuracies = append(p.accuracies, float64(p.right)/float64(max(p.seen, 1)))
	p.epoch, p.batch, p.seen, p.sum, p.right = p.epoch+1, 0, 0, 0, 0
	return loss
}

// note is a worker's state in words: what its tensors do not say. Numbers in JSON come back with the same bits.
type note struct {
	Log       string `json:",omitempty"` // of the round's deltas, which the state was made of; "": of none
	Kept      bool   // only what goes from round to round, written at a round's end
	BatchSize int    `json:"Batch"` // rows of a batch that the position counts in
	Shard     disdel.RowRange
	Epoch     int
	Next      int
	Done      int
	Rows      int
	Seen      int
	Sum       float64
	Losses    []float64

	Right      *int      `json:",omitempty"` // nil: not counted
	Accuracies []float64 `json:",omitempty"`
}

func (t *trainer) note(kept bool) (string, error) {
	p := t.at
	var right *int
	if !p.blind {
		right = &p.right
	}
	log := t.swap.log()
	if kept {
		log = ""
	}
	text, err := json.Marshal(note{
		Log: log, Kept: kept, BatchSize: t.batch(), Shard: t.req.Shard,
		Epoch: p.epoch, Next: p.batch, Done: p.done, Rows: p.rows,
		Seen: p.seen, Sum: p.sum, Losses: p.losses, Right: right, Accuracies: p.accuracies,
	})
	if err != nil {
		return "", &disdel.Error{
			Kind: disdel.Diverged, Op: "store state", Job: t.req.Job, Msg: "the loss is not finite",
			Hint: "lower the learning rate",
		}
	}
	return string(text), nil
}

// The names of a worker's state beside the weights.
const (
	optimizerPrefix = "optimizer."
	residualPrefix  = "residual."
)

// optimizerState is copies of the optimiser's moments, under the names that they have in a state.
func (t *trainer) optimizerState() disdel.Weights {
	return renamed(engine.Moments(t.engine), optimizerPrefix, "")
}

func (t *trainer) setOptimizerState(w disdel.Weights) error {
	return engine.SetMoments(t.engine, renamed(w, "", optimizerPrefix))
}

// renamed puts a prefix before names, or takes one away.
func renamed(w disdel.Weights, add, cut string) disdel.Weights {
	out := make(disdel.Weights, len(w))
	for i, v := range w {
		v.Name = add + strings.TrimPrefix(v.Name, cut)
		out[i] = v
	}
	return out
}

// split sorts tensors by the prefix of their names.
func split(w disdel.Weights) (weights, optimizer, residual disdel.Weights) {
	for _, v := range w {
		switch {
		case strings.HasPrefix(v.Name, optimizerPrefix):
			optimizer = append(optimizer, v)
		case strings.HasPrefix(v.Name, residualPrefix):
			residual = append(residual, v)
		default:
			weights = append(weights, v)
		}
	}
	return weights, optimizer, residual
}

// like is what a reference of the job looks like.
func (t *trainer) like() disdel.Weights {
	if t.req.Moments != disdel.StateAverage {
		return shapes(t.graph)
	}
	return withOptimizer(shapes(t.graph), t.graph, &t.req.Optimizer)
}

// withOptimizer adds an optimiser's state to the shapes of weights, under the names that engines give it. nil adds
// nothing.
func withOptimizer(w disdel.Weights, g *model.Graph, o *disdel.Optimizer) disdel.Weights {
	if o == nil {
		return w
	}
	w = append(w, disdel.Tensor{Name: optimizerPrefix + engine.StepCount, Shape: []int{1}})
	for _, kind := range engine.MomentNames(*o) {
		for _, p := range g.Params() {
			if p.Trainable {
				w = append(w, disdel.Tensor{Name: optimizerPrefix + p.Name + "." + kind, Shape: p.Shape})
			}
		}
	}
	return w
}

// carries tells whether a worker has state of its own from round to round.
func (t *trainer) carries() bool {
	return t.req.Moments == disdel.StateKeep || t.req.Statistics == disdel.StateKeep || t.req.Wire.Differences()
}

// recall sets the state that an earlier leg or attempt of this round stored, and tells whether there was one. What only
// goes from round to round is set, too, or kept for from.
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

// midway is where a worker's state inside its round is stored. Where nothing is exchanged it takes the place of what
// came from the round before, of which it is made, however often the round is begun. Where deltas are, it is of use
// only as long as those lie there that it was made of, and what came from the round before stays beside it.
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

// goesOn tells whether a state inside the round is one to go on from: not of a plan that was given up, nor of deltas
// that were forgotten when the round was begun anew, also where nobody has sent any since.
func (t *trainer) goesOn(n *note) bool {
	if t.swap != nil && n.Log == "" && n.Done > 0 { // of deltas, and it does not say which
		return false
	}
	return n.BatchSize == t.batch() && n.Shard == t.req.Shard && n.Log == t.swap.log()
}

// WorkerState is the name of a worker's own state in a checkpoint.
func WorkerState(worker int) string { return fmt.Sprintf("worker-%d.safetensors", worker) }

// from starts the round at its reference, with the state that the job's upkeep says.
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

// statistics changes the running statistics of batch norms in w as the job says: the reference has their averages.
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

// pauseOrSave stores the worker's state where its time is due, and tells whether the activation must end now. last: the
// round has no more batches after this one in the epoch, and a pause would be worth less than the push.
func (t *trainer) pauseOrSave(ctx context.Context, last bool) (stop bool, err error) {
	if t.req.Probe {
		return t.probed(), nil
	}
	now := t.call.host.now()
	if t.near(ctx) && !(last && t.at.epoch+1 == t.req.Epochs) {
		t.res.Paused = true
		return true, t.save(ctx)
	}
	if every := time.Duration(t.req.SaveEvery); every > 0 && now.Sub(t.saved) >= max(every, saveShare*t.storing) {
		// a store without room for it costs only what a failure would
		if err := t.saveTimed(ctx, now); disdel.KindOf(err) != disdel.OverLimit {
			return false, err
		}
	}
	return false, nil
}

// near tells whether the deadline is so near that a worker has to store its state and end.
func (t *trainer) near(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	reserve := 2*t.longest + max(3*t.fetched, 2*t.storing) + deadline.Sub(t.start)/20
	if t.swap != nil { // it looks at the time so often while it waits for others
		reserve += 2 * aggregator.IdleEvery
	}
	return limited && deadline.Sub(t.call.host.now()) < reserve
}

// saveShare is how many times as long as it took to store its state a worker trains before it does so again: over a
// slow way to the store a large state takes longer than SaveEvery, and it would do nothing else.
const saveShare = 4

// saveTimed stores the worker's state and measures that. The time to the next one counts from its end.
func (t *trainer) saveTimed(ctx context.Context, begun time.Time) error {
	err := t.save(ctx)
	t.saved = t.call.host.now()
	t.storing = t.saved.Sub(begun)
	return err
}

// The bounds of a probe: enough batches that the first, slow ones do not count for much, and no more time than a person
// waits.
const (
	probeBatches = 50
	probeTime    = 2 * time.Second
)

func (t *trainer) probed() bool {
	t.res.Paused = t.at.done >= probeBatches || t.call.host.now().Sub(t.saved) >= probeTime
	return t.res.Paused
}

// save stores all that a worker is inside its round.
func (t *trainer) save(ctx context.Context) error {
	all := t.arrays(func(engine.Role) bool { return true })
	defer t.call.host.free() // what it went through would be there still when the update is copied, which takes as much
	all = append(all, t.swap.state()...)
	return t.store(ctx, t.midway(), false, newWritten(append(all, of(t.kept, residualPrefix)...)))
}

// carry stores what goes on with this worker in the next round.
func (t *trainer) carry(ctx context.Context, residual disdel.Weights) error {
	if !t.carries() {
		return nil
	}
	all := t.arrays(func(r engine.Role) bool {
		return r == engine.Moment && t.req.Moments == disdel.StateKeep ||
			r == engine.Statistic && t.req.Statistics == disdel.StateKeep
	})
	all = append(all, of(renamed(residual, residualPrefix, ""), residualPrefix)...)
	next := t.req.ID()
	next.Round++
	defer t.call.host.free() // as in save
	state := newWritten(all)
	if err := t.store(ctx, next, true, state); err != nil || t.req.StateCheckpoint == "" {
		return err
	}
	text, err := t.note(true)
	if err != nil {
		return err
	}
	if err := t.session.checkpointState(ctx, t.req, text, state.shapes, state.read); err != nil && ctx.Err() != nil {
		return err
	} else if err != nil {
		t.res.Unsaved = disdel.AsError(err) // the round's checkpoint is not written then
	}
	return nil
}

// residual is what the last round's update lost on the wire.
func (t *trainer) residual() disdel.Weights {
	_, _, r := split(t.kept)
	if r == nil {
		return nil
	}
	return renamed(r, "", residualPrefix)
}

// difference keeps the reference where updates are differences to it. The first round's, which every worker makes for
// itself, goes into the store too: the aggregation adds it once.
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

// differenceAgain reads the reference once more for a worker that goes on in the middle of a round.
func (t *trainer) differenceAgain(ctx context.Context) error {
	if !t.req.Wire.Differences() {
		return nil
	}
	w, err := t.session.reference(ctx, t.req, t.like())
	t.ref = w
	return err
}
