package executor

import (
	"time"

	"github.com/disdel/disdel"
)

// The Timeout Manager's margins: a measured duration is doubled, because shared machines vary, and never below ten
// seconds, because a cold start may take that on a busy one.
const (
	timeoutFactor = 2
	leastTimeout  = 10 * time.Second
)

// Timeouts is the Timeout Manager of DiSDeL III-B.2b: from the longest duration that an activation of the same task took
// in earlier jobs of this network, data set, batch and number of workers; without any, from the cost the user expects,
// e_time = (e_cost / c_d) / (mu m_e) with the cost in GB-s and so mu = 1; without that, the platform's maximum. An earlier
// timeout counts as a duration, so that the next job gets more. It is pure.
func Timeouts(history []disdel.Record, plan disdel.Plan, job disdel.Job) (map[disdel.Task]disdel.Millis, string) {
	longest := longestDurations(history, plan)
	out := map[disdel.Task]disdel.Millis{}
	if _, known := longest[disdel.TaskTrain]; known {
		for _, a := range plan.Actions {
			out[a.Task] = plan.Platform.MaxTimeout
			if d, ok := longest[a.Task]; ok {
				out[a.Task] = clamp(max(timeoutFactor*d, leastTimeout), plan.Platform)
			}
		}
		return out, "history"
	}
	source := "platform maximum"
	limit := plan.Platform.MaxTimeout
	if cost := job.Resources.MaxCost; cost > 0 && plan.Workers > 0 {
		train, _ := plan.Action(disdel.TaskTrain)
		seconds := cost / float64(plan.Workers) / (float64(train.Limits.Memory) / float64(disdel.GB))
		limit, source = clamp(time.Duration(seconds*float64(time.Second)), plan.Platform), "cost"
	}
	for _, a := range plan.Actions {
		out[a.Task] = limit
	}
	return out, source
}

func clamp(d time.Duration, p disdel.PlatformLimits) disdel.Millis {
	return min(max(disdel.Millis(d), p.MinTimeout), p.MaxTimeout)
}

// longestDurations looks at jobs whose rounds are as long as the plan's: as many epochs by as many workers.
func longestDurations(history []disdel.Record, plan disdel.Plan) map[disdel.Task]time.Duration {
	out := map[disdel.Task]time.Duration{}
	for _, r := range history {
		if r.Plan.Epochs != plan.Epochs || r.Plan.Workers != plan.Workers {
			continue
		}
		for _, a := range r.Activations {
			if a.Outcome == disdel.OutcomeSuccess || a.Outcome == disdel.OutcomeTimeout {
				out[a.Task] = max(out[a.Task], time.Duration(a.Duration))
			}
		}
	}
	return out
}
