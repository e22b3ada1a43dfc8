package report

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel"
)

// layers says which layers each stage of the network has and how much memory it took; nil for a job without stages.
func (r *Report) layers() []string {
	var out []string
	n := len(r.record.Plan.Stages)
	for k, s := range r.record.Plan.Stages {
		parts := []string{fmt.Sprintf("stage %d: layers %s to %s", k+1, s.First, s.Last)}
		if s.Weights > 0 {
			parts = append(parts, fmt.Sprintf("weights %v", s.Weights))
		}
		parts = append(parts, fmt.Sprintf("estimate %v", s.Memory))
		out = append(out, strings.Join(append(parts, r.measured(k, n)...), ", "))
	}
	return out
}

// measured are the limit, the peaks and the longest time of a stage's actions, one peak for each network that is
// trained.
func (r *Report) measured(stage, stages int) (out []string) {
	var peaks []string
	var limit disdel.Bytes
	var longest disdel.Millis
	for _, a := range r.Actions {
		if a.Task != disdel.TaskTrain || a.Member%stages != stage {
			continue
		}
		limit, longest = max(limit, a.Limit), max(longest, a.Longest)
		peaks = append(peaks, memory(a.Peak))
	}
	if len(peaks) == 0 {
		return nil
	}
	return []string{
		"limit " + memory(limit), "peak " + strings.Join(peaks, " and "), "longest activation " + span(longest),
	}
}
