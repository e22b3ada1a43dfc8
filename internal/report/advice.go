package report

import (
	"github.com/disdel/disdel/internal/advice"
)

// Advice is the change that lets a failed job pass, worked out from what was measured.
type Advice struct {
	Why      string    `json:"why"`                // the arithmetic
	Sets     []string  `json:"sets,omitempty"`     // PATH=VALUE as --set takes it; none: submit the job as it is
	Commands []Command `json:"commands,omitempty"` // none: no change of the job file would do
}

// Command is one way to carry out an advice: lines for a POSIX shell.
type Command struct {
	When  string   `json:"when"`
	Lines []string `json:"lines"`
}

func (r *Report) advice() *Advice {
	if r.Status.Unfinished() && r.Failure == nil {
		return r.orphaned()
	}
	if r.Failure == nil {
		return nil
	}
	found := advice.For(r.record)
	out := &Advice{Why: r.at.Complete(found.Why), Sets: found.Sets}
	if found.Pass {
		out.Commands = r.commands(found.Sets)
	}
	return out
}

// orphaned is for a job that runs by its record. Whoever ran it may have died; then it can be resumed.
func (r *Report) orphaned() *Advice {
	if !r.resumable(nil) {
		return nil
	}
	return &Advice{Why: "by its record the job runs; if the disdel that ran it is gone, it goes on from its newest " +
		"checkpoint", Commands: r.commands(nil)[:1]}
}

// hints is what was said when the job ended, where nothing better is known.
func (r *Report) hints() []string {
	if r.Failure == nil || r.Failure.Hint == "" || len(r.Advice.Commands) > 0 {
		return nil
	}
	return []string{r.at.Complete(r.Failure.Hint)}
}
