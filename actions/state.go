package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// position is the progress of a worker in its round.
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
	blind      bool      // part of the round was trained without counting them: by an older version, or a program
}

func (p *position) step(m disdel.Metrics) {
	p.batch++
	p.done++
	p.rows += m.Rows
	p.seen += m.Rows
	p.sum += m.Loss * float64(m.Rows)
	p.right += max(0, m.Correct)
	p.blind = p.blind || m.Correct < 0
}

// endEpoch advances to the next epoch and returns the mean loss of the last one.
func (p *position) endEpoch() float64 {
	loss := p.sum / float64(max(p.seen, 1))
	p.losses = append(p.losses, loss)
	p.accuracies = append(p.accuracies, float64(p.right)/float64(max(p.seen, 1)))
	p.epoch, p.batch, p.seen, p.sum, p.right = p.epoch+1, 0, 0, 0, 0
	return loss
}

// note is the part of a worker's state that is not in tensors. Floats survive JSON with the same bits.
type note struct {
	Log       string               `json:",omitempty"` // of the round's deltas, which the state was made of; "": of none
	Kept      bool                 // only what goes from round to round, written at a round's end
	Part      disdel.PipelineStage `json:",omitzero"` // of the network; zero: all of it
	BatchSize int                  `json:"Batch"`     // rows of a batch that the position counts in
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
		Log: log, Kept: kept, Part: t.part(), BatchSize: t.batch(), Shard: t.req.Shard,
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

// optimizerState copies the optimiser's moments, with the names that they have in a state.
func (t *trainer) optimizerState() disdel.Weights {
	return renamed(engine.Moments(t.engine), optimizerPrefix, "")
}

func (t *trainer) setOptimizerState(w disdel.Weights) error {
	return engine.SetMoments(t.engine, renamed(w, "", optimizerPrefix))
}

// renamed adds a prefix to names, or removes one.
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

// like has the shapes of the job's reference.
func (t *trainer) like() disdel.Weights {
	if t.req.OptimizerState != disdel.StateAverage {
		return shapes(t.graph)
	}
	return withOptimizer(shapes(t.graph), t.graph, &t.req.Optimizer)
}

// withOptimizer adds the shapes of an optimiser's state to those of weights, with the engines' names. nil adds nothing.
func withOptimizer(w disdel.Weights, g *model.Graph, o *disdel.Optimizer) disdel.Weights {
	if o == nil {
		return w
	}
	w = append(w, disdel.Tensor{Name: optimizerPrefix + engine.StepCount, Shape: []int{1}})
	for _, kind := range o.MomentNames() {
		for _, p := range g.Params() {
			if p.Trainable {
				w = append(w, disdel.Tensor{Name: optimizerPrefix + p.Name + "." + kind, Shape: p.Shape})
			}
		}
	}
	return w
}

// carries tells whether a worker keeps state of its own from round to round.
func (t *trainer) carries() bool {
	return t.req.OptimizerState == disdel.StateKeep || t.req.Statistics == disdel.StateKeep || t.req.Wire.Differences()
}

// WorkerState is the name of a worker's own state in a checkpoint.
func WorkerState(worker int) string { return fmt.Sprintf("worker-%d.safetensors", worker) }

// array is a tensor of a worker's state. Without data it is read from the engine when it is needed, so that storing the
// state does not double the memory.
type array struct {
	disdel.Tensor
	from engine.Array
	at   int // the first of its values among those of from
}

func (a array) values() int { return model.Shape(a.Shape).Len() }

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
		switch {
		case !want(a.Role):
		case t.inBlocks():
			all = append(all, partsOf(a)...)
		default:
			all = append(all, array{Tensor: disdel.Tensor{Name: storedName(a), Shape: a.Shape}, from: a})
		}
	}
	return all
}

// storedValues bounds a part of an array in a stored state, but for whole rows.
const storedValues = 2 << 20

