package render

import (
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// PrintHistory prints a table of jobs, newest first. standing returns the status of a job.
func PrintHistory(w io.Writer, list []disdel.Record, standing func(*disdel.Record) string) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no jobs yet: disdel quickstart")
		return
	}
	rows := [][]string{{"JOB", "NAME", "STATUS", "CREATED", "TIME", "ROUNDS", "ACCURACY", "LOSS", "PEAK/LIMIT", "GB-S"}}
	for i := range list {
		r := &list[i]
		var peak, limit disdel.Bytes
		for _, a := range r.Activations {
			if a.Peak >= peak {
				peak, limit = a.Peak, a.Limits.Memory
			}
		}
		accuracy, loss, ok := heldOutScores(r)
		rows = append(rows, []string{
			string(r.ID), r.Job.Metadata.Name, standing(r) + prefixed(", ", r.Verdict()), r.Created.Local().Format("2006-01-02 15:04:05"),
			secondsText(r.Phases.Total),
			fmt.Sprint(len(r.Rounds)), fourDecimals(accuracy, ok), fourDecimals(loss, ok),
			fmt.Sprintf("%d/%d MB", peak.MB(), limit.MB()), fmt.Sprintf("%.1f", r.CostGBs),
		})
	}
	terminal.Table(w, terminal.Fitted(w, terminal.ShortIDs(w, rows), "LOSS", "PEAK/LIMIT", "GB-S", "ROUNDS", "TIME",
		"CREATED")...)
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
