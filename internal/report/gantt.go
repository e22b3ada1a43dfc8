package report

import (
	"fmt"
	"math"
	"time"

	"github.com/disdel/disdel"
)

const (
	ganttRow  = 18.0  // height of a row
	ganttLeft = 126.0 // room for "aggregate 1.10" in the letters of a phone
)

// stretch is a part of an activation's bar.
type stretch struct {
	class, name string
	from, to    time.Time
}

// stretches divides an activation by what it was doing. When it began to compute shows only in its heartbeats.
func (r *Report) stretches(a *disdel.Activation) []stretch {
	start, end := a.Start, r.endOf(a)
	var out []stretch
	if a.WaitTime > 0 {
		out = append(out, stretch{"queue", "queue", start.Add(-time.Duration(a.WaitTime)), start})
	}
	if a.InitTime > 0 {
		warm := start.Add(time.Duration(min(a.InitTime, disdel.Millis(end.Sub(start)))))
		out = append(out, stretch{"cold", "cold start", start, warm})
		start = warm
	}
	for _, b := range a.Beats {
		first := a.Start.Add(time.Duration(b.At - a.WaitTime))
		if b.Batch == 0 {
			continue
		}
		if first.After(start) && first.Before(end) {
			out = append(out, stretch{"load", "load", start, first})
			start = first
		}
		break
	}
	return append(out, stretch{"run", "run", start, end})
}

// gantt is who did what when.
func (r *Report) gantt() *figure {
	c, end := r.clock()
	rows := r.Actions[:min(len(r.Actions), mostRows)]
	if end == 0 || len(rows) == 0 {
		return nil
	}
	row := map[string]int{}
	for i, a := range rows {
		row[a.Name] = i
	}
	bars := r.bars(row)
	g := &ganttDrawing{clock: c, right: end, seen: map[string]bool{}}
	bottom := plotTop + ganttRow*float64(len(rows))
	title := "Activations over time"
	g.begin(bottom+plotBottom, title, fmt.Sprintf("%d activations of %d actions; the table of activations has the same figures", len(r.record.Activations), len(r.Actions)))
	g.open("g", "class", "axis")
	for i, a := range rows {
		y := plotTop + ganttRow*float64(i)
		g.shape("line", "", "class", "grid", "x1", ganttLeft, "x2", plotWidth-plotRight, "y1", y+ganttRow, "y2", y+ganttRow)
		g.label(ganttLeft-5, y+13, "end", a.Name)
	}
	g.xAxis(0, end, g.px, bottom, false, c.name)
	g.close("g")
	for _, a := range bars {
		g.bar(a, r.stretches(a), row[slotName(&a.Invocation)])
	}
	f := &figure{Title: title, SVG: g.drawing.end(), Legend: g.legend()}
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
		if _, shown := row[slotName(&a.Invocation)]; shown && !a.Start.IsZero() {
			out = append(out, a)
		}
	}
	return thin(out, mostBars)
}

type ganttDrawing struct {
	drawing
	clock clock
	right float64
	seen  map[string]bool
}

func (g *ganttDrawing) px(x float64) float64 {
	return ganttLeft + (plotWidth-ganttLeft-plotRight)*x/math.Max(g.right, 1e-9)
}

// bar draws one activation; a failed one has a frame and a cross at its end, so that no colour has to tell.
func (g *ganttDrawing) bar(a *disdel.Activation, parts []stretch, row int) {
	y := plotTop + ganttRow*float64(row) + 3
	note := fmt.Sprintf("%s, attempt %d: %s", place(&a.Invocation), max(1, a.Attempt), words(a.Outcome.String()))
	for _, s := range parts {
		g.seen[s.class] = true
		x0, x1 := g.px(g.clock.at(s.from)), g.px(g.clock.at(s.to))
		g.shape("rect", fmt.Sprintf("%s, %s %s", note, s.name, span(disdel.Millis(s.to.Sub(s.from)))),
			"class", s.class, "x", x0, "y", y, "width", math.Max(0.6, x1-x0), "height", ganttRow-6)
	}
	if !failed(a) {
		return
	}
	g.seen["bad"] = true
	x := g.px(g.clock.at(parts[len(parts)-1].to))
	first := g.px(g.clock.at(parts[0].from))
	g.shape("rect", note, "class", "bad", "x", first, "y", y, "width", math.Max(2, x-first), "height", ganttRow-6)
	g.shape("path", note, "class", "cross", "d", fmt.Sprintf("M%s %sl6 6m0 -6l-6 6", number(math.Min(x-3, plotWidth-plotRight-6)), number(y+3)))
}

func (g *ganttDrawing) legend() []legend {
	var out []legend
	for _, l := range []legend{
		{"queue", "queue", "box"}, {"cold start", "cold", "box"}, {"load: until the first batch", "load", "box"}, {"run", "run", "box"}, {"failed", "bad", "box"},
	} {
		if g.seen[l.Class] {
			out = append(out, l)
		}
	}
	return out
}
