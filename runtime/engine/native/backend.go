package native

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Backend makes engines with a static plan.
type Backend struct{}

// Name implements engine.Backend.
func (Backend) Name() string { return disdel.BackendNative }

// Supports implements engine.Backend: every network but those of a program's own.
func (Backend) Supports(g *model.Graph) error { return plan.Supports(g) }

// New implements engine.Backend.
func (Backend) New(s engine.Spec) (engine.Engine, error) {
	e, err := New(s)
	if err != nil {
		return nil, err // not a nil *Engine, which is no nil engine.Engine
	}
	return e, nil
}

// Footprint implements engine.Backend: the slab is exact, and so is the heap that goes with the batch.
func (Backend) Footprint(s engine.Spec) (engine.Footprint, error) {
	p, err := PlanOf(s)
	if err != nil {
		return engine.Footprint{}, err
	}
	return footprintOf(p, s.BatchSize), nil
}

// PlanOf returns the plan of the engine that New would make, with its exact bytes, without allocating them. It returns
// Invalid as New does.
func PlanOf(s engine.Spec) (*plan.Plan, error) {
	if s.BatchSize < 1 {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine",
			Msg: fmt.Sprintf("a batch of %d rows", s.BatchSize),
		}
	}
	if !s.Precision.Short() {
		if err := s.OnlyFloat32(disdel.BackendNative); err != nil {
			return nil, err
		}
	} else if !plan.MayShorten(s.Graph) {
		return nil, refusal("training.precision",
			s.Graph.Name+" has layers of sequences, which are trained with float32", "leave training.precision out")
	}
	rows, parts, text := s.BatchSize, false, s.Continues && !s.Training && plan.ContinuesTexts(s.Graph)
	switch {
	case text:
		rows = min(plan.TextRows, s.Graph.Input().Len())
	case !s.Training: // a large batch is computed in pieces
		rows = min(rows, plan.Piece(s.Graph))
	case s.MicroBatch > 0 && s.MicroBatch < rows:
		rows, parts = s.MicroBatch, true
	}
	if err := checkStepMemory(&s, parts); err != nil {
		return nil, err
	}
	keep, err := s.Graph.Kept(s.Recompute.Layers())
	if err != nil {
		return nil, err
	}
	return plan.New(s.Graph, plan.Spec{
		BatchSize: rows, Training: s.Training, Moments: s.Optimizer.Moments(), KeepGrads: s.ClipNorm > 0,
		ShortMoments: s.StateFormat.Short(), SumGrads: parts, Recompute: s.Recompute.Some(), Keep: keep, Exact: s.Exact,
		Halves: s.Precision.Short(), PagedMoments: s.StateFormat.Paged(), Text: text,
		PartGrads: s.StateFormat.Paged() && s.ClipNorm <= 0 && !parts && !s.Precision.Short() && s.Optimizer.LAMB == nil,
		Sigmoid:   s.Loss == BinaryCrossEntropy && !s.Graph.Slice.Leaves(),
	})
}

// checkStepMemory returns Invalid for batch norms of micro-batches in an exact training, since they see fewer rows, and
// for activations that are both rounded and computed again. Moments of 8 bits need moments that may be rounded.
func checkStepMemory(s *engine.Spec, parts bool) error {
	norm := func(n model.Node) bool { return n.Op == model.OpBatchNorm }
	switch {
	case s.Training && s.Recompute.Some() && s.Precision.Short():
		return refusal("training.recompute", "activations of bf16 are not computed again",
			"leave training.recompute or training.precision out")
	case s.Training && s.StateFormat.Short() && s.Optimizer.Adagrad != nil:
		return refusal("training.optimizerState", "8 bits lose what adagrad adds to its sums",
			"leave training.optimizerState out, or choose rmsprop")
	case s.Training && s.StateFormat.Short() && s.Optimizer.LAMB != nil:
		return refusal("training.optimizerState",
			"lamb reads its moments again before a step, and 8 bits would have rounded them",
			"write paged, leave training.optimizerState out, or choose adamw")
	case s.Training && s.StateFormat.Short() && (s.Exact || s.Optimizer.Moments() == 0):
		return refusal("training.optimizerState", "an exact training, or one without moments, has none of 8 bits",
			"leave training.optimizerState out")
	case s.Training && s.StateFormat.Paged() && s.Optimizer.Moments() == 0:
		return refusal("training.optimizerState", "there are no moments that a file could keep",
			"leave training.optimizerState out")
	case parts && s.Exact && slices.ContainsFunc(s.Graph.Nodes, norm):
		return refusal("training.exact", fmt.Sprintf("batch norm would see micro-batches of %d rows instead of %d",
			s.MicroBatch, s.BatchSize), "leave training.microBatch or training.exact out")
	case s.Training && s.Graph.Slice != nil && s.Precision.Short():
		return refusal("distribution.stages", "stages compute with float32", "leave training.precision out")
	default:
		return nil
	}
}

