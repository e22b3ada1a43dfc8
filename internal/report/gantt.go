package report

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// section is a part of an activation's bar.
type section struct {
	class, name string
	from, to    time.Time
}

// sections divides an activation by what it was doing. When it began to compute shows only in its heartbeats.
func (r *Report) sections(a *disdel.Activation) []section {
	start, end := a.Start, r.endOf(a)
	var out []section
	if a.WaitTime > 0 {
		out = append(out, section{"queue", "queue", start.Add(-time.Duration(a.WaitTime)), start})
	}
	if a.InitTime > 0 {
		warm := start.Add(time.Duration(min(a.InitTime, disdel.Millis(end.Sub(start)))))
		out = append(out, section{"cold", "cold start", start, warm})
		start = warm
	}
	for _, b := range a.Beats {
		first := a.Start.Add(time.Duration(b.At - a.WaitTime))
		if b.Batch == 0 {
			continue
		}
		if first.After(start) && first.Before(end) {
			out = append(out, section{"load", "load", start, first})
			start = first
		}
		break
	}
	return append(out, section{"run", "run", start, end})
}

// gantt is who did what when.
func (r *Report) gantt() *Figure {
	c, end := r.clock()
	rows := r.Actions[:min(len(r.Actions), mostRows)]
	if end == 0 || len(rows) == 0 {
		return nil
	}
	row := map[string]int{}
	for i, a := range rows {
		row[a.Name] = i
	}
	g := &plot.Gantt{Title: "Activations over time", XName: c.name, Right: end}
	g.Alt = fmt.Sprintf("%d activations of %d actions; the table of activations has the same figures",
		len(r.record.Activations), len(r.Actions))
	for _, a := range rows {
		g.Rows = append(g.Rows, a.Name)
	}
	seen := map[string]bool{}
	bars := r.bars(row)
	for _, a := range bars {
		g.Bars = append(g.Bars, r.bar(a, c, row[a.Slot().Name()], seen))
	}
	f := &Figure{Title: g.Title, SVG: trusted(g.SVG()), Legend: ganttLegend(seen)}
	if n := len(r.Actions) - len(rows); n > 0 {
		f.Note = fmt.Sprintf("The first %d actions are shown, %d are not. ", mostRows, n)
	}
	if len(bars) == mostBars {
		f.Note += fmt.Sprintf("%d activations are shown, at even steps.", mostBars)
	}
	return f
}

// bars are the activations to draw.
func (r *Report) bars(row map[string]int) []*disdel.Activation {
	var out []*disdel.Activation
	for i := range r.record.Activations {
		a := &r.record.Activations[i]
		if _, shown := row[a.Slot().Name()]; shown && !a.Start.IsZero() {
			out = append(out, a)
		}
	}
	return thin(out, mostBars)
}

// bar is one activation, in its parts.
func (r *Report) bar(a *disdel.Activation, c clock, row int, seen map[string]bool) plot.Bar {
	note := fmt.Sprintf("%s, attempt %d: %s", place(&a.Invocation), max(1, a.Attempt), words(a.Outcome.String()))
	b := plot.Bar{Row: row, Note: note, Failed: a.Outcome.Failed()}
	seen["bad"] = seen["bad"] || b.Failed
	for _, s := range r.sections(a) {
		seen[s.class] = true
		b.Parts = append(b.Parts, plot.Part{
			Class: s.class, Note: fmt.Sprintf("%s, %s %s", note, s.name, span(disdel.Millis(s.to.Sub(s.from)))),
			From: c.at(s.from), To: c.at(s.to),
		})
	}
	return b
}

func ganttLegend(seen map[string]bool) []plot.Key {
	var out []plot.Key
	for _, k := range []plot.Key{
		{Name: "queue", Class: "queue", Shape: "box"},
		{Name: "cold start", Class: "cold", Shape: "box"},
		{Name: "load: until the first batch", Class: "load", Shape: "box"},
		{Name: "run", Class: "run", Shape: "box"},
		{Name: "failed", Class: "bad", Shape: "box"},
	} {
		if seen[k.Class] {
			out = append(out, k)
		}
	}
	return out
}
