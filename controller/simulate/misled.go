package simulate

import (
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// misled is a policy that is told wrong times: those of every number of workers but the one that the job began with,
// times a factor. What it then does worse is what an error of its estimates costs.
type misled struct {
	scheduler.Policy
	factor float64
}

func (m misled) Decide(in scheduler.Input) disdel.Decision {
	if len(in.Seen) > 0 {
		first := in.Seen[0].Setting.Workers
		in.Seen = slices.Clone(in.Seen)
		for i := range in.Seen {
			if o := &in.Seen[i]; o.Setting.Workers != first {
				o.Duration, o.Compute = times(o.Duration, m.factor), times(o.Compute, m.factor)
			}
		}
	}
	return m.Policy.Decide(in)
}
