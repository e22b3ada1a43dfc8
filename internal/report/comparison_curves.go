package report

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel/internal/plot"
)

// What a chart shows at most: more would make the page slow and the picture no clearer.
const (
	mostCurves      = 100
	mostCurvePoints = 400    // of one line
	mostPlaces      = 10_000 // of all lines of a chart
	colors          = 8      // that the style sheet has; further lines take them again
	mostNamed       = 16     // lines that a legend tells apart
)

// Figures are the curves of all jobs, one upon the other.
func (c *Comparison) Figures() []Figure {
	var out []Figure
	for _, f := range []struct {
		title, unit string
		most        float64 // 0: the highest of all
		of          func(*Curve) []*float64
	}{
		{"Accuracy by round", "share of held-out rows", 1, func(k *Curve) []*float64 { return k.Accuracy }},
		{"Held-out loss by round", "loss", 0, func(k *Curve) []*float64 { return k.Loss }},
		{"Training loss by round", "loss", 0, func(k *Curve) []*float64 { return k.TrainLoss }},
	} {
		p := &plot.Lines{Title: f.title, XName: "round", YName: f.unit, From: 1, To: 2, Top: f.most, Whole: true}
		curves := c.Curves[:min(len(c.Curves), mostCurves)]
		points := max(mostPlaces/mostCurves, min(mostCurvePoints, mostPlaces/max(1, len(curves))))
		for i := range curves {
			if s := series(&curves[i], i, points, f.of(&curves[i]), p, f.most == 0); !s.Empty() {
				p.Series = append(p.Series, s)
			}
		}
		if len(p.Series) == 0 {
			continue
		}
		p.Alt = fmt.Sprintf("%d jobs; the table of jobs has where they ended", len(p.Series))
		note := ""
		if more := len(c.Curves) - mostCurves; more > 0 {
			note = fmt.Sprintf("The first %d jobs are shown, %d are not.", mostCurves, more)
		}
		p.Fine = len(p.Series) > mostNamed
		one := FigureOf(p, note)
		if p.Fine {
			one.Legend = nil
			one.Note = strings.TrimSpace("A line's name is shown where it is pointed at. " + note)
		}
		out = append(out, one)
	}
	return out
}

// series is a job's line of so many points at most; the chart is made large enough for it.
func series(k *Curve, number, most int, values []*float64, p *plot.Lines, grow bool) plot.Series {
	name := fmt.Sprintf("%d %s", number+1, k.Name)
	s := plot.Series{Name: name, Class: fmt.Sprintf("s%d", number%colors)}
	points := k.points(values)
	for _, v := range points {
		if grow {
			p.Top = max(p.Top, 1.08*v.y)
		}
		p.To = max(p.To, v.x)
	}
	var line []plot.Dot
	for _, v := range thinned(points, most) {
		line = append(line, plot.Dot{X: v.x, Y: v.y})
	}
	switch {
	case len(line) > 1:
		s.Pieces = [][]plot.Dot{line}
	case len(line) == 1:
		line[0].Note = fmt.Sprintf("%s in round %g: %.4f", name, line[0].X, line[0].Y)
		s.Dots = line
	}
	return s
}
