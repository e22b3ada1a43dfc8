package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Plateau halves the workers when the training loss stalls: when three epochs in a row have not fallen more than 1 %
// below the reference loss. The reference is the first epoch's loss, and then that of each epoch that did; so a loss
// that falls slowly but steadily is no stall. After a halving it waits for three more epochs. Of an odd number the
// larger half stays, one worker at least.
type Plateau struct{}

// The constants of plateau.
const (
	plateauGain   = 0.99 // of the reference loss: an epoch below it is an improvement
	plateauEpochs = 3    // in a row without an improvement
)

// Name returns the policy's name in job files.
func (Plateau) Name() string { return "plateau" }

// Meaning returns what explain says.
func (Plateau) Meaning() string {
	return "halves them where the training loss has not fallen by more than 1 % for three epochs"
}

// Decide tells whether the newest epoch ends a stall.
func (Plateau) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	var by float64 // the reference loss
	still := 0     // epochs in a row without improvement, since the newest halving
	stalled := false
	for i, e := range epochs(in.Seen) {
		loss := e.meanLoss()
		stalled = false
		switch {
		case i == 0:
			by, out.Why = loss, fmt.Sprintf("train loss %.4f in the first epoch", loss)
		case loss < plateauGain*by:
			out.Why = fmt.Sprintf("train loss %.4f, after %.4f", loss, by)
			by, still = loss, 0
		default:
			still++
			out.Why = fmt.Sprintf("train loss %.4f: not more than 1 %% below %.4f for %d of %d epochs",
				loss, by, still, plateauEpochs)
			if stalled = still == plateauEpochs; stalled {
				still = 0
			}
		}
	}
	switch n := in.Now.Workers; {
	case out.Why == "":
	case !stalled:
		out.Why += ": as many workers"
	case n == 1:
		out.Why += ": one worker stays"
	default:
		out.Next.Workers = (n + 1) / 2
		out.Why += ": half as many workers"
	}
	return out
}
