package report

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Action sums the activations of one worker, cluster or task.
type Action struct {
	Name     string       `json:"name"`
	Task     disdel.Task  `json:"task"`
	Level    int          `json:"level"`
	Member   int          `json:"member"`
	Runs     int          `json:"runs"`
	Failed   int          `json:"failed"`
	Cold     int          `json:"cold"`
	Estimate disdel.Bytes `json:"estimateBytes"` // expected peak of the activation that had the highest
	Peak     disdel.Bytes `json:"peakBytes"`     // highest; 0: unknown
	Limit    disdel.Bytes `json:"limitBytes"`    // of the activation that had the highest peak
	// of a GPU: the most that it had of it, and the share that it might have had; 0: nothing
	DevicePeak  disdel.Bytes `json:"devicePeakBytes,omitempty"`
	DeviceLimit disdel.Bytes `json:"deviceLimitBytes,omitempty"`
	// of the estimate of the successful activation with the highest peak
	ErrorPct *float64       `json:"errorPct,omitempty"`
	Timeout  disdel.Millis  `json:"timeoutMs"`
	Longest  disdel.Millis  `json:"longestMs"`
	Total    disdel.Millis  `json:"totalMs"`
	CostGBs  float64        `json:"costGBs"` // of its own activations, at their limits
	Outcome  disdel.Outcome `json:"outcome"` // of the newest activation

	needed disdel.Bytes // highest peak of an activation that succeeded: that of one cut short says little
}

// place says whose work it is: "train action of worker 2 in round 3", rounds counted from 1 as everywhere on the
// screen.
func place(i *disdel.Invocation) string {
	switch i.Task {
	case disdel.TaskTrain:
		return fmt.Sprintf("train action of worker %d in round %d", i.Member, i.Round+1)
	case disdel.TaskAggregate:
		return fmt.Sprintf("aggregate action %d of level %d in round %d", i.Member, i.Level, i.Round+1)
	default:
		return fmt.Sprintf("%s action in round %d", i.Task, i.Round+1)
	}
}

// ActionsOf sums the activations of each worker, cluster and task, in the order of a round. Every table of actions is
// made of it, so that all of them show the same estimates.
func ActionsOf(list []disdel.Activation) []Action {
	out := []Action{}
	for _, of := range disdel.BySlot(list) {
		slot := of[0].Slot()
		u := Action{Name: slot.Name(), Task: slot.Task, Level: slot.Level, Member: slot.Member}
		for _, a := range of {
			u.add(a)
		}
		out = append(out, u)
	}
	return out
}

func (u *Action) add(a *disdel.Activation) {
	u.Runs++
	if a.Outcome.Failed() {
		u.Failed++
	}
	if a.Cold {
		u.Cold++
	}
	if a.Peak >= u.Peak {
		u.Estimate, u.Peak, u.Limit = a.Expected(), a.Peak, a.Limits.Memory
	}
	u.DevicePeak, u.DeviceLimit = max(u.DevicePeak, a.DevicePeak), max(u.DeviceLimit, a.Limits.Device)
	u.Timeout, u.Outcome = a.Limits.Timeout, a.Outcome
	u.Longest, u.Total = max(u.Longest, a.Duration), u.Total+a.Duration
	u.CostGBs += a.HeldGBs()
	if a.Outcome == disdel.OutcomeSuccess && a.Peak >= u.needed {
		u.needed = a.Peak
		u.ErrorPct = errorPct(float64(a.Expected()), float64(a.Peak))
	}
}
