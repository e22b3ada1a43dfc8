package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Plateau halves the workers when the training loss stalls: when three epochs in a row have not come more than 1 %
// below the loss that they are held against. That is the first epoch's, and then that of each epoch which did; so a
// loss that falls slowly but steadily is no stall. After a halving three more epochs are waited for. Of an odd number
// the larger half stays, one worker at least.
type Plateau struct{}

// What plateau goes by.
const (
	plateauGain   = 0.99 // of the loss that epochs are held against: one below it is an improvement
	plateauEpochs = 3    // in a row without one
)

// Name is the word of job files.
func (Plateau) Name() string { return "plateau" }

// Meaning is what explain says.
func (Plateau) Meaning() string {
	return "halves them where the training loss has not fallen by more than 1 % for three epochs"
}

// Decide goes through the epochs so far and says whether the newest ends a stall.
func (Plateau) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	var by float64 // the loss that epochs are held against
	still := 0     // epochs in a row that were no improvement, since the newest halving
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
