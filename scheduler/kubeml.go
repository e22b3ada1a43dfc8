package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// KubeML is the rule of KubeML's scheduler as in its code (ThroughputBasedPolicy; section 3.4.2 of the thesis says
// less). After every epoch there is one worker more if the epoch took at most 1.05 times the reference time, and one
// less if it took at least 1.2 times as long. The rule has no bounds of its own; the job's apply. One thing differs
// from the code: an epoch's time includes its aggregation here.
type KubeML struct{}

// The rule's two thresholds.
const (
	kubeMLGood = 1.05
	kubeMLBad  = 1.2
)

// Name returns the policy's name in job files.
func (KubeML) Name() string { return disdel.PolicyKubeML }

// Meaning returns what explain says.
func (KubeML) Meaning() string { return "is the rule that KubeML published" }

// Decide follows the rule from the job's first epoch on.
func (KubeML) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	var by disdel.Millis // the reference epoch's time
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
