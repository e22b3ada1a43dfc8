package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// The layout of the text: a column of keys and text beside it, made for a terminal of 80 columns.
const (
	textWidth = 80
	keyWidth  = 10
	beatRows  = 8  // heartbeats of a failure that are listed
	roundRows = 20 // rounds that are listed
)

// Text writes the report for a terminal, without colour. Lines of more than 80 characters are those that a break would
// spoil: commands, checksums and log lines.
func (r *Report) Text(w io.Writer) error {
	t := &textWriter{}
	t.row(terminal.OneLine(r.Name), string(r.ID))
	t.row("", r.Headline)
	t.row("learn", r.learns())
	t.row("plan", r.planText())
	if r.record.Stopped != "" {
		t.row("stopped", r.record.Stopped)
	}
	t.list("warning", r.Warnings)
	t.causes(r.Causes)
	t.failure(r.Failure)
	t.advice(r.Advice)
	t.list("hint", r.hints())
	t.list("adjusted", r.adjusted())
	t.list("stages", r.stages())
	t.list("layers", r.layers())
	t.list("steps", r.steps())
	t.list("troubles", r.Troubles.notes())
	if r.Forecast != nil {
		t.list("forecast", r.Forecast.forecastText(r.Duration, r.CostGBs))
	}
	t.list("cost", r.byUse())
	t.list("gpu", r.gpus())
	t.list("smaller", r.Savings)
	t.actions(r.Actions)
	t.rounds(r.Rounds, r.record.Metric())
	t.classes(r.ByClass)
	t.list("confused", confusions(r.ByClass))
	t.list("data", r.checksums())
	fmt.Fprintln(&t.out)
	t.raw("spec", r.command("report", string(r.ID), "--spec"))
	t.raw("page", r.command("report", string(r.ID), "--html", "report.html"))
	_, err := w.Write(t.out.Bytes())
	return err
}

type textWriter struct{ out bytes.Buffer }

// row writes a key and text, wrapped beside it.
func (t *textWriter) row(key, text string) {
	key = terminal.OneLine(key)
	if utf8.RuneCountInString(key) >= keyWidth {
		fmt.Fprintln(&t.out, key)
		key = ""
	}
	for _, line := range wrap(terminal.OneLine(text), textWidth-keyWidth) {
		fmt.Fprintf(&t.out, "%s\n",
			strings.TrimRight(key+strings.Repeat(" ", keyWidth-utf8.RuneCountInString(key))+line, " "))
		key = ""
	}
}

// raw is row without a break.
func (t *textWriter) raw(key, text string) {
	fmt.Fprintf(&t.out, "%-*s%s\n", keyWidth, key, terminal.OneLine(text))
}

func (t *textWriter) list(key string, rows []string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(&t.out)
	for _, text := range rows {
		t.row(key, text)
		key = ""
	}
}

// causes writes each likely cause with the command to try.
func (t *textWriter) causes(list []Cause) {
	for _, c := range list {
		fmt.Fprintln(&t.out)
		t.row("cause", c.What+": "+c.Evidence)
		t.raw("try", c.Command)
	}
}

func (t *textWriter) failure(f *Failure) {
	if f == nil {
		return
	}
	fmt.Fprintln(&t.out)
	t.row("cause", f.Cause)
	t.list("evidence", f.facts())
	for _, row := range beatBars(f) {
		t.raw("", row)
	}
	if len(f.Log) > 0 {
		fmt.Fprintln(&t.out)
	}
	for i, line := range f.Log {
		t.raw([]string{"log", ""}[min(i, 1)], line)
	}
}

// beatBars draws memory against the limit over time, a heartbeat a line.
func beatBars(f *Failure) []string {
	const width = 24
	if f.Limit <= 0 {
		return nil
	}
	var out []string
	for _, b := range thin(f.Beats, beatRows) {
		full := min(width, int(int64(b.Resident)*width/int64(f.Limit)))
		out = append(out, fmt.Sprintf("at %9s  [%s%s] %4d of %d MB", span(b.At), strings.Repeat("#", max(0, full)),
			strings.Repeat(".", width-max(0, full)), b.Resident.MB(), f.Limit.MB()))
	}
	return out
}