// refusal is the error of a job's field that a network does not go with.
func refusal(path, msg, hint string) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "make engine", Path: path, Msg: path + ": " + msg, Hint: hint,
	}
}

// inSlab maps the categories of a plan. Gaps in its layout count as workspace.
var inSlab = map[plan.Category]footprint.Category{
	plan.Weights: footprint.Weights, plan.Moments: footprint.Moments, plan.Gradients: footprint.Gradients,
	plan.Activations: footprint.Activations, plan.Backward: footprint.Backward, plan.Workspace: footprint.Workspace,
}

func footprintOf(p *plan.Plan, rows int) engine.Footprint {
	peak, gaps := p.ByCategory()
	peak[plan.Workspace] += gaps
	f := engine.Footprint{Basis: footprint.Planned}
	for _, c := range plan.Categories {
		f.Parts = append(f.Parts, footprint.Part{Category: inSlab[c], Memory: footprint.Host, Bytes: peak[c]})
	}
	f.Parts = append(f.Parts, footprint.Part{
		Category: footprint.Batch, Memory: footprint.Heap, Bytes: batchBytes(p, rows),
	})
	if p.Spec.Training {
		f.Layers, f.Extra = layersOf(p), p.Extra(rows)
	}
	return f
}

// batchBytes is a batch as it is handed over, and its outputs.
func batchBytes(p *plan.Plan, rows int) disdel.Bytes {
	n := rows * (p.Graph.Input().Len() + outputs(p.Graph))
	if p.Graph.Slice != nil && p.Spec.Training {
		n = passedValues(p, rows)
	}
	if p.Graph.PredictsTokens() && !p.Spec.Text { // a loss for each position, and whether it was right
		n += 9 * p.Graph.Output()[1] * p.Lanes / 4
	}
	return 4 * disdel.Bytes(n)
}

// passedBlock is the number of values that a slice sends or receives at once. passedBlocks are on their way.
const (
	passedBlock  = 1 << 18
	passedBlocks = 2
)

// passedValues are the values of a slice's batch: rows of the data set and outputs at the network's ends, tokens for
// masks, and what is on its way. Inputs, outputs and gradients of a slice are in the slab alone.
func passedValues(p *plan.Plan, rows int) int {
	s, in, out := p.Graph.Slice, p.Graph.Input().Len(), outputs(p.Graph)
	n := passedBlocks*min(passedBlock, p.Spec.BatchSize*max(in, out)) + sharedValues(p)
	switch {
	case !s.Enters():
		n += rows * in
	case !s.Leaves() || p.Graph.ReadsTokens():
		n += rows * s.Whole.Input().Len()
	}
	if s.Leaves() {
		return n
	}
	return n + rows*out
}

// sharedValues are those of a weight that another slice has, too: its gradient comes or goes apart from the others.
func sharedValues(p *plan.Plan) int {
	for i := range p.Params {
		if q := &p.Params[i]; q.Grad.Len > 0 && (p.Graph.Nodes[q.Node].Lent || p.Graph.Nodes[q.Node].Borrows) {
			return q.Value.Len
		}
	}
	return 0
}

func layersOf(p *plan.Plan) []footprint.Layer {
	weights, others := p.ByNode()
	out := make([]footprint.Layer, len(weights))
	for i := range out {
		out[i] = footprint.Layer{Weights: weights[i], Others: others[i]}
	}
	return out
}
