package engine

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

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
