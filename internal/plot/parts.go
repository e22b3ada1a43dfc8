package plot

import (
	"cmp"
	"image/color"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// colours can be told apart with every common kind of colour blindness, and in grey (Okabe and Ito 2008, "Color
// Universal Design", without its yellow, which is lost on white).
var colours = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff},
	color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff},
	color.RGBA{0x56, 0xb4, 0xe9, 0xff},
	color.RGBA{0xe6, 0x9f, 0x00, 0xff},
	color.RGBA{0x33, 0x33, 0x33, 0xff},
}

// shapes are one fewer than colours are and share no factor with them: a pair comes back after 42 lines.
var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{},
	draw.SquareGlyph{},
	draw.PyramidGlyph{},
	draw.BoxGlyph{},
	draw.RingGlyph{},
	draw.TriangleGlyph{},
}

var (
	grey  = color.Gray{Y: 0x80}
	light = color.Gray{Y: 0xdd}
	amber = color.RGBA{0xff, 0xd9, 0x66, 0xff}
	black = color.Black
)

const markRadius = 4 * pixel

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// part is something drawn in a frame.
type part interface{ draw(f frame) }

// parts is what the chart consists of, from the back to the front.
func (c Chart) parts() []part {
	out := []part{c.front()}
	for _, r := range c.Rules {
		out = append(out, rule{r})
	}
	for i, l := range c.Lines {
		under := min(len(c.Lines)-1-i, mostUnder)
		out = append(out, series{Line: l, colour: colours[i%len(colours)], shape: shapes[i%len(shapes)], under: under})
	}
	return append(out, c.own(), labels{c})
}

// mostUnder bounds how much larger than the last line the ones below it are drawn.
const mostUnder = 4

// series is a line with its marks and intervals.
type series struct {
	Line
	colour color.Color
	shape  draw.GlyphDrawer
	under  int // lines drawn over this one: it is wider by as much, so that it is seen where they lie upon it
}

func (s series) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: s.colour, Radius: markRadius + vg.Length(s.under)*1.5*pixel, Shape: s.shape}
}

func (s series) line() draw.LineStyle {
	return draw.LineStyle{Color: s.colour, Width: vg.Points(1.2 + 1.2*float64(s.under))}
}

// draw draws the intervals of the points that stand out as thin bars, then the line and its marks.
func (s series) draw(f frame) {
	c := f.area
	thin := draw.LineStyle{Color: paler(s.colour), Width: vg.Points(0.8)}
	var line []vg.Point
	for _, v := range s.Points {
		at := f.at(v.X.Likely, v.Y.Likely)
		line = append(line, at)
		if !v.standsOut() {
			continue
		}
		low, high := f.at(v.X.Low, v.Y.Low), f.at(v.X.High, v.Y.High)
		if v.X.known() {
			c.StrokeLine2(thin, low.X, at.Y, high.X, at.Y)
		}
		if v.Y.known() {
			c.StrokeLine2(thin, at.X, low.Y, at.X, high.Y)
		}
	}
	c.StrokeLines(s.line(), line)
	for _, at := range line {
		c.DrawGlyph(s.glyph(), at)
	}
}

// paler is halfway to white.
func paler(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	half := func(v uint32) uint8 { return uint8((v>>8 + 0xff) / 2) }
	return color.RGBA{half(r), half(g), half(b), 0xff}
}

func (s series) title() string { return s.Name }

// thumbnail is a piece of the line with a mark.
func (s series) thumbnail(c *draw.Canvas) {
	c.StrokeLine2(s.line(), c.Min.X, c.Center().Y, c.Max.X, c.Center().Y)
	c.DrawGlyph(s.glyph(), c.Center())
}

// chosen marks some points of all lines: by a wide line behind them, or by a ring around each.
type chosen struct {
	name   string
	points []Point
	ring   bool
}

func (c Chart) chosen(name string, which func(Point) bool, ring bool) chosen {
	out := chosen{name: name, ring: ring}
	if name == "" {
		return out
	}
	for _, l := range c.Lines {
		for _, p := range l.Points {
			if which(p) {
				out.points = append(out.points, p)
			}
		}
	}
	slices.SortFunc(out.points, func(a, b Point) int { return cmp.Compare(a.X.Likely, b.X.Likely) })
	return out
}

func (c Chart) front() chosen {
	return c.chosen(c.Front, func(p Point) bool { return p.Front }, false)
}

func (c Chart) own() chosen {
	return c.chosen(c.Own, func(p Point) bool { return p.Own }, true)
}

func (s chosen) title() string {
	if len(s.points) == 0 {
		return ""
	}
	return s.name
}

func (s chosen) style() draw.LineStyle { return draw.LineStyle{Color: amber, Width: 16 * pixel} }

func (s chosen) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: black, Radius: 2 * markRadius, Shape: draw.RingGlyph{}}
}

// draw draws the line or the rings.
func (s chosen) draw(f frame) {
	c := f.area
	var line []vg.Point
	for _, v := range s.points {
		line = append(line, f.at(v.X.Likely, v.Y.Likely))
	}
	if !s.ring {
		c.StrokeLines(s.style(), line)
		return
	}
	for _, at := range line {
		c.DrawGlyph(s.glyph(), at)
	}
}

// thumbnail is a piece of the line, or a ring.
func (s chosen) thumbnail(c *draw.Canvas) {
	if s.ring {
		c.DrawGlyph(s.glyph(), c.Center())
		return
	}
	c.StrokeLine2(s.style(), c.Min.X, c.Center().Y, c.Max.X, c.Center().Y)
}

// rule is a Rule as it is drawn.
type rule struct{ Rule }

// draw draws a dashed line with its name above it.
func (r rule) draw(f frame) {
	c, at := f.area, f.at(f.x.min, r.Y).Y
	c.StrokeLine2(draw.LineStyle{Color: grey, Width: vg.Points(1), Dashes: []vg.Length{5 * pixel, 3 * pixel}}, c.Min.X, at,
		c.Max.X, at)
	style := f.label()
	style.Color = grey
	size := style.Rectangle(r.Name).Size()
	from := vg.Point{X: c.Max.X - size.X - 6*pixel, Y: at + 3*pixel}
	write(c, style, vg.Rectangle{Min: from, Max: from.Add(size)}, r.Name)
}
