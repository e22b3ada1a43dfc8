package actions

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
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
	if t.req.Moments != disdel.StateAverage {
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
	return t.req.Moments == disdel.StateKeep || t.req.Statistics == disdel.StateKeep || t.req.Wire.Differences()
}

// WorkerState is the name of a worker's own state in a checkpoint.
func WorkerState(worker int) string { return fmt.Sprintf("worker-%d.safetensors", worker) }
