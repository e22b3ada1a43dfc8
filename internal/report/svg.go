package report

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// The drawing is 480 units wide, so that its letters can be read on a phone and do not shout on a screen. Colours come
// from the page's style sheet, by class: they follow light and dark.
const (
	plotWidth  = 480.0
	plotHeight = 270.0
	plotLeft   = 60.0
	plotRight  = 12.0
	plotTop    = 10.0
	plotBottom = 40.0
	mostTicks  = 6
)

// point is a place in a plot's own units; note is shown where the mark is pointed at.
type point struct {
	x, y float64
	note string
}

// series is one line of a plot, in pieces; marks are drawn on top of it.
type series struct {
	name   string
	class  string // of the style sheet
	pieces [][]point
	marks  []point
}

// band is a stretch of the y axis.
type band struct {
	name, class string
	low, high   float64
}

// plot is a chart of lines.
type plot struct {
	title, alt string
	xName      string
	yName      string
	x1         float64 // right end; it starts at x0
	x0         float64
	y1         float64 // top; the bottom is 0
	whole      bool    // ticks of the x axis are whole numbers
	series     []series
	bands      []band
}

// drawing writes SVG. Every value goes through it, and it escapes every text.
type drawing struct{ out strings.Builder }

func (d *drawing) open(name string, attributes ...any) {
	d.out.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		fmt.Fprintf(&d.out, ` %s="%s"`, attributes[i], template.HTMLEscapeString(attribute(attributes[i+1])))
	}
	d.out.WriteString(">")
}

func (d *drawing) close(name string) { d.out.WriteString("</" + name + ">") }

func (d *drawing) text(s string) { d.out.WriteString(template.HTMLEscapeString(oneLine(s))) }

// shape writes an element that holds nothing but a note.
func (d *drawing) shape(name, note string, attributes ...any) {
	d.open(name, attributes...)
	if note != "" {
		d.open("title")
		d.text(note)
		d.close("title")
	}
	d.close(name)
}

func (d *drawing) label(x, y float64, anchor, s string) {
	d.open("text", "x", x, "y", y, "text-anchor", anchor)
	d.text(s)
	d.close("text")
}

// begin opens the picture with its text alternative.
func (d *drawing) begin(height float64, title, alt string) {
	d.open("svg", "viewBox", fmt.Sprintf("0 0 %g %g", plotWidth, height), "role", "img", "aria-label", title+". "+alt)
}

func (d *drawing) end() template.HTML {
	d.close("svg")
	return template.HTML(d.out.String()) //nolint:gosec // drawing escapes every text and attribute
}

func attribute(v any) string {
	if f, ok := v.(float64); ok {
		return number(f)
	}
	return oneLine(fmt.Sprint(v))
}

// number prints a coordinate, to a tenth of a unit.
func number(f float64) string {
	return strconv.FormatFloat(math.Round(10*f)/10, 'f', -1, 64)
}

// ticks are round numbers from low to high, at most mostTicks of them.
func ticks(low, high float64, whole bool) []float64 {
	if !(high > low) || math.IsInf(high-low, 0) {
		return []float64{low}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/mostTicks)))
	for _, f := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*f) <= mostTicks {
			step *= f
			break
		}
	}
	if whole {
		step = math.Max(1, step)
	}
	var out []float64
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-9); i++ {
		out = append(out, max(0, i*step)) // not the negative zero
	}
	return out
}

func tickText(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func (p *plot) px(x float64) float64 {
	return plotLeft + (plotWidth-plotLeft-plotRight)*(x-p.x0)/math.Max(p.x1-p.x0, 1e-9)
}

func (p *plot) py(y float64) float64 {
	return plotHeight - plotBottom - (plotHeight-plotTop-plotBottom)*y/math.Max(p.y1, 1e-9)
}

func (p *plot) draw() template.HTML {
	d := &drawing{}
	d.begin(plotHeight, p.title, p.alt)
	for _, b := range p.bands {
		d.shape("rect", b.name, "class", b.class, "x", plotLeft, "y", p.py(b.high), "width", plotWidth-plotLeft-plotRight, "height", math.Max(1, p.py(b.low)-p.py(b.high)))
	}
	p.axes(d)
	for _, s := range p.series {
		for _, piece := range s.pieces {
			d.shape("path", s.name, "class", "line "+s.class, "d", p.path(piece))
		}
		for _, m := range s.marks {
			d.shape("circle", m.note, "class", "mark "+s.class, "cx", p.px(m.x), "cy", p.py(m.y), "r", "2.5")
		}
	}
	return d.end()
}

func (p *plot) path(piece []point) string {
	var b strings.Builder
	for i, v := range piece {
		b.WriteString([]string{"M", "L"}[min(i, 1)] + number(p.px(v.x)) + " " + number(p.py(v.y)))
	}
	return b.String()
}

func (p *plot) axes(d *drawing) {
	bottom := plotHeight - plotBottom
	d.open("g", "class", "axis")
	for _, v := range ticks(0, p.y1, false) {
		y := p.py(v)
		d.shape("line", "", "class", "grid", "x1", plotLeft, "x2", plotWidth-plotRight, "y1", y, "y2", y)
		d.label(plotLeft-5, y+4, "end", tickText(v))
	}
	d.xAxis(p.x0, p.x1, p.px, bottom, p.whole, p.xName)
	d.open("text", "transform", fmt.Sprintf("translate(11 %s) rotate(-90)", number((plotTop+bottom)/2)), "text-anchor", "middle")
	d.text(p.yName)
	d.close("text")
	d.close("g")
}

func (d *drawing) xAxis(low, high float64, px func(float64) float64, bottom float64, whole bool, name string) {
	d.shape("line", "", "class", "base", "x1", plotLeft, "x2", plotWidth-plotRight, "y1", bottom, "y2", bottom)
	for _, v := range ticks(low, high, whole) {
		d.shape("line", "", "class", "base", "x1", px(v), "x2", px(v), "y1", bottom, "y2", bottom+4)
		d.label(px(v), bottom+16, "middle", tickText(v))
	}
	d.label((plotLeft+plotWidth-plotRight)/2, bottom+33, "middle", name)
}
