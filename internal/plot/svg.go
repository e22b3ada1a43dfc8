package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// A page's picture is pageWidth units wide, so that its letters can be read on a phone and do not shout on a screen.
// Colours come from the page's style sheet, by class: they follow light and dark.
const (
	pageWidth  = 480.0
	pageHeight = 270.0
	pageLeft   = 60.0
	pageRight  = 12.0
	pageTop    = 10.0
	pageBottom = 40.0
	pageTicks  = 6
)

// picture writes the SVG of a page. Every value goes through it, and it escapes every text.
type picture struct{ out strings.Builder }

func (d *picture) open(name string, attributes ...any) {
	d.out.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		fmt.Fprintf(&d.out, ` %s="%s"`, attributes[i], escaped(attribute(attributes[i+1])))
	}
	d.out.WriteString(">")
}

func (d *picture) close(name string) { d.out.WriteString("</" + name + ">") }

func (d *picture) text(s string) { d.out.WriteString(escaped(s)) }

// escaped is a text as HTML has it, without the characters that XML forbids.
func escaped(s string) string {
	return html.EscapeString(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, s))
}

// shape writes an element that holds nothing but a note.
func (d *picture) shape(name, note string, attributes ...any) {
	d.open(name, attributes...)
	if note != "" {
		d.open("title")
		d.text(note)
		d.close("title")
	}
	d.close(name)
}

// path draws a line along places, which are numbers and need no escaping: a page may have a hundred thousand of them.
// values are for a page's script; "": it has none.
func (d *picture) path(note, class, places, values string) {
	d.out.WriteString(`<path class="` + escaped(class) + `" d="` + places)
	if values != "" {
		d.out.WriteString(`" data-at="` + values)
	}
	d.out.WriteString(`"><title>`)
	d.text(note)
	d.out.WriteString("</title></path>")
}

func (d *picture) label(x, y float64, anchor, s string) {
	d.open("text", "x", x, "y", y, "text-anchor", anchor)
	d.text(s)
	d.close("text")
}

// begin opens the picture with its text alternative.
func (d *picture) begin(height float64, title, alt string, attributes ...any) {
	d.open("svg", append([]any{
		"viewBox", fmt.Sprintf("0 0 %g %g", pageWidth, height), "role", "img", "aria-label", title + ". " + alt,
	}, attributes...)...)
}

func (d *picture) end() string {
	d.close("svg")
	return d.out.String()
}

func attribute(v any) string {
	if f, ok := v.(float64); ok {
		return coordinate(f)
	}
	return fmt.Sprint(v)
}

// coordinate prints a place, to a tenth of a unit.
func coordinate(f float64) string { return string(appendCoordinate(nil, f)) }

func appendCoordinate(to []byte, f float64) []byte {
	return strconv.AppendFloat(to, math.Round(10*f)/10, 'f', -1, 64)
}

func tickText(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// xAxis draws the axis from low to high at bottom.
func (d *picture) xAxis(a axis, left, bottom float64) {
	right := pageWidth - pageRight
	d.shape("line", "", "class", "base", "x1", left, "x2", right, "y1", bottom, "y2", bottom)
	for _, v := range ticks(a.low, a.high, pageTicks, a.integers) {
		x := a.at(v)
		d.shape("line", "", "class", "base", "x1", x, "x2", x, "y1", bottom, "y2", bottom+4)
		d.label(x, bottom+16, "middle", tickText(v))
	}
	d.label((left+right)/2, bottom+33, "middle", a.name)
}

// axis is the horizontal direction of a page's picture.
type axis struct {
	low, high float64
	integers  bool
	name      string
	at        func(float64) float64
}

// ticks are the multiples of 1, 2 or 5 times a power of ten from low to high, at most most of them; of 1 at least where
// values are whole numbers.
func ticks(low, high float64, maximum int, integers bool) []float64 {
	if !(high > low) || math.IsInf(high-low, 0) {
		return []float64{low}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(maximum))))
	for _, f := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*f) <= float64(maximum) {
			step *= f
			break
		}
	}
	if integers {
		step = math.Max(1, step)
	}
	var out []float64
	for i := math.Ceil(low/step - 1e-12); i <= high/step+1e-12; i++ {
		out = append(out, math.Round(max(0, i*step)*1e9)/1e9) // not the negative zero
	}
	return out
}
