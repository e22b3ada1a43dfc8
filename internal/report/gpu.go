package report

import (
	"fmt"

	"github.com/disdel/disdel"
)

// GPUText is what the train actions of a job took of GPUs, "" where they took nothing.
func GPUText(r *disdel.Record) string {
	var took, share disdel.Bytes
	for i := range r.Activations {
		if a := &r.Activations[i]; a.Task == disdel.TaskTrain {
			took, share = max(took, a.DevicePeak), max(share, a.Limits.Device)
		}
	}
	plan, _ := r.Plan.Action(disdel.TaskTrain)
	if share = max(share, plan.Limits.Device); share == 0 {
		return ""
	}
	text := fmt.Sprintf("a train action has %v of a GPU", share)
	if whole := r.Plan.Platform.MaxDevice; whole > 0 {
		text += fmt.Sprintf(" of %v", whole)
	}
	if took > 0 {
		text += fmt.Sprintf(", and took %v at most", took)
	}
	return text
}

// gpus is GPUText of the report's job, as a list.
func (r *Report) gpus() []string {
	if text := GPUText(r.record); text != "" {
		return []string{text}
	}
	return nil
}