// partsOf is an array in parts that a worker without memory for a copy of it stores one after another.
func partsOf(a engine.Array) (out []array) {
	name := storedName(a)
	if a.Len() <= storedValues {
		return []array{{Tensor: disdel.Tensor{Name: name, Shape: a.Shape}, from: a}}
	}
	row := a.Len() / a.Shape[0]
	rows := max(1, storedValues/row)
	for at := 0; at < a.Shape[0]; at += rows {
		shape := append([]int{min(rows, a.Shape[0]-at)}, a.Shape[1:]...)
		out = append(out, array{
			Tensor: disdel.Tensor{Name: fmt.Sprintf("%s[%d]", name, at), Shape: shape}, from: a, at: at * row,
		})
	}
	return out
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
	values := buffer[:a.values()]
	a.from.ReadAt(values, a.at) //nolint:errcheck // it is within the array
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
			largest = max(largest, a.values())
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
	arrays map[string]array
}

func (t *trainer) recollection() *recollection {
	r := &recollection{t: t, arrays: map[string]array{}}
	for _, a := range t.engine.State() {
		r.arrays[storedName(a)] = array{from: a}
		for _, part := range partsOf(a) {
			r.arrays[part.Name] = part
		}
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
		r.t.own = r.t.own || optimizer
		if slices.Equal(v.Shape, a.from.Shape) {
			v.Name = a.from.Name
			return a.from.Set(v) // as older versions stored it, too
		}
		if slices.Equal(v.Shape, a.Shape) && len(v.Data) == a.values() {
			return a.from.WriteAt(v.Data, a.at)
		}
	}
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read state", Job: r.t.req.Job, Msg: "the network has no " + v.Name}
}

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
// before. With one it is valid only as long as its deltas are in the store. A stage's state is valid only as long as
// the other stages have theirs. So the state of the round before stays.
func (t *trainer) midway() disdel.UpdateID {
	id := t.req.ID()
	if t.swap != nil || t.stage != nil {
		id.Level = 1
	}
	return id
}

