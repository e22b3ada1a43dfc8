package report

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// stages are those of a job that did not stay as it was planned, each with what began it.
func (r *Report) stages() []string {
	var out []string
	for i := range r.record.Stages {
		out = append(out, r.record.Stages[i].Text())
	}
	refused := r.notGranted()
	if len(out) < 2 && len(refused) == 0 {
		return nil
	}
	return append(out, refused...)
}

// notGranted is what a job's policy wanted and the pool had no room for: the same number of workers once for as long as
// it wanted them, with what was missing last.
func (r *Report) notGranted() (out []string) {
	type refusal struct {
		first, last int
		disdel.Refusal
	}
	var all []refusal
	for _, d := range r.record.Decisions {
		for _, one := range d.NotGranted {
			i := slices.IndexFunc(all, func(a refusal) bool { return a.Workers == one.Workers && a.last+1 >= d.Round })
			if i < 0 {
				all = append(all, refusal{d.Round, d.Round, one})
				continue
			}
			all[i].last, all[i].Refusal = d.Round, one
		}
	}
	for _, a := range all {
		rounds := fmt.Sprintf("round %d", a.first+1)
		if a.last > a.first {
			rounds = fmt.Sprintf("rounds %d to %d", a.first+1, a.last+1)
		}
		out = append(out, rounds+": "+a.Text())
	}
	return out
}