// thin keeps at most n elements of a list: the first, the last, and evenly spaced ones between.
func thin[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	out := make([]T, n)
	for i := range out {
		out[i] = list[i*(len(list)-1)/(n-1)]
	}
	return out
}

func (t *textWriter) advice(a *Advice) {
	if a == nil {
		return
	}
	fmt.Fprintln(&t.out)
	t.row("try", a.Why)
	for _, c := range a.Commands {
		t.row("", c.When+":")
		for _, line := range c.Lines {
			t.raw("", "  "+line)
		}
	}
}

func (t *textWriter) actions(list []Action) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(&t.out)
	t.table(actionHead, actionRows(list))
}

var actionHead = []string{"ACTION", "RUNS", "FAILED", "ESTIMATE", "PEAK", "LIMIT", "ERROR", "LONGEST", "TIMEOUT"}

// actionRows is the table of actions; memory is as the screen shows it while the job runs.
func actionRows(list []Action) [][]string {
	var rows [][]string
	for _, a := range list {
		rows = append(rows, []string{
			a.Name, fmt.Sprint(a.Runs), fmt.Sprint(a.Failed), memory(a.Estimate), memory(a.Peak), memory(a.Limit),
			signed(a.ErrorPct),
			span(a.Longest), span(a.Timeout),
		})
	}
	return rows
}

func memory(b disdel.Bytes) string {
	if b == 0 {
		return "-"
	}
	return b.String()
}

func (t *textWriter) rounds(list []disdel.Round, metric disdel.Metric) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(&t.out)
	shown := thin(list, roundRows)
	t.table(roundHead(shown, metric), roundTable(shown, metric))
	if len(list) > roundRows {
		t.row("", fmt.Sprintf("%d of %d rounds", roundRows, len(list)))
	}
}

func (t *textWriter) classes(b *disdel.ByClass) {
	rows := classTable(b, mostClasses)
	if rows == nil {
		return
	}
	fmt.Fprintln(&t.out)
	t.table(classHead, rows)
	if metric := worst(b, mostClasses); metric != "" {
		t.row("", metric)
	}
}

// roundHead names the columns of roundTable; training accuracy is one where a round knows it.
func roundHead(list []disdel.Round, metric disdel.Metric) []string {
	head := []string{"ROUND", "TRAIN LOSS", "LOSS", strings.ToUpper(metric.Title), "TIME", "LEFT OUT"}
	if knowsTrainAccuracy(list) {
		head = slices.Insert(head, 2, "TRAIN ACCURACY")
	}
	return head
}

func knowsTrainAccuracy(list []disdel.Round) bool {
	return slices.ContainsFunc(list, func(r disdel.Round) bool { return r.TrainAccuracy != nil })
}

func roundTable(list []disdel.Round, metric disdel.Metric) [][]string {
	var rows [][]string
	known := knowsTrainAccuracy(list)
	for _, r := range list {
		cell := "-"
		if v := metric.Value(r.Figures()); v != nil {
			cell = metric.Number(*v)
		}
		without := "-"
		if len(r.Missing) > 0 {
			without = workersText(r.Missing)
		}
		row := []string{
			fmt.Sprint(r.Round + 1), fmt.Sprintf("%.4f", r.TrainLoss), value(r.Loss),
			cell, span(r.Duration), without,
		}
		if known {
			row = slices.Insert(row, 2, value(r.TrainAccuracy))
		}
		rows = append(rows, row)
	}
	return rows
}

func value(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *v)
}

func (t *textWriter) table(head []string, rows [][]string) {
	w := tabwriter.NewWriter(&t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = terminal.OneLine(c)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	w.Flush()
}

// wrap breaks text at blanks into lines of at most width characters; a longer word stays whole.
func wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
