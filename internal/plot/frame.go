package plot

import (
	"image/color"
	"math"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/disdel/disdel"
)

// frame is the area that points lie in, and how values become places in it. The axes are drawn here, not by gonum's
// plot.Plot: that package parses a dozen fonts and loads a PDF writer when a program starts, which would cost every
// action, being the same program, several megabytes.
type frame struct {
	picture draw.Canvas // the whole picture
	area    draw.Canvas
	x, y    scale
	fonts   text.Plain
}

// scale is the range of values of an axis.
type scale struct{ min, max float64 }

// part is the share of v's place on the axis, from 0 to 1.
func (s scale) part(v float64) vg.Length { return vg.Length((v - s.min) / (s.max - s.min)) }

// Margins around the area, for the title, the axes' texts and the legend.
const (
	left   = 72 * pixel
	right  = legendWidth + 8*pixel
	bottom = 54 * pixel
	top    = 36 * pixel
)

// legendWidth is the strip at the right that no point lies in.
const legendWidth = 165 * pixel

// Sizes of text.
const (
	small  = 9.5
	medium = 11
	large  = 12
)

func (c Chart) frame(canvas draw.Canvas) (frame, error) {
	face, err := opentype.Parse(liberationsansregular.TTF)
	if err != nil {
		return frame{}, &disdel.Error{Kind: disdel.Internal, Op: "read the charts' font", Err: err}
	}
	f := frame{picture: canvas, area: draw.Crop(canvas, left, -right, bottom, -top)}
	f.fonts.Fonts = font.NewCache(font.Collection{{Font: font.Font{Typeface: "Liberation", Variant: "Sans"}, Face: face}})
	f.x, f.y = scale{math.Inf(1), math.Inf(-1)}, scale{math.Inf(1), math.Inf(-1)}
	for _, l := range c.Lines {
		for _, p := range l.Points {
			x, y := p.X, p.Y
			if !p.standsOut() {
				x, y = Span{Likely: x.Likely}, Span{Likely: y.Likely}
			}
			f.x.include(x)
			f.y.include(y)
		}
	}
	for _, r := range c.Rules {
		f.y.include(Span{Likely: r.Y})
	}
	f.x.widen()
	f.y.widen()
	return f, nil
}

// include widens the scale to a value and its interval.
func (s *scale) include(v Span) {
	s.min, s.max = math.Min(s.min, v.Likely), math.Max(s.max, v.Likely)
	if v.known() {
		s.min, s.max = math.Min(s.min, v.Low), math.Max(s.max, v.High)
	}
}

// widen leaves space around the points for their marks and labels. Amounts start at 0 unless that would squeeze the
// points into less than half of the chart.
func (s *scale) widen() {
	if s.min > s.max { // no point
		s.min, s.max = 0, 1
	}
	if s.min >= 0 && s.min <= s.max/2 {
		s.min = 0
	}
	width := s.max - s.min
	if width == 0 {
		width = math.Max(math.Abs(s.max), 1)
	}
	s.max += width * 0.08
	if s.min > 0 {
		s.min = math.Max(0, s.min-width*0.08)
	}
}

// at is the place of a pair of values.
func (f frame) at(x, y float64) vg.Point {
	size := f.area.Size()
	return vg.Point{X: f.area.Min.X + f.x.part(x)*size.X, Y: f.area.Min.Y + f.y.part(y)*size.Y}
}

func (f frame) text(size vg.Length, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color: color.Black, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}, XAlign: x,
		YAlign: y, Handler: f.fonts,
	}
}

// label is the style of text beside points; its place is its lower left corner.
func (f frame) label() text.Style { return f.text(small, text.XLeft, text.YBottom) }

// axes draws the title, the grid, and both axes with their numbers and names.
func (f frame) axes(c Chart) {
	a := f.area
	line, faint := draw.LineStyle{Color: black, Width: pixel}, draw.LineStyle{Color: light, Width: 0.7 * pixel}
	for _, v := range f.x.ticks(c.X.Whole) {
		at := f.at(v, f.y.min)
		f.picture.StrokeLine2(faint, at.X, a.Min.Y, at.X, a.Max.Y)
		f.picture.StrokeLine2(line, at.X, a.Min.Y, at.X, a.Min.Y-5*pixel)
		f.picture.FillText(f.text(small, text.XCenter, text.YTop), vg.Point{X: at.X, Y: a.Min.Y - 7*pixel}, number(v))
	}
	for _, v := range f.y.ticks(c.Y.Whole) {
		at := f.at(f.x.min, v)
		f.picture.StrokeLine2(faint, a.Min.X, at.Y, a.Max.X, at.Y)
		f.picture.StrokeLine2(line, a.Min.X, at.Y, a.Min.X-5*pixel, at.Y)
		f.picture.FillText(f.text(small, text.XRight, text.YCenter), vg.Point{X: a.Min.X - 8*pixel, Y: at.Y}, number(v))
	}
	f.picture.StrokeLine2(line, a.Min.X, a.Min.Y, a.Max.X, a.Min.Y)
	f.picture.StrokeLine2(line, a.Min.X, a.Min.Y, a.Min.X, a.Max.Y)
	f.picture.FillText(f.text(large, text.XCenter, text.YTop), vg.Point{X: a.Center().X, Y: f.picture.Max.Y - 8*pixel},
		c.Title)
	f.picture.FillText(f.text(medium, text.XCenter, text.YBottom), vg.Point{X: a.Center().X, Y: f.picture.Min.Y + 8*pixel},
		c.X.Name)
	upright := f.text(medium, text.XCenter, text.YTop)
	upright.Rotation = math.Pi / 2
	f.picture.FillText(upright, vg.Point{X: f.picture.Min.X + 8*pixel, Y: a.Center().Y}, c.Y.Name)
}

// ticks are at most ten round numbers within the scale.
func (s scale) ticks(integers bool) []float64 { return ticks(s.min, s.max, 10, integers) }

// legend lists what the chart shows, from the top of the strip at the right.
type legend struct {
	f    frame
	rows int
}

// entry is a part that the legend names.
type entry interface {
	title() string
	thumbnail(c *draw.Canvas)
}

func (l *legend) add(e entry) {
	y := l.f.area.Max.Y - vg.Length(l.rows)*18*pixel
	if e.title() == "" || y < l.f.area.Min.Y {
		return
	}
	l.rows++
	x := l.f.area.Max.X + 14*pixel
	thumb := draw.Canvas{
		Canvas:    l.f.picture.Canvas,
		Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: y - 14*pixel}, Max: vg.Point{X: x + 26*pixel, Y: y}},
	}
	e.thumbnail(&thumb)
	l.f.picture.FillText(l.f.text(small, text.XLeft, text.YCenter), vg.Point{X: x + 34*pixel, Y: y - 7*pixel}, e.title())
}
