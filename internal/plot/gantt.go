package plot

import (
	"fmt"
	"math"
)

// Gantt is a chart of a page: who did what when, a row each.
type Gantt struct {
	Title, Alt  string
	XName       string
	Left, Right float64 // of the x axis; bars outside are not drawn
	Zoom        bool    // a page can show a stretch of the x axis
	Rows        []string
	Bars        []Bar
}

// Bar is a stretch of a row in its parts, one after another. A failed one has a frame and a cross at its end, so that
// no colour has to tell.
type Bar struct {
	Row    int
	Note   string
	Failed bool
	Later  bool // not the first attempt: it begins with a mark
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
	d.begin(bottom+pageBottom, g.Title, g.Alt, g.readable()...)
	d.open("g", "class", "axis")
	for i, name := range g.Rows {
		y := pageTop + ganttRow*float64(i)
		d.shape("line", "", "class", "grid", "x1", ganttLeft, "x2", pageWidth-pageRight, "y1", y+ganttRow, "y2", y+ganttRow)
		d.label(ganttLeft-5, y+13, "end", name)
	}
	d.xAxis(axis{g.Left, g.Right, false, g.XName, g.x}, ganttLeft, bottom)
	d.close("g")
	for _, b := range g.Bars {
		g.bar(d, b)
	}
	return d.end()
}

func (g *Gantt) x(v float64) float64 {
	v = math.Min(math.Max(v, g.Left), g.Right)
	return ganttLeft + (pageWidth-ganttLeft-pageRight)*(v-g.Left)/math.Max(g.Right-g.Left, 1e-9)
}

// readable are the attributes by which a page's script finds a place on the axis.
func (g *Gantt) readable() []any {
	if !g.Zoom {
		return nil
	}
	ends := fmt.Sprintf("%g %g %g %g", ganttLeft, pageWidth-pageRight, g.Left, g.Right)
	return []any{"data-axis", ends, "data-unit", g.XName, "data-zoom", ""}
}

// shows tells whether a stretch of the axis is in the picture.
func (g *Gantt) shows(from, to float64) bool { return to >= g.Left && from <= g.Right }

func (g *Gantt) bar(d *picture, b Bar) {
	if len(b.Parts) == 0 || !g.shows(b.Parts[0].From, b.Parts[len(b.Parts)-1].To) && g.Zoom {
		return
	}
	y := pageTop + ganttRow*float64(b.Row) + 3
	for _, p := range b.Parts {
		if g.Zoom && !g.shows(p.From, p.To) {
			continue
		}
		x0, x1 := g.x(p.From), g.x(p.To)
		d.shape("rect", p.Note, "class", p.Class, "x", x0, "y", y, "width", math.Max(0.6, x1-x0), "height", ganttRow-6)
	}
	if begin := b.Parts[0].From; b.Later && g.shows(begin, begin) {
		d.shape("rect", b.Note, "class", "cap", "x", g.x(begin), "y", y-2, "width", 2.5, "height", ganttRow-2)
	}
	if !b.Failed {
		return
	}
	first, x := g.x(b.Parts[0].From), g.x(b.Parts[len(b.Parts)-1].To)
	d.shape("rect", b.Note, "class", "bad", "x", first, "y", y, "width", math.Max(2, x-first), "height", ganttRow-6)
	if end := b.Parts[len(b.Parts)-1].To; g.Zoom && !g.shows(end, end) {
		return
	}
	cross := fmt.Sprintf("M%s %sl6 6m0 -6l-6 6", coordinate(math.Min(x-3, pageWidth-pageRight-6)), coordinate(y+3))
	d.shape("path", b.Note, "class", "cross", "d", cross)
}
