package engine

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Ahead is the side of an Engine that has the next batch brought to where it computes while it computes with one. Its
// steps come to the same bits as Step's.
type Ahead interface {
	// Stage has a batch on its way, which has been read when it returns: that of the next StepStaged. One that was staged
	// before, and that no step was made on, is forgotten; so it is by Step. It returns Invalid as Step does.
	Stage(b dataset.Batch) error

	// StepStaged is Step on the batch that was staged. during, which may be nil, is called while that is computed with,
	// and may stage the next one; it must call nothing else of the engine. The error is the step's, else what during
	// returns, after which the step has been made all the same. It returns Invalid where no batch is staged.
	StepStaged(during func() error) (disdel.Metrics, error)
}
