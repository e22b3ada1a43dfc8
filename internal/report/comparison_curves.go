package report

import (
	"fmt"
	"math"
	"slices"
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

// Figures are charts with the curves of all jobs. Their axis counts rounds. A smoothed line of more than 400 rounds is
// the average of those that the chart shows.
func (c *Comparison) Figures(o CurveOptions) []Figure {
	var out []Figure
	for _, f := range []struct {
		title, unit string
		maximum     float64 // 0: the highest of all
		values      func(*Curve) []*float64
	}{
		{"Accuracy by round", "share of held-out rows", 1, func(k *Curve) []*float64 { return k.Accuracy }},
		{"RMSE by round", "unit of the target", 0, func(k *Curve) []*float64 { return k.RMSE }},
		{"Held-out loss by round", "loss", 0, func(k *Curve) []*float64 { return k.Loss }},
		{"Training loss by round", "loss", 0, func(k *Curve) []*float64 { return k.TrainLoss }},
	} {
		p := &plot.Lines{Title: f.title, XName: "round", YName: f.unit, From: 1, To: 2, Top: f.maximum, Whole: true}
		p.Zoom = true
		if o.zoomed() {
			p.From, p.To = o.From, o.To
		}
		curves := c.Curves[:min(len(c.Curves), mostCurves)]
		points := max(mostPlaces/mostCurves, min(mostCurvePoints, mostPlaces/max(1, len(curves))))
		for i := range curves {
			if s := series(&curves[i], i, points, f.values(&curves[i]), p, f.maximum == 0, &o); !s.Empty() {
				p.Series = append(p.Series, s)
			}
		}
		if len(p.Series) == 0 {
			continue
		}
		o.scale(p)
		p.Alt = fmt.Sprintf("%d jobs; the table of jobs has where they ended", len(p.Series))
		note := o.averageNote("")
		if more := len(c.Curves) - mostCurves; more > 0 {
			note = strings.TrimSpace(note + fmt.Sprintf(" The first %d jobs are shown, %d are not.", mostCurves, more))
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
func series(k *Curve, number, maximum int, values []*float64, p *plot.Lines, grow bool,
	o *CurveOptions,
) plot.Series {
	name := fmt.Sprintf("%d %s", number+1, k.Name)
	s := plot.Series{Name: name, Class: fmt.Sprintf("s%d", number%colors)}
	var line []plot.Dot
	for _, v := range thinned(k.points(values), maximum) {
		line = append(line, plot.Dot{X: v.x, Y: v.y})
	}
	line = slices.DeleteFunc(smoothed(line, o.Smooth), func(d plot.Dot) bool { return !o.has(d.X) })
	for _, d := range line {
		if grow {
			p.Top = max(p.Top, 1.08*d.Y)
		}
		p.To = max(p.To, d.X)
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

// point is a round's figure.
type point struct {
	at   int // in the curve
	x, y float64
}

// points are the figures of a curve that a chart can show.
func (k *Curve) points(values []*float64) []point {
	var out []point
	for i, v := range values {
		if v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) {
			out = append(out, point{i, float64(k.Round[i]), *v})
		}
	}
	return out
}

// thinned is at most so many points of a line, those that its shape is seen by: of each of as many stretches the one
// that spans the largest triangle with the one chosen before and the mean of the stretch behind (Steinarsson,
// Downsampling Time Series for Visual Representation, 2013: largest triangle, three buckets). The first and the last
// stay. maximum is 3 or more.
func thinned(line []point, maximum int) []point {
	if len(line) <= maximum {
		return line
	}
	out := make([]point, 1, maximum)
	out[0] = line[0]
	start := func(stretch int) int { return 1 + stretch*(len(line)-2)/(maximum-2) }
	for k := range maximum - 2 {
		next := line[start(k+1):min(start(k+2), len(line))]
		x, y := mean(next)
		out = append(out, largest(line[start(k):start(k+1)], out[len(out)-1], x, y))
	}
	return append(out, line[len(line)-1])
}

func mean(part []point) (x, y float64) {
	for _, p := range part {
		x, y = x+p.x, y+p.y
	}
	n := float64(len(part))
	return x / n, y / n
}

// largest is the point that spans the largest triangle with two others.
func largest(part []point, before point, x, y float64) point {
	best, area := part[0], -1.0
	for _, p := range part {
		if a := math.Abs((before.x-x)*(p.y-before.y) - (before.x-p.x)*(y-before.y)); a > area {
			best, area = p, a
		}
	}
	return best
}

// thin is a curve with the points of all its lines that a chart would show.
func (k *Curve) thin() Curve {
	var keep []int
	for _, values := range [][]*float64{k.TrainLoss, k.Loss, k.Accuracy, k.RMSE} {
		for _, p := range thinned(k.points(values), mostCurvePoints) {
			keep = append(keep, p.at)
		}
	}
	slices.Sort(keep)
	keep = slices.Compact(keep)
	out := Curve{
		Job: k.Job, Name: k.Name, Round: make([]int, 0, len(keep)), TrainLoss: []*float64{}, Loss: []*float64{},
		Accuracy: []*float64{},
	}
	for _, i := range keep {
		out.Round = append(out.Round, k.Round[i])
		out.TrainLoss = append(out.TrainLoss, copied(k.TrainLoss[i]))
		out.Loss, out.Accuracy = append(out.Loss, copied(k.Loss[i])), append(out.Accuracy, copied(k.Accuracy[i]))
		if k.RMSE != nil {
			out.RMSE = append(out.RMSE, copied(k.RMSE[i]))
		}
	}
	return out
}

// copied is a copy of a value: a pointer into a record would keep the whole record in memory.
func copied(v *float64) *float64 {
	if v == nil {
		return nil
	}
	return new(*v)
}
