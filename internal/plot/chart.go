package plot

import (
	"bytes"
	"image/color"
	"io"

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

// standsOut is a point whose intervals are drawn: bars of all points would hide the points.
func (p Point) standsOut() bool { return p.Own || p.Front }

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

// Write draws the chart. It returns Invalid for a format that there is not, and the error of w.
func (c Chart) Write(w io.Writer, format Format) error {
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch format {
	case SVG:
		canvas = vgsvg.NewWith(vgsvg.UseWH(Width*pixel, Height*pixel), vgsvg.EmbedFonts(false))
	case PNG:
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(Width*pixel, Height*pixel), vgimg.UseDPI(dpi),
			vgimg.UseBackgroundColor(color.White))}
	default:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "draw chart", Msg: "there is no format " + string(format),
			Hint: "use svg or png",
		}
	}
	frame, err := c.frame(draw.New(canvas))
	if err != nil {
		return err
	}
	c.draw(frame)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return err
	}
	_, err = w.Write(bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return err
}

func (c Chart) draw(f frame) {
	f.axes(c)
	entries := legend{f: f}
	for _, p := range c.parts() {
		p.draw(f)
		if named, ok := p.(entry); ok {
			entries.add(named)
		}
	}
}