func (t *trainer) recallFrom(ctx context.Context, at disdel.UpdateID) (mid bool, err error) {
	r := t.recollection()
	err = t.session.state(ctx, t.req, at, func(text string) (func(disdel.Tensor) error, error) {
		var n note
		if json.Unmarshal([]byte(text), &n) != nil || n.Part != t.part() || !n.Kept && !t.goesOn(&n) {
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
	t.keepStatistics(weights)
	if err := engine.SetTrained(t.engine, weights); err != nil {
		return err
	}
	if err := t.difference(ctx, reference); err != nil {
		return err
	}
	return t.resetState(optimizer)
}

// resetState sets statistics and moments to what the round starts from. optimizer is the mean of the moments, if they
// are averaged.
func (t *trainer) resetState(optimizer disdel.Weights) error {
	if t.req.Statistics == disdel.StateReset {
		if err := t.engine.Reset(engine.Statistic); err != nil {
			return err
		}
	}
	switch {
	case t.opaque(): // it has more than what can be set
		return t.engine.Reset(engine.Moment)
	case t.req.OptimizerState == disdel.StateAverage:
		if err := t.setOptimizerState(optimizer); err != nil {
			return err
		}
	case t.req.OptimizerState == disdel.StateKeep && t.own: // as recall set it
	default:
		if err := t.engine.Reset(engine.Moment); err != nil {
			return err
		}
	}
	return nil
}

// opaque tells whether the optimiser has state that cannot be stored. A round that was killed then starts from its
// beginning, and a leg continues with a new optimiser.
func (t *trainer) opaque() bool { return t.req.Optimizer.Own != nil && t.req.Optimizer.Own.Opaque }

// keepStatistics replaces the averages of statistics in w by this worker's own, if the job asks for that.
func (t *trainer) keepStatistics(w disdel.Weights) {
	if t.req.Statistics != disdel.StateKeep {
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
		if mine, ok := own[v.Name]; ok && !trainable[v.Name] && len(mine.Data) == len(v.Data) {
			w[i].Data = mine.Data
		}
	}
}

// setStatistics sets the engine's statistics to this worker's own of the round before.
func (t *trainer) setStatistics() error {
	for _, a := range engine.Of(t.engine.State(), engine.Statistic) {
		for _, v := range t.kept {
			if v.Name != a.Name || len(v.Data) != a.Len() {
				continue
			}
			if err := a.WriteAt(v.Data, 0); err != nil {
				return err
			}
		}
	}
	return nil
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
	if t.req.OptimizerState == disdel.StateAverage {
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

// pauseOrSave stores the worker's state if it is due, and tells whether the activation must end now. last: the epoch
// has no more batches of the round, so that a push is better than a pause.
func (t *trainer) pauseOrSave(ctx context.Context, last bool) (stop bool, err error) {
	if t.req.Probe {
		return t.probed(), nil
	}
	if t.stage != nil { // all stages pause at once
		return false, nil
	}
	now := t.call.host.now()
	if t.near(ctx) && !(last && t.at.epoch+1 == t.req.Epochs) {
		t.res.Paused = true
		return true, t.save(ctx)
	}
	every := time.Duration(t.req.SaveEvery)
	if every > 0 && !t.opaque() && now.Sub(t.saved) >= max(every, saveShare*t.storing) {
		// A full store costs only what a failure would.
		if err := t.saveTimed(ctx, now); disdel.KindOf(err) != disdel.OverLimit {
			return false, err
		}
	}
	return false, nil
}

// near tells whether the deadline is so close that the worker must store its state and end.
func (t *trainer) near(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	reserve := t.reserve(deadline)
	if t.swap != nil { // it looks at the time so often while it waits for others
		reserve += 2 * aggregator.IdleEvery
	}
	return limited && deadline.Sub(t.call.host.now()) < reserve
}

// reserve is the time before a deadline that a worker needs for another batch and for storing its state.
func (t *trainer) reserve(deadline time.Time) time.Duration {
	return 2*t.longest + max(3*t.fetched, 2*t.storing) + deadline.Sub(t.start)/20
}

// saveShare is how many times the duration of storing its state a worker trains before it stores again. Over a slow
// network, storing a large state takes longer than SaveEvery.
const saveShare = 4

// saveTimed stores the worker's state and measures the time. The next one is due SaveEvery after its end.
func (t *trainer) saveTimed(ctx context.Context, begun time.Time) error {
	err := t.save(ctx)
	t.saved = t.call.host.now()
	t.storing = t.saved.Sub(begun)
	return err
}

// Bounds of a probe: enough batches that the slow first ones hardly count, and not longer than a person waits.
const (
	probeBatches = 50
	probeTime    = 2 * time.Second
)

func (t *trainer) probed() bool {
	t.res.Paused = t.at.done >= probeBatches || t.call.host.now().Sub(t.saved) >= probeTime
	return t.res.Paused
}

// save stores the worker's complete state inside its round, but for frozen weights.
func (t *trainer) save(ctx context.Context) error {
	all := t.arrays(func(r engine.Role) bool { return r != engine.Frozen })
	defer t.call.host.free() // what it went through would be there still when the update is copied, which takes as much
	all = append(all, t.swap.state()...)
	return t.store(ctx, t.midway(), false, newWritten(append(all, of(t.kept, residualPrefix)...)))
}

// carry stores the state that passes to this worker's next round. It comes before the update: the round's checkpoint
// needs it.
func (t *trainer) carry(ctx context.Context, residual disdel.Weights) error {
	if !t.carries() {
		return nil
	}
	all := t.arrays(func(r engine.Role) bool {
		return r == engine.Moment && t.req.OptimizerState == disdel.StateKeep ||
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
	return t.session.checkpointState(ctx, t.req, text, state.shapes, state.read)
}

// residual is the rounding error of the last round's update.
func (t *trainer) residual() disdel.Weights {
	_, _, r := split(t.kept)
	if r == nil {
		return nil
	}
	return renamed(r, "", residualPrefix)
}
