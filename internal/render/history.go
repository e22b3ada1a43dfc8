package render

import (
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// statusText is a job's status, and what there is to say against its success.
func statusText(r *disdel.Record, status string) string {
	switch {
	case r.Status != disdel.StatusSucceeded:
		return status
	case r.Unevaluated != nil:
		return status + ", not evaluated"
	case r.Learned != nil && !*r.Learned:
		return status + ", did not learn"
	default:
		return status
	}
}

// PrintNext prints the commands that help a job that failed or lost its controller. at is the place of these commands.
func PrintNext(w io.Writer, r *disdel.Record, at addresses.Place, who service.Runner, runs bool) {
	command := func(name string) string { return at.Command(terminal.Program(), name, string(r.ID)) }
	switch {
	case runs:
		fmt.Fprintf(w, "runs      in %s\n", who.Text)
	case r.Status.Unfinished():
		fmt.Fprintf(w, "resume    its record says that it %s, and no process of this home runs it: %s\n",
			standsText(r.Status), command("resume"))
	case r.Status == disdel.StatusCanceled || r.Status == disdel.StatusPaused:
		fmt.Fprintf(w, "resume    %s\n", command("resume"))
	}
	if r.Failure != nil {
		fmt.Fprintf(w, "report    %s\n", command("report"))
	}
}

func standsText(s disdel.Status) string {
	if s == disdel.StatusRunning {
		return "runs"
	}
	return "is " + s.String()
}

// PrintFailure prints why a job failed and the evidence of every failed activation, with logs on request. at is the
// place of the commands in hints.
func PrintFailure(w io.Writer, r *disdel.Record, at addresses.Place, logs bool) {
	if r.Failure == nil {
		return
	}
	fmt.Fprintf(w, "\nfailure   %s\n", terminal.Clean(r.Failure.Error()))
	if r.Failure.Hint != "" {
		fmt.Fprintf(w, "hint      %s\n", terminal.Clean(at.Complete(r.Failure.Hint)))
	}
	for _, a := range r.Activations {
		if a.Outcome == disdel.OutcomeSuccess {
			continue
		}
		fmt.Fprintf(w, "evidence  %s, activation %s, ended as %s\n", a.Invocation.ID, a.ID, a.Outcome)
		for _, e := range a.Evidence {
			fmt.Fprintf(w, "          %s\n", terminal.Clean(e))
		}
		for _, line := range a.Logs {
			if logs {
				fmt.Fprintf(w, "log       %s\n", terminal.Clean(line))
			}
		}
	}
}
