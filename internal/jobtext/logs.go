package jobtext

import (
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// Log is the last lines of an activation.
type Log struct {
	Invocation string   `json:"invocation"`
	Outcome    string   `json:"outcome"`
	Lines      []string `json:"lines"`
}

// Logs is what a record has of the logs of a job's activations: those of activations that failed.
func Logs(r *disdel.Record) []Log {
	out := []Log{}
	for _, a := range r.Activations {
		if len(a.Logs) > 0 {
			out = append(out, Log{a.Invocation.ID, a.Outcome.String(), a.Logs})
		}
	}
	return out
}

// PrintLogs prints them, each under its invocation.
func PrintLogs(w io.Writer, list []Log) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no activation of the job has failed with a log")
	}
	for _, l := range list {
		fmt.Fprintf(w, "%s, %s\n", l.Invocation, l.Outcome)
		for _, line := range l.Lines {
			fmt.Fprintf(w, "    %s\n", terminal.Clean(line))
		}
	}
}
