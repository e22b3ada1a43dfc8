package scheduler

import (
	"slices"

	"github.com/disdel/disdel"
)

// PastOf is what was seen of earlier jobs of a kind that succeeded with this data and batch, oldest first; records come
// newest first. Jobs of a static policy have observed nothing.
func PastOf(records []disdel.Record, job disdel.Job, data disdel.DataInfo) []disdel.Observation {
	var out []disdel.Observation
	for _, r := range slices.Backward(records) {
		if r.Status != disdel.StatusSucceeded || !r.Data.Same(data) ||
			!r.Job.Training.SameBatch(job.Training) {
			continue
		}
		var seen []disdel.Observation
		whole := 0 // of them, up to the end of an epoch
		for i := range r.Rounds {
			if o := r.Rounds[i].Observed; o != nil {
				seen = append(seen, *o)
			}
			if n := len(seen); n > 0 && seen[n-1].Epoch == float64(int(seen[n-1].Epoch)) {
				whole = n
			}
		}
		out = append(out, seen[:whole]...)
	}
	return out
}
