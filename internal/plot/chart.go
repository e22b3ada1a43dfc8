package plot

import (
	"bytes"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/disdel/disdel"
)

// Chart is what is drawn.
type Chart struct {
	Title string
	X, Y  Axis
	Lines []Line
	Rules []Rule
	Front string // what the points marked as Front are called; "": none is shown
	Own   string // what the point marked as Own is called
}

// Axis is a direction of the chart.
type Axis struct {
	Name  string // with its unit: "cost (GB-s)"
	Whole bool   // it has whole numbers only
}

// Line goes through its points in their order.
type Line struct {
	Name   string
	Points []Point
}

// Point is a pair of values with their intervals.
type Point struct {
	X, Y       Span
	Label      string
	Front, Own bool
}

// Span is a likely value, and the interval around it; Low and High are 0 where there is none.
type Span struct{ Low, Likely, High float64 }

func (s Span) known() bool { return s.High > 0 && s.Low <= s.High }

// Rule is a horizontal line at Y.
type Rule struct {
	Y    float64
	Name string
}

// Format is the format of a picture.
type Format string

// The formats.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

// Width and Height are a chart's size in pixels, of which 96 are an inch.
const (
	Width  = 800
	Height = 500
	dpi    = 96
	pixel  = vg.Inch / dpi
)

// legendWidth is the strip at the right that no point lies in.
const legendWidth = 165 * pixel

// Write draws the chart. It returns Invalid for a format that there is not, and the error of w.
func (c Chart) Write(w io.Writer, f Format) error {
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch f {
	case SVG:
		canvas = vgsvg.NewWith(vgsvg.UseWH(Width*pixel, Height*pixel), vgsvg.EmbedFonts(false))
	case PNG:
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(Width*pixel, Height*pixel), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(color.White))}
	default:
		return &disdel.Error{Kind: disdel.Invalid, Op: "draw chart", Msg: "there is no format " + string(f), Hint: "use svg or png"}
	}
	c.draw(draw.New(canvas))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return err
}

func (c Chart) draw(canvas draw.Canvas) {
	p := plot.New()
	styled(p)
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X.Name, c.Y.Name
	for _, a := range []struct {
		to   *plot.Axis
		from Axis
	}{{&p.X, c.X}, {&p.Y, c.Y}} {
		if a.to.Tick.Marker = plot.TickerFunc(ticks); a.from.Whole {
			a.to.Tick.Marker = plot.TickerFunc(wholeTicks)
		}
	}
	p.Add(grid())
	legend := p.Legend
	for _, part := range c.parts() {
		p.Add(part.plotter)
		if part.name != "" {
			legend.Add(part.name, part.thumb)
		}
	}
	c.room(p)
	if len(c.Lines) > 0 {
		strip := draw.Crop(canvas, canvas.Size().X-legendWidth, -8*pixel, 0, -34*pixel)
		legend.Top, legend.Left = true, true
		legend.Draw(strip)
	}
	p.Draw(draw.Crop(canvas, 8*pixel, -legendWidth-6*pixel, 8*pixel, -8*pixel))
}

// room leaves space around the points for their marks and labels. Axes of amounts start at 0 unless that would squeeze
// the points into less than half of the chart.
func (c Chart) room(p *plot.Plot) {
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		if a.Min > a.Max { // no point
			a.Min, a.Max = 0, 1
		}
		if a.Min >= 0 && a.Min < a.Max/2 {
			a.Min = 0
		}
		width := a.Max - a.Min
		if width == 0 {
			width = math.Max(math.Abs(a.Max), 1)
		}
		a.Max += width * 0.08
		if a.Min > 0 {
			a.Min = math.Max(0, a.Min-width*0.08)
		}
	}
}

func styled(p *plot.Plot) {
	sans := func(size vg.Length) font.Font { return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size} }
	p.Title.TextStyle.Font, p.Title.Padding = sans(12), 8*pixel
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Label.Padding = sans(11), 4*pixel
		a.Tick.Label.Font = sans(9.5)
		a.Padding = 0
	}
	p.Legend.TextStyle.Font, p.Legend.Padding, p.Legend.ThumbnailWidth = sans(9.5), 4*pixel, 26*pixel
}

// ticks is gonum's, without noughts at the end.
func ticks(low, high float64) []plot.Tick {
	out := plot.DefaultTicks{}.Ticks(low, high)
	for i, t := range out {
		if v, err := strconv.ParseFloat(t.Label, 64); err == nil {
			out[i].Label = number(v)
		}
	}
	return out
}

// wholeTicks is up to ten whole numbers, evenly apart.
func wholeTicks(low, high float64) []plot.Tick {
	step := math.Max(1, math.Ceil((high-low)/10))
	var out []plot.Tick
	for v := math.Ceil(low/step) * step; v <= high; v += step {
		out = append(out, plot.Tick{Value: v, Label: number(v)})
	}
	return out
}
