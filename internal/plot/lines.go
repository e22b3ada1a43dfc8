package plot

import (
	"fmt"
	"math"
	"strconv"
)

// Lines is a chart of a page: lines over one axis, above 0. Its texts are read aloud and shown where the pointer is.
type Lines struct {
	Title, Alt   string
	XName, YName string
	From, To     float64 // of the x axis
	Top          float64 // of the y axis
	Bottom       float64 // above 0: the y axis is logarithmic and starts there
	Low          float64 // where a linear y axis starts
	Whole        bool    // ticks of the x axis are whole numbers
	Fine         bool    // there are so many lines that they are drawn thin and plain, and a page cannot read their values
	Zoom         bool    // a page can show a stretch of the x axis
	Series       []Series
	Bands        []Band
}

// Series is one line of a chart, in pieces; dots are drawn on top of it.
type Series struct {
	Name, Class string // Class is of the page's style sheet
	Pieces      [][]Dot
	Dots        []Dot
}

// Empty tells whether there is nothing of it to draw.
func (s *Series) Empty() bool { return len(s.Pieces) == 0 && len(s.Dots) == 0 }

// Last is the value that the line ends at. The series is not to be empty.
func (s *Series) Last() float64 {
	piece := s.Pieces[len(s.Pieces)-1]
	return piece[len(piece)-1].Y
}

// Dot is a place in a chart's own units; Note is shown where it is pointed at.
type Dot struct {
	X, Y float64
	Note string
}

// Band is a stretch of the y axis.
type Band struct {
	Name, Class string
	Low, High   float64
}

// Key is a line of a chart's legend. Shape is "line" or "box".
type Key struct{ Name, Class, Shape string }

// Legend names what the chart shows.
func (l *Lines) Legend() []Key {
	var out []Key
	for _, s := range l.Series {
		out = append(out, Key{s.Name, s.Class, "line"})
	}
	for _, b := range l.Bands {
		out = append(out, Key{b.Name, b.Class, "box"})
	}
	return out
}

// SVG draws the chart as an element of a page, whose style sheet has its colours.
func (l *Lines) SVG() string {
	d := &picture{}
	d.begin(pageHeight, l.Title, l.Alt, l.readable()...)
	for _, b := range l.Bands {
		height := math.Max(1, l.y(b.Low)-l.y(b.High))
		width := pageWidth - pageLeft - pageRight
		d.shape("rect", b.Name, "class", b.Class, "x", pageLeft, "y", l.y(b.High), "width", width, "height", height)
	}
	l.axes(d)
	if l.Fine {
		d.open("g", "class", "fine")
	}
	for i := range l.Series {
		l.draw(d, &l.Series[i])
	}
	if l.Fine {
		d.close("g")
	}
	return d.end()
}

// readable are the attributes by which a page's script finds values: the ends of the x axis in the picture, the values
// there, and the name of the axis.
func (l *Lines) readable() []any {
	if l.Fine {
		return nil
	}
	ends := fmt.Sprintf("%g %g %g %g", pageLeft, pageWidth-pageRight, l.From, l.To)
	out := []any{"data-axis", ends, "data-unit", l.XName}
	if l.Zoom {
		out = append(out, "data-zoom", "")
	}
	return out
}

func (l *Lines) draw(d *picture, s *Series) {
	for _, piece := range s.Pieces {
		values := ""
		if !l.Fine {
			values = valuesText(piece)
		}
		d.path(s.Name, "line "+s.Class, l.path(piece), values)
	}
	for _, m := range s.Dots {
		d.shape("circle", m.Note, "class", "mark "+s.Class, "cx", l.x(m.X), "cy", l.y(m.Y), "r", "2.5")
	}
}

func (l *Lines) x(v float64) float64 {
	return pageLeft + (pageWidth-pageLeft-pageRight)*(v-l.From)/math.Max(l.To-l.From, 1e-9)
}

func (l *Lines) y(v float64) float64 {
	part := (v - l.Low) / math.Max(l.Top-l.Low, 1e-9)
	if l.Bottom > 0 {
		part = math.Log(math.Max(v, l.Bottom)/l.Bottom) / math.Max(math.Log(l.Top/l.Bottom), 1e-9)
	}
	return pageHeight - pageBottom - (pageHeight-pageTop-pageBottom)*part
}

// yTicks are the marks of the y axis: of a logarithmic one the powers of ten, with their double and fivefold if these
// are few.
func (l *Lines) yTicks() (out []float64) {
	if l.Bottom <= 0 {
		return ticks(l.Low, l.Top, pageTicks, false)
	}
	low, high := math.Floor(math.Log10(l.Bottom)), math.Floor(math.Log10(l.Top))
	factors := []float64{1, 2, 5}
	if high-low > 3 {
		factors = factors[:1]
	}
	for power := low; power <= high; power++ {
		for _, f := range factors {
			if v := f * math.Pow(10, power); v >= l.Bottom && v <= l.Top {
				out = append(out, v)
			}
		}
	}
	return out
}

func (l *Lines) path(piece []Dot) string {
	b := make([]byte, 0, 12*len(piece))
	for i, v := range piece {
		b = append(b, "ML"[min(i, 1)])
		b = appendCoordinate(append(appendCoordinate(b, l.x(v.X)), ' '), l.y(v.Y))
	}
	return string(b)
}

// valuesText has the places and values of a line for a page's script: "1 0.9,2 0.95".
func valuesText(piece []Dot) string {
	b := make([]byte, 0, 14*len(piece))
	for i, v := range piece {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendFloat(b, v.X, 'g', 5, 64), ' ')
		b = strconv.AppendFloat(b, v.Y, 'g', 4, 64)
	}
	return string(b)
}

func (l *Lines) axes(d *picture) {
	bottom := pageHeight - pageBottom
	d.open("g", "class", "axis")
	for _, v := range l.yTicks() {
		y := l.y(v)
		d.shape("line", "", "class", "grid", "x1", pageLeft, "x2", pageWidth-pageRight, "y1", y, "y2", y)
		d.label(pageLeft-5, y+4, "end", tickText(v))
	}
	d.xAxis(axis{l.From, l.To, l.Whole, l.XName, l.x}, pageLeft, bottom)
	middle := coordinate((pageTop + bottom) / 2)
	d.open("text", "transform", fmt.Sprintf("translate(11 %s) rotate(-90)", middle), "text-anchor", "middle")
	d.text(l.YName)
	d.close("text")
	d.close("g")
}
