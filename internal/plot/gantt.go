package plot

import (
	"fmt"
	"math"
)

// Gantt is a chart of a page: who did what when, a row each.
type Gantt struct {
	Title, Alt string
	XName      string
	Right      float64 // end of the x axis, which starts at 0
	Rows       []string
	Bars       []Bar
}

// Bar is a stretch of a row in its parts, one after another. A failed one has a frame and a cross at its end, so that
// no colour has to tell.
type Bar struct {
	Row    int
	Note   string
	Failed bool
	Parts  []Part
}

// Part is a part of a bar.
type Part struct {
	Class, Note string
	From, To    float64
}

const (
	ganttRow  = 18.0  // height of a row
	ganttLeft = 126.0 // room for "aggregate 1.10" in the letters of a phone
)

// SVG draws the chart as an element of a page, whose style sheet has its colours.
func (g *Gantt) SVG() string {
	d := &picture{}
	bottom := pageTop + ganttRow*float64(len(g.Rows))
	d.begin(bottom+pageBottom, g.Title, g.Alt)
	d.open("g", "class", "axis")
	for i, name := range g.Rows {
		y := pageTop + ganttRow*float64(i)
		d.shape("line", "", "class", "grid", "x1", ganttLeft, "x2", pageWidth-pageRight, "y1", y+ganttRow, "y2", y+ganttRow)
		d.label(ganttLeft-5, y+13, "end", name)
	}
	d.xAxis(axis{0, g.Right, false, g.XName, g.x}, ganttLeft, bottom)
	d.close("g")
	for _, b := range g.Bars {
		g.bar(d, b)
	}
	return d.end()
}

func (g *Gantt) x(v float64) float64 {
	return ganttLeft + (pageWidth-ganttLeft-pageRight)*v/math.Max(g.Right, 1e-9)
}

func (g *Gantt) bar(d *picture, b Bar) {
	y := pageTop + ganttRow*float64(b.Row) + 3
	for _, p := range b.Parts {
		x0, x1 := g.x(p.From), g.x(p.To)
		d.shape("rect", p.Note, "class", p.Class, "x", x0, "y", y, "width", math.Max(0.6, x1-x0), "height", ganttRow-6)
	}
	if !b.Failed || len(b.Parts) == 0 {
		return
	}
	first, x := g.x(b.Parts[0].From), g.x(b.Parts[len(b.Parts)-1].To)
	d.shape("rect", b.Note, "class", "bad", "x", first, "y", y, "width", math.Max(2, x-first), "height", ganttRow-6)
	cross := fmt.Sprintf("M%s %sl6 6m0 -6l-6 6", coordinate(math.Min(x-3, pageWidth-pageRight-6)), coordinate(y+3))
	d.shape("path", b.Note, "class", "cross", "d", cross)
}
