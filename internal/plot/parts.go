package plot

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// colours can be told apart with every common kind of colour blindness, and in grey (Okabe and Ito 2008, "Color Universal
// Design", without its yellow, which is lost on white).
var colours = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff}, color.RGBA{0xcc, 0x79, 0xa7, 0xff},
	color.RGBA{0x56, 0xb4, 0xe9, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x33, 0x33, 0x33, 0xff},
}

// shapes are one fewer than colours are and share no factor with them: a pair comes back after 42 lines.
var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{}, draw.TriangleGlyph{}}

var (
	grey  = color.Gray{Y: 0x80}
	light = color.Gray{Y: 0xdd}
	black = color.Black
)

const markRadius = 4 * pixel

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// part is something drawn, and its line in the legend.
type part struct {
	plotter plot.Plotter
	name    string
	thumb   plot.Thumbnailer
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = light, light
	return g
}

// parts is what the chart consists of, from the back to the front.
func (c Chart) parts() []part {
	var out []part
	if f := c.front(); len(f.points) > 1 || c.Front != "" && len(f.points) > 0 {
		out = append(out, part{f, c.Front, f})
	}
	for _, r := range c.Rules {
		out = append(out, part{rule{r}, "", nil})
	}
	for i, l := range c.Lines {
		s := series{Line: l, colour: colours[i%len(colours)], shape: shapes[i%len(shapes)]}
		out = append(out, part{s, l.Name, s})
	}
	if own := c.own(); c.Own != "" && len(own.points) > 0 {
		out = append(out, part{own, c.Own, own})
	}
	return append(out, part{labels{c}, "", nil})
}

// series is a line with its marks and intervals.
type series struct {
	Line
	colour color.Color
	shape  draw.GlyphDrawer
}

func (s series) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: s.colour, Radius: markRadius, Shape: s.shape}
}

// Plot draws the intervals as thin bars, then the line and its marks.
func (s series) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	thin := draw.LineStyle{Color: paler(s.colour), Width: vg.Points(0.8)}
	var line []vg.Point
	for _, v := range s.Points {
		at := vg.Point{X: x(v.X.Likely), Y: y(v.Y.Likely)}
		line = append(line, at)
		if v.X.known() {
			c.StrokeLine2(thin, x(v.X.Low), at.Y, x(v.X.High), at.Y)
		}
		if v.Y.known() {
			c.StrokeLine2(thin, at.X, y(v.Y.Low), at.X, y(v.Y.High))
		}
	}
	c.StrokeLines(draw.LineStyle{Color: s.colour, Width: vg.Points(1.2)}, line)
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

// DataRange includes the intervals.
func (s series) DataRange() (xmin, xmax, ymin, ymax float64) { return bounds(s.Points) }

// Thumbnail is a piece of the line with a mark.
func (s series) Thumbnail(c *draw.Canvas) {
	c.StrokeLine2(draw.LineStyle{Color: s.colour, Width: vg.Points(1.2)}, c.Min.X, c.Center().Y, c.Max.X, c.Center().Y)
	c.DrawGlyph(s.glyph(), c.Center())
}

func bounds(points []Point) (xmin, xmax, ymin, ymax float64) {
	if len(points) == 0 {
		return math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	}
	var x, y []float64
	for _, p := range points {
		x, y = append(x, edges(p.X)...), append(y, edges(p.Y)...)
	}
	return slices.Min(x), slices.Max(x), slices.Min(y), slices.Max(y)
}

func edges(s Span) []float64 {
	if s.known() {
		return []float64{s.Low, s.Likely, s.High}
	}
	return []float64{s.Likely}
}

// chosen marks some points of all lines: by a wide line behind them, or by a ring around each.
type chosen struct {
	points []Point
	ring   bool
}

func (c Chart) chosen(which func(Point) bool, ring bool) chosen {
	out := chosen{ring: ring}
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
	return c.chosen(func(p Point) bool { return c.Front != "" && p.Front }, false)
}

func (c Chart) own() chosen { return c.chosen(func(p Point) bool { return p.Own }, true) }

func (s chosen) style() draw.LineStyle { return draw.LineStyle{Color: light, Width: 9 * pixel} }

func (s chosen) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: black, Radius: 2 * markRadius, Shape: draw.RingGlyph{}}
}

// Plot draws the line or the rings.
func (s chosen) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var line []vg.Point
	for _, v := range s.points {
		line = append(line, vg.Point{X: x(v.X.Likely), Y: y(v.Y.Likely)})
	}
	if !s.ring {
		c.StrokeLines(s.style(), line)
		return
	}
	for _, at := range line {
		c.DrawGlyph(s.glyph(), at)
	}
}

// Thumbnail is a piece of the line, or a ring.
func (s chosen) Thumbnail(c *draw.Canvas) {
	if s.ring {
		c.DrawGlyph(s.glyph(), c.Center())
		return
	}
	c.StrokeLine2(s.style(), c.Min.X, c.Center().Y, c.Max.X, c.Center().Y)
}

// rule is a Rule as it is drawn.
type rule struct{ Rule }

// Plot draws a dashed line with its name above it.
func (r rule) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	at := y(r.Y)
	c.StrokeLine2(draw.LineStyle{Color: grey, Width: vg.Points(1), Dashes: []vg.Length{5 * pixel, 3 * pixel}}, c.Min.X, at, c.Max.X, at)
	style := labelStyle(p)
	style.Color = grey
	size := style.Rectangle(r.Name).Size()
	from := vg.Point{X: c.Max.X - size.X - 6*pixel, Y: at + 3*pixel}
	write(c, style, vg.Rectangle{Min: from, Max: from.Add(size)}, r.Name)
}

// DataRange keeps the rule within the chart, wherever the points are.
func (r rule) DataRange() (xmin, xmax, ymin, ymax float64) {
	return math.Inf(1), math.Inf(-1), r.Y, r.Y
}
