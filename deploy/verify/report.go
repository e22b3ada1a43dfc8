package verify

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// The grades of cases: what fails of Core keeps every job from running, what fails of Full some from surviving.
const (
	Core = "core"
	Full = "full"
)

// The states of cases.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// The grades of clusters.
const (
	GradeFull     = "full"     // everything that was tried is as it should be
	GradeUsable   = "usable"   // jobs run, and some failures are not survived, or not told for what they are
	GradeUnusable = "unusable" // no job runs
)

// Case is one thing that was tried.
type Case struct {
	Name   string        `json:"name"`
	Grade  string        `json:"grade"`
	State  string        `json:"state"`
	Detail string        `json:"detail"` // what was seen
	Took   disdel.Millis `json:"tookMs"`
}

// Report is everything that was tried on one cluster.
type Report struct {
	Host    string        `json:"host"`
	Version string        `json:"version"` // of disdel
	At      time.Time     `json:"at"`
	Grade   string        `json:"grade"`
	Passed  int           `json:"passed"`
	Failed  int           `json:"failed"`
	Skipped int           `json:"skipped"`
	Took    disdel.Millis `json:"tookMs"`
	Cases   []Case        `json:"cases"`
}

// add counts a case.
func (r *Report) add(c Case) {
	r.Cases = append(r.Cases, c)
	switch {
	case c.State == Passed:
		r.Passed++
	case c.State == Skipped:
		r.Skipped++
	case c.Grade == Core:
		r.Failed++
		r.Grade = GradeUnusable
	default:
		r.Failed++
		if r.Grade == GradeFull {
			r.Grade = GradeUsable
		}
	}
}

// Err is nil where no case failed.
func (r *Report) Err() error {
	if r.Failed == 0 {
		return nil
	}
	var names []string
	for _, c := range r.Cases {
		if c.State == Failed {
			names = append(names, c.Name)
		}
	}
	return &disdel.Error{
		Kind: disdel.Unavailable, Op: "verify " + r.Host,
		Msg:  fmt.Sprintf("%d of %d cases failed: %s", r.Failed, len(r.Cases), strings.Join(names, ", ")),
		Hint: "disdel doctor says what the cluster lacks, and whose key mends it",
	}
}

// Print writes the report as a table of Markdown, to be pasted into an issue.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "disdel %s on %s: %s (%d passed, %d failed, %d skipped in %v)\n\n", r.Version, r.Host, r.Grade,
		r.Passed, r.Failed, r.Skipped, time.Duration(r.Took).Round(time.Second))
	fmt.Fprintln(w, "| case | grade | state | seconds | what was seen |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, c := range r.Cases {
		detail := strings.NewReplacer("|", "\\|", "\n", " ").Replace(c.Detail)
		fmt.Fprintf(w, "| %s | %s | %s | %.1f | %s |\n", c.Name, c.Grade, c.State, c.Took.Seconds(), detail)
	}
}
