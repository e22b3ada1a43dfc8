package report

import (
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// Print writes the jobs as columns: what came of them, then what is different about them.
func (c *Comparison) Print(w io.Writer) {
	head := []string{""}
	for i := range c.Jobs {
		head = append(head, fmt.Sprintf("%d %s", i+1, c.Jobs[i].Name))
	}
	rows := [][]string{head}
	for _, line := range ComparisonRows {
		row := []string{line.Name}
		for i := range c.Jobs {
			row = append(row, line.Text(&c.Jobs[i]))
		}
		rows = append(rows, row)
	}
	terminal.Table(w, rows...)
	fmt.Fprintln(w)
	if len(c.Differs) == 0 {
		fmt.Fprintln(w, "nothing is different about them")
		return
	}
	head[0] = "DIFFERENT"
	rows = [][]string{head}
	for _, d := range c.Differs {
		rows = append(rows, append([]string{d.Path}, shown(d.Values)...))
	}
	terminal.Table(w, rows...)
}

// mostText is how much of a value is shown.
const mostText = 40

func shown(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		if out[i] = terminal.Cut(terminal.OneLine(v), mostText); v == "" {
			out[i] = "-"
		}
	}
	return out
}

// ComparisonRow is one figure of all jobs.
type ComparisonRow struct {
	Name string
	Text func(*JobResult) string
}

// ComparisonRows is the text of each job, from top to bottom.
var ComparisonRows = []ComparisonRow{
	{"id", func(e *JobResult) string { return string(e.ID) }},
	{"status", func(e *JobResult) string { return e.Status.String() }},
	{"accuracy", func(e *JobResult) string { return figure(e.Accuracy) }},
	{"best", func(e *JobResult) string { return figure(e.Best) }},
	{"loss", func(e *JobResult) string { return figure(e.Loss) }},
	{"train accuracy", func(e *JobResult) string { return figure(e.Trained) }},
	{"train loss", func(e *JobResult) string { return figure(e.Train) }},
	{"rounds", func(e *JobResult) string { return fmt.Sprint(e.Rounds) }},
	{"workers", func(e *JobResult) string { return fmt.Sprint(e.Workers) }},
	{"time", func(e *JobResult) string { return given(e.Duration > 0, e.Duration.Text()) }},
	{"cost GB-s", func(e *JobResult) string { return fmt.Sprintf("%.2f", e.CostGBs) }},
	{"peak of limit", func(e *JobResult) string { return given(e.Peak > 0, peakOfLimit(e.Peak, e.Limit)) }},
	{"model", func(e *JobResult) string { return given(e.Model != "", e.Model) }},
	{"labels", func(e *JobResult) string { return given(e.Labels != "", e.Labels) }},
}

func peakOfLimit(peak, limit disdel.Bytes) string { return fmt.Sprintf("%v of %v", peak, limit) }

func given(known bool, text string) string {
	if !known {
		return "-"
	}
	return text
}

func figure(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *v)
}
