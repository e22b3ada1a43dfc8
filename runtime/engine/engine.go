package engine

import (
	"context"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// Spec says what an engine is made for.
type Spec = footprint.Spec

// Footprint is the memory of an engine.
type Footprint = footprint.Footprint

// Backend makes engines. It is safe for concurrent use.
type Backend interface {
	// Name is the backend's name in job files.
	Name() string

	// Supports returns Invalid for a network that New would refuse with any Spec.
	Supports(g *model.Graph) error

	// Footprint computes the memory of an engine by kind and category, without allocating it. It returns Invalid as New
	// does, but accepts networks of other binaries that have a description.
	Footprint(s Spec) (Footprint, error)

	// New makes an engine with all weights zero, or as a user's graph has them. It returns Invalid for a batch below 1,
	// an unknown loss and networks that Supports refuses. It returns OOM if it would need more than s.Memory, and
	// Unavailable if the system has too little memory.
	New(s Spec) (Engine, error)
}

// Engine computes with one network. It is for one goroutine. The same graph, weights, seed and batches give the same
// bits.
type Engine interface {
	// Init sets the weights that training starts from, those of InitWeights. They are the same on every backend, but for
	// users' programs, which draw their own from the seed.
	Init(init disdel.Init) error

	// SetRate sets the learning rate of the next steps, for schedules. It starts as the optimiser's.
	SetRate(rate float64)

	// SetSeed sets the seed of dropout. The count of steps starts again in every round, and with the same seed the same
	// values would be dropped.
	SetSeed(seed int64)

	// Step trains on one batch and returns the mean loss of its rows before the step. It returns Invalid for a batch
	// that does not fit or an engine that was not made for training. It returns Diverged for an input, a loss or a
	// gradient that is not finite. After an error no weight has changed.
	Step(b dataset.Batch) (disdel.Metrics, error)

	// Ahead transfers the next batch while the engine computes; nil if it computes in the caller's memory.
	Ahead() Ahead

	// Passes computes a slice of a network; nil if the engine has a whole network, or cannot.
	Passes() Passes

	// Evaluate returns the mean loss of a batch's rows, the class of each row's largest output (the first of equal ones),
	// and how many are right. It changes no array of State. It returns Invalid and Diverged as Step does.
	Evaluate(b dataset.Batch) (disdel.Metrics, error)

	// Predict returns the outputs for the rows of a batch, without its target: probabilities if the network ends in
	// softmax. Of a language model these are the probabilities of the token behind a row, and a row that comes alone may
	// be shorter than in training. An engine whose Spec.Continues is set computes only the tokens that the row before had
	// not. The caller owns the result.
	Predict(b dataset.Batch) (dataset.Matrix, error)

	// State lists the engine's arrays as views: weights and statistics in the order of the graph's Params, then, for
	// training, the count of steps and the optimiser's moments.
	State() []Array

	// Reset sets the arrays of a role back to their start: moments and the count of steps to zero, which also restarts
	// dropout's random numbers, and statistics to those of a batch norm without rows. It returns Invalid for weights: Init
	// sets them.
	Reset(r Role) error

	// Listener learns of the course of training; nil if the engine does not need to know.
	Listener() Listener

	// Footprint is what the backend's Footprint computed.
	Footprint() Footprint

	// Kernels names the kernels that compute, see package native/kernel: the same name gives the same bits on every
	// machine.
	Kernels() string
	// Close frees the engine's memory; it must not be used afterwards.
	Close() error
}

// Listener is an engine whose calls may last for ever, because a user's program computes them. The program also wants
// to know the course of training.
type Listener interface {
	// Until bounds the calls from now on: those that run when ctx ends are ended, and return Timeout after a deadline, else
	// the context's cause. The engine computes nothing after that. It ends them a little before the deadline, so that the
	// action can still say what hung. alive is false if the program has ended meanwhile: another engine is needed.
	Until(ctx context.Context) (alive bool)

	// BeginEpoch tells where in the job the next steps are.
	BeginEpoch(c Course)

	// Process is the process that computes, if it is no descendant of this one; else 0.
	Process() int

	// EndRound tells that the round has no more steps. The program may change its weights then. Errors are those of Step.
	EndRound() error
}

// Course is where in a job steps are.
type Course struct {
	Worker int // which trains them
	Epoch  int // of the job, counted from 0
	Epochs int // of the job
}

// Ahead transfers the next batch to an engine's device while the device computes. Its steps give the same bits as Step.
type Ahead interface {
	// Stage starts the transfer of the batch of the next StepStaged, and has read it when it returns. A staged batch
	// without a step is dropped, also by Step. It returns Invalid as Step does.
	Stage(b dataset.Batch) error

	// StepStaged is Step on the staged batch. It calls during, which may be nil, while the device computes; during may
	// stage the next batch and must call nothing else of the engine. The error is the step's, or that of during, which
	// does not undo the step. It returns Invalid without a staged batch.
	StepStaged(during func() error) (disdel.Metrics, error)
}

// Largest returns the index of the largest output of each row, the first of equal ones. Rows lie one behind another.
func Largest(outputs []float32, row int) []int32 {
	out := make([]int32, len(outputs)/row)
	for i := range out {
		values, best := outputs[i*row:(i+1)*row], 0
		for k, v := range values {
			if v > values[best] {
				best = k
			}
		}
		out[i] = int32(best)
	}
	return out
}

// Pass is a micro-batch of a step of a slice of a network.
type Pass struct {
	Rows  int // of the whole step
	First int // row of the step that the micro-batch begins with
	// Input is the rows of the data set of the micro-batch. Slices behind the first one train with Passes.Inputs and need
	// only the number of rows. If they predict, it is the outputs of the slice before.
	Input  dataset.Matrix
	Target dataset.Target // of the whole step; only the network's last slice takes it
	Tokens []float32      // rows of the whole step, for slices with Graph.ReadsTokens
	// Shared is for Backward, where Passes.Shared is a trained weight: the gradient of the micro-batch by that weight.
	// The slice with the later layer writes it, that with the embedding reads it.
	Shared []float32
}

// Lanes are values of a micro-batch in the order in which an engine computes: groups of Span lanes, of which the first
// Rows are a value of each row. What is in the other lanes counts nowhere. Neighbours of a slice have the same order.
type Lanes struct {
	Values     []float32
	Rows, Span int
}

// Len is the number of values of all rows.
func (l Lanes) Len() int { return len(l.Values) / l.Span * l.Rows }

// Block returns n values of the rows from the one with index first on. The caller does not change them.
func (l Lanes) Block(first, n int) []float32 {
	if l.Rows == l.Span {
		return l.Values[first : first+n]
	}
	out := make([]float32, 0, n)
	for g, row := first/l.Rows, first%l.Rows; len(out) < n; g, row = g+1, 0 {
		group := l.Values[g*l.Span:][row:l.Rows]
		out = append(out, group[:min(len(group), n-len(out))]...)
	}
	return out
}

// Set sets values of the rows from the one with index first on. Lanes of no row become 0.
func (l Lanes) Set(first int, values []float32) {
	if l.Rows == l.Span {
		copy(l.Values[first:], values)
		return
	}
	for g, row := first/l.Rows, first%l.Rows; len(values) > 0; g, row = g+1, 0 {
		group := l.Values[g*l.Span:][:l.Span]
		values = values[copy(group[row:l.Rows], values):]
		clear(group[l.Rows:])
	}
}

// Passes computes the steps of a slice of a network. The micro-batches of a step come in the order of their rows,
// Forward before Recompute and Backward; slices on other engines go on with what they return. All slices together
// change their weights by the same bits as an engine of the whole network with the same micro-batches. What is returned
// is part of the engine's memory, and valid until the next call.
type Passes interface {
	// Inputs is where the inputs of a micro-batch of so many rows belong, before Forward and again before Recompute. The
	// network's last slice takes them before Backward. It is not for the slice with the network's first layer.
	Inputs(rows int) Lanes

	// Forward computes a micro-batch and returns its outputs. It begins a step with the first micro-batch. It returns
	// Invalid and Diverged as Engine.Step does.
	Forward(p Pass) (Lanes, error)

	// Recompute computes the outputs of a micro-batch again, for Backward, and returns where their gradient belongs.
	Recompute(p Pass) (gradient Lanes, err error)

	// Backward adds the gradients of the weights of a micro-batch. The network's last slice computes forward first and
	// takes the gradient of its outputs from the targets. It begins a step with the first micro-batch, and returns the
	// mean loss of the step with the last one. The last micro-batch of a step changes the weights, unless Clip does. back
	// is the gradient of the input; empty if the slice has the network's first layer.
	Backward(p Pass) (back Lanes, m disdel.Metrics, err error)

	// Predict returns the outputs of a micro-batch, [rows][outputs], in an engine that was not made for training. Those of
	// the last slice are those of Engine.Predict. Each micro-batch has tokens of its own rows only.
	Predict(p Pass) ([]float32, error)

	// Measure is Engine.Evaluate for a micro-batch of the network's last slice, in an engine that was not made for
	// training.
	Measure(p Pass) (disdel.Metrics, error)

	// Squares are the sums of squares of the gradients of the slice's Params, after the last Backward of a step that clips
	// gradients; nil: it does not. No weight has changed then. Valid until the next call.
	Squares() []float64

	// Clip scales the gradients by their norm over all slices and changes the weights. squares are those of the whole
	// network's Params.
	Clip(squares []float64) error

	// Shared is the weight that an embedding in this slice shares with a layer of another one, in the layout in which
	// both compute; nil: there is none. The slice with the embedding changes it, if it is trained. The other one has to be
	// given its values before each step.
	Shared() (weight []float32, trained bool)
}
