package simulate

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// misled is a policy that is told wrong times: those of every number of workers but the one that the job began with,
// times a factor and, where there is noise, times another of each round's own. What it then does worse is what an error
// of its estimates costs.
type misled struct {
	scheduler.Policy
	factor, noise float64
	job           disdel.JobID
}

func (m misled) Decide(in scheduler.Input) disdel.Decision {
	if len(in.Seen) > 0 {
		first := in.Seen[0].Setting.Workers
		in.Seen = slices.Clone(in.Seen)
		for i := range in.Seen {
			if o := &in.Seen[i]; o.Setting.Workers != first {
				wrong := m.factor * m.luck(o.Round)
				o.Duration, o.Compute = times(o.Duration, wrong), times(o.Compute, wrong)
			}
		}
	}
	return m.Policy.Decide(in)
}

// luck is what a round's time is told wrong by, the same whenever it is told.
func (m misled) luck(round int) float64 {
	if m.noise == 0 {
		return 1
	}
	const errors = 77
	return math.Exp(m.noise * rand.New(rand.NewPCG(scheduler.Seed(m.job, round), errors)).NormFloat64())
}
