package engine

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// Spec is what an engine is made for.
type Spec = footprint.Spec

// Footprint is what an engine takes of memory.
type Footprint = footprint.Footprint

// Backend makes engines. It is safe for concurrent use.
type Backend interface {
	// Name is what a job asks for it by.
	Name() string

	// Supports returns Invalid for a network that New would refuse whatever the rest of the Spec is.
	Supports(g *model.Graph) error

	// Footprint is what an engine would take, by kind of memory and category, without building anything of the
	// network's size. It returns Invalid as New does, but also knows networks that only another binary can compute, as
	// long as that has described them.
	Footprint(s Spec) (Footprint, error)

	// New makes an engine with all weights zero, or as a user's graph has them. It returns Invalid for a batch below 1,
	// an unknown loss and what Supports refuses, OOM where the memory is known to be more than s.Memory, and
	// Unavailable where the system has not that much.
	New(s Spec) (Engine, error)
}

// Engine computes with one network. It is for one goroutine. The same graph, weights, seed and batches give the same
// bits.
type Engine interface {
	// Init sets the weights that a training starts from, those of InitWeights, which are the same on every backend.
	Init(init disdel.Init) error

	// SetRate sets the learning rate of the steps to come, for schedules. It starts as the optimiser's.
	SetRate(rate float64)

	// SetSeed sets the seed of dropout: steps counted from zero again, round after round, would drop the same values.
	SetSeed(seed int64)

	// Step trains on one batch and returns the mean loss of its rows before the step. It returns Invalid for a batch
	// that does not fit or an engine that was not made for training, and Diverged for an input, a loss or a gradient
	// that is not finite; then no weight was changed.
	Step(b dataset.Batch) (disdel.Metrics, error)

	// Ahead takes the next batch while the engine computes with one; nil where it computes in the caller's own memory.
	Ahead() Ahead

	// Evaluate returns the mean loss of a batch's rows, the class of each row's largest output (of several alike the
	// first), and how many of them are the row's own. It changes no array of State. It returns Invalid and Diverged as
	// Step does.
	Evaluate(b dataset.Batch) (disdel.Metrics, error)

	// Predict returns the outputs for the rows of a batch, whose target counts for nothing: probabilities where the
	// network ends in softmax. The result is the caller's.
	Predict(b dataset.Batch) (dataset.Matrix, error)

	// State lists the engine's arrays, which are views of it: weights and statistics in the order of the graph's
	// Params, then, of an engine for training, the count of steps and the optimiser's moments.
	State() []Array

	// Reset puts the arrays of a role back to what they are before the first step: moments and the count of steps to
	// zero, from where dropout's numbers start anew too, and statistics to those of a batch norm without rows. It
	// returns Invalid for weights, which Init draws.
	Reset(r Role) error

	// Footprint is what its backend said that the engine would take.
	Footprint() Footprint

	// Kernels names what the engine's numbers are computed by, a path of package native/kernel: the same path gives the
	// same bits on every machine.
	Kernels() string
	// Close frees the engine's memory; it must not be used afterwards.
	Close() error
}
