package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/disdel/disdel/internal/terminal"
)

// Markdown writes the report for an issue or a wiki. Text from outside is escaped, so that it makes no markup. spec is
// the job's file, to be shown.
func (r *Report) Markdown(w io.Writer, spec []byte) error {
	m := &markdownWriter{}
	m.line("# %s %s", r.Name, r.ID)
	m.line("%s", r.Headline)
	m.list("Job", []string{r.learns(), r.planText(), r.record.Stopped})
	m.list("Warnings", r.Warnings)
	for _, c := range r.Causes {
		m.line("## Likely cause: %s", c.What)
		m.line("%s", c.Evidence)
		m.code("Try", []string{c.Command})
	}
	if f := r.Failure; f != nil {
		m.line("## Cause")
		m.line("%s", f.Cause)
		m.list("Evidence", f.facts())
		m.code("Log", f.Log)
	}
	if a := r.Advice; a != nil {
		m.line("## How to fix it")
		m.line("%s", a.Why)
		for _, c := range a.Commands {
			m.code(c.When, c.Lines)
		}
		m.list("Hint", r.hints())
	}
	m.list("Adjusted", r.adjusted())
	m.list("Stages", r.stages())
	m.list("Layers of the stages", r.layers())
	m.list("Steps", r.steps())
	m.list("Troubles", r.Troubles.notes())
	if r.Forecast != nil {
		m.list("Forecast", r.Forecast.forecastText(r.Duration, r.CostGBs))
	}
	m.list("Cost", r.byUse())
	m.list("GPUs", r.gpus())
	m.list("What could be smaller", r.Savings)
	m.table("Actions", actionHead, actionRows(r.Actions))
	m.table("Rounds", roundHead(r.Rounds, r.record.Metric()), roundTable(r.Rounds, r.record.Metric()))
	m.table(strings.TrimSuffix("Classes, "+worst(r.ByClass, mostClasses), ", "), classHead,
		classTable(r.ByClass, mostClasses))
	m.list("Most frequent mistakes", confusions(r.ByClass))
	m.list("Data and model", r.checksums())
	if len(spec) > 0 {
		m.code("Specification", strings.Split(strings.TrimRight(string(spec), "\n"), "\n"))
	}
	_, err := w.Write(m.out.Bytes())
	return err
}

type markdownWriter struct{ out bytes.Buffer }

// line writes a paragraph or a heading; its values are escaped, its format is not.
func (m *markdownWriter) line(format string, values ...any) {
	for i, v := range values {
		values[i] = escapeMarkdown(fmt.Sprint(v))
	}
	fmt.Fprintf(&m.out, format+"\n\n", values...)
}

func (m *markdownWriter) list(title string, rows []string) {
	first := true
	for _, row := range rows {
		if row == "" {
			continue
		}
		if first {
			m.line("## %s", title)
		}
		first = false
		fmt.Fprintf(&m.out, "- %s\n", escapeMarkdown(row))
	}
	if !first {
		fmt.Fprintln(&m.out)
	}
}

// code writes lines as they are, between fences longer than any in them.
func (m *markdownWriter) code(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	text := make([]string, len(lines))
	for i, l := range lines {
		text[i] = strings.ReplaceAll(terminal.Clean(l), "\n", " ")
	}
	body := strings.Join(text, "\n")
	fence := "```"
	for strings.Contains(body, fence) {
		fence += "`"
	}
	m.line("%s:", title)
	fmt.Fprintf(&m.out, "%s\n%s\n%s\n\n", fence, body, fence)
}

func (m *markdownWriter) table(title string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	m.line("## %s", title)
	fmt.Fprintf(&m.out, "|%s|\n|%s\n", strings.Join(head, "|"), strings.Repeat("---|", len(head)))
	for _, row := range rows {
		for _, cell := range row {
			fmt.Fprintf(&m.out, "|%s", escapeMarkdown(cell))
		}
		fmt.Fprintln(&m.out, "|")
	}
	fmt.Fprintln(&m.out)
}

var markdownMarks = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "|", `\|`,
	"#", `\#`, "~", `\~`, "!", `\!`,
)

func escapeMarkdown(s string) string { return markdownMarks.Replace(terminal.OneLine(s)) }
