package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// KubeML is the rule of KubeML's scheduler as its code has it (ThroughputBasedPolicy; the thesis' section 3.4.2 says
// less): after every epoch one worker more while the epoch took at most 1.05 times as long as the one that it goes by,
// one less where it took 1.2 times as long or more. It has no floor and no ceiling of its own; Ask keeps it within the
// job's. Ours differs in one thing: an epoch's time has its aggregation in it, which KubeML's leaves out.
type KubeML struct{}

// The rule's two thresholds.
const (
	kubeMLGood = 1.05
	kubeMLBad  = 1.2
)

// Name is the word of job files.
func (KubeML) Name() string { return disdel.PolicyKubeML }

// Meaning is what explain says.
func (KubeML) Meaning() string { return "is the rule that KubeML published" }

// Decide follows the rule from the job's first epoch on.
func (KubeML) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	var by disdel.Millis // the epoch that others are held against
	step := 0
	for _, e := range epochs(in.Seen) {
		took := e.duration
		switch {
		case by == 0:
			by, step, out.Why = took, 1, fmt.Sprintf("the first epoch took %s: one worker more", took.Text())
		case float64(took) <= kubeMLGood*float64(by):
			out.Why = fmt.Sprintf("an epoch took %s, after one of %s: one worker more", took.Text(), by.Text())
			by, step = took, 1
		case float64(took) >= kubeMLBad*float64(by):
			out.Why = fmt.Sprintf("an epoch took %s, after one of %s: one worker less", took.Text(), by.Text())
			by, step = took, -1
		default:
			step = 0
			out.Why = fmt.Sprintf("an epoch took %s, and %s is what it goes by: as many workers", took.Text(), by.Text())
		}
	}
	out.Next.Workers += step
	return out
}
