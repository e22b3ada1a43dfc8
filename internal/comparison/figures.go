package comparison

import (
	"fmt"

	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/internal/report"
)

// What a chart shows at most: more would make the page slow and the picture no clearer.
const (
	mostLines  = 100
	mostPoints = 400 // of one line
	colors     = 8   // that the style sheet has; further lines take them again
)

// Figures are the curves of all jobs, one upon the other.
func (c *Comparison) Figures() []report.Figure {
	var out []report.Figure
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
		for i := range c.Curves[:min(len(c.Curves), mostLines)] {
			if s := series(&c.Curves[i], i, f.of(&c.Curves[i]), p, f.most == 0); !s.Empty() {
				p.Series = append(p.Series, s)
			}
		}
		if len(p.Series) == 0 {
			continue
		}
		p.Alt = fmt.Sprintf("%d jobs; the table of jobs has where they ended", len(p.Series))
		note := ""
		if more := len(c.Curves) - mostLines; more > 0 {
			note = fmt.Sprintf("The first %d jobs are shown, %d are not.", mostLines, more)
		}
		out = append(out, report.FigureOf(p, note))
	}
	return out
}

// series is a job's line; the chart is made large enough for it.
func series(k *Curve, number int, values []*float64, p *plot.Lines, grow bool) plot.Series {
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
	for _, v := range thinned(points, mostPoints) {
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
