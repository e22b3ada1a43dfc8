package engine

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Pass is a micro-batch of a step of a slice of a network.
type Pass struct {
	Rows   int            // of the whole step
	First  int            // row of the step that the micro-batch begins with
	Input  dataset.Matrix // of the micro-batch: rows of the data set, or outputs of the slice before
	Target dataset.Target // of the whole step; only the network's last slice takes it
}

// Passes computes the steps of a slice of a network. The micro-batches of a step come in the order of their rows,
// Forward before Backward; slices on other engines go on with what they return. All slices together change their
// weights by the same bits as an engine of the whole network with the same micro-batches.
type Passes interface {
	// Forward returns the outputs of a micro-batch, [rows][outputs], valid until the next call. It begins a step with the
	// first micro-batch. It returns Invalid and Diverged as Engine.Step does.
	Forward(p Pass) ([]float32, error)

	// Backward computes a micro-batch again and adds the gradients of the weights. gradient is that of the outputs; the
	// network's last slice computes its own from the targets, begins a step with the first micro-batch, and returns the
	// mean loss of the step with the last one. The last micro-batch of a step changes the weights. back is the gradient
	// of the input, valid until the next call; nil if the slice has the network's first layer.
	Backward(p Pass, gradient []float32) (back []float32, m disdel.Metrics, err error)
}
