package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
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
	for _, f := range c.curveKinds() {
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

// curveKind is one chart of curves.
type curveKind struct {
	title, unit string
	maximum     float64 // 0: the highest of all
	values      func(*Curve) []*float64
}

// curveKinds are the charts: those that every comparison may have, and one for each further metric of the jobs.
func (c *Comparison) curveKinds() []curveKind {
	out := []curveKind{
		{"Accuracy by round", "share of held-out rows", 1, func(k *Curve) []*float64 { return k.Accuracy }},
		{"RMSE by round", "unit of the target", 0, func(k *Curve) []*float64 { return k.RMSE }},
	}
	var names []string
	for i := range c.Curves {
		m, ok := disdel.FindMetric(c.Curves[i].Metric)
		if !ok || slices.Contains(names, m.Name) {
			continue
		}
		names = append(names, m.Name)
		kind := curveKind{upperFirst(m.Title) + " by round", m.Title, 0, func(k *Curve) []*float64 {
			if k.Metric != m.Name {
				return nil
			}
			return k.Figure
		}}
		if m.Larger {
			kind.maximum = 1
		}
		out = append(out, kind)
	}
	return append(out,
		curveKind{"Held-out loss by round", "loss", 0, func(k *Curve) []*float64 { return k.Loss }},
		curveKind{"Training loss by round", "loss", 0, func(k *Curve) []*float64 { return k.TrainLoss }})
}

// upperFirst is a title as a chart's name begins.
func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

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
	for _, values := range [][]*float64{k.TrainLoss, k.Loss, k.Accuracy, k.RMSE, k.Figure} {
		for _, p := range thinned(k.points(values), mostCurvePoints) {
			keep = append(keep, p.at)
		}
	}
	slices.Sort(keep)
	keep = slices.Compact(keep)
	out := Curve{
		Job: k.Job, Name: k.Name, Round: make([]int, 0, len(keep)), TrainLoss: []*float64{}, Loss: []*float64{},
		Accuracy: []*float64{}, Metric: k.Metric,
	}
	for _, i := range keep {
		out.Round = append(out.Round, k.Round[i])
		out.TrainLoss = append(out.TrainLoss, copied(k.TrainLoss[i]))
		out.Loss, out.Accuracy = append(out.Loss, copied(k.Loss[i])), append(out.Accuracy, copied(k.Accuracy[i]))
		if k.RMSE != nil {
			out.RMSE = append(out.RMSE, copied(k.RMSE[i]))
		}
		if k.Figure != nil {
			out.Figure = append(out.Figure, copied(k.Figure[i]))
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

// mostAxes bounds the axes of parallel coordinates.
const mostAxes = 7

// SweepMetric is a result that charts of a sweep have an axis for.
type SweepMetric struct {
	Key, Name string
	value     func(*JobResult) float64 // NaN: unknown
}

// sweepMetrics are the results, the one that jobs are judged by first.
var sweepMetrics = []SweepMetric{
	{"accuracy", "accuracy", func(e *JobResult) float64 { return known(e.Accuracy) }},
	{"best", "best accuracy", func(e *JobResult) float64 { return known(e.Best) }},
	{"top5", "top-5 accuracy", func(e *JobResult) float64 { return known(e.Top5) }},
	{"f1", "F1", func(e *JobResult) float64 { return known(e.F1) }},
	{"rmse", "RMSE", func(e *JobResult) float64 { return positive(e.RMSE) }},
	{"mae", "MAE", func(e *JobResult) float64 { return positive(e.MAE) }},
	{"perplexity", "perplexity", func(e *JobResult) float64 { return positive(e.Perplexity) }},
	{"loss", "loss", func(e *JobResult) float64 { return known(e.Loss) }},
	{"trainLoss", "train loss", func(e *JobResult) float64 { return known(e.Train) }},
	{"time", "time in s", func(e *JobResult) float64 { return positive(time.Duration(e.Duration).Seconds()) }},
	{"cost", "cost in GB-s", func(e *JobResult) float64 { return positive(e.CostGBs) }},
	{"memory", "memory in MB", func(e *JobResult) float64 { return positive(float64(e.Peak) / float64(disdel.MB)) }},
}

func known(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func positive(v float64) float64 {
	if v > 0 {
		return v
	}
	return math.NaN()
}

// Metrics are the results that at least two jobs have.
func (c *Comparison) Metrics() (out []SweepMetric) {
	for _, m := range sweepMetrics {
		n := 0
		for i := range c.Jobs {
			if !math.IsNaN(m.value(&c.Jobs[i])) {
				n++
			}
		}
		if n > 1 {
			out = append(out, m)
		}
	}
	return out
}

// notChosen are fields that differ between jobs but that nobody chose.
var notChosen = []string{"metadata.", "output.", "data.checksum"}

// Parameters are the fields that differ between the jobs and that somebody chose.
func (c *Comparison) Parameters() (paths []string) {
	for _, d := range c.Differs {
		if !slices.ContainsFunc(notChosen, func(start string) bool { return strings.HasPrefix(d.Path, start) }) {
			paths = append(paths, d.Path)
		}
	}
	return paths
}

// Sweep draws the jobs over a parameter or metric and a metric, and over all parameters. Unknown names are the first
// ones. link is the address of a job. It returns nil for jobs that differ in no parameter or have no result.
func (c *Comparison) Sweep(x, y string, link func(disdel.JobID) string) []Figure {
	parameters, metrics := c.Parameters(), c.Metrics()
	if len(metrics) == 0 || len(parameters) == 0 {
		return nil
	}
	chosen := metrics[max(0, slices.IndexFunc(metrics, func(m SweepMetric) bool { return m.Key == y }))]
	over, ok := c.axisOf(x)
	if !ok {
		over, _ = c.axisOf(parameters[0])
	}
	metric, _ := c.axisOf(chosen.Key)
	scatter := c.sweep([]sweepAxis{over, metric}, link)
	scatter.Title = fmt.Sprintf("%s by %s", upperFirst(metric.Name), over.Name)
	out := []Figure{c.sweepFigure(scatter, scatter.Scatter, "Each number is a job.")}
	var axes []sweepAxis
	for _, path := range parameters[:min(len(parameters), mostAxes-1)] {
		axis, _ := c.axisOf(path)
		axes = append(axes, axis)
	}
	parallel := c.sweep(append(axes, metric), link)
	parallel.Title = "All parameters and " + metric.Name
	note := "Each line is a job. Its values are shown where it is pointed at."
	if more := len(parameters) - len(axes); more > 0 {
		note += fmt.Sprintf(" The first %d parameters are shown, %d are not.", len(axes), more)
	}
	return append(out, c.sweepFigure(parallel, parallel.Parallel, note))
}

func (c *Comparison) sweepFigure(s *plot.Sweep, draw func() string, note string) Figure {
	s.Alt = fmt.Sprintf("%d jobs; the tables have their values", len(s.Jobs))
	f := Figure{Title: s.Title, Note: note, SVG: trusted(draw())}
	if len(s.Jobs) <= mostNamed {
		for i, j := range s.Jobs {
			name := fmt.Sprintf("%d %s", j.Number, c.Jobs[i].Name)
			f.Legend = append(f.Legend, plot.Key{Name: name, Class: j.Class, Shape: "line"})
		}
	}
	return f
}

// sweepAxis is an axis with the values of all jobs, and their texts.
type sweepAxis struct {
	plot.Scale
	values []float64
	texts  []string
}

// axisOf is the axis of a parameter or metric; ok is false for an unknown one.
func (c *Comparison) axisOf(name string) (a sweepAxis, ok bool) {
	for _, m := range sweepMetrics {
		if m.Key != name {
			continue
		}
		for i := range c.Jobs {
			v := m.value(&c.Jobs[i])
			a.values, a.texts = append(a.values, v), append(a.texts, strconv.FormatFloat(v, 'g', 4, 64))
		}
		a.Scale = plot.ScaleOf(m.Name, a.values, nil)
		return a, true
	}
	i := slices.IndexFunc(c.Differs, func(d Difference) bool { return d.Path == name })
	if i < 0 {
		return a, false
	}
	a.texts = c.Differs[i].Values
	short := name[strings.LastIndexByte(name, '.')+1:]
	for _, text := range a.texts {
		v, err := strconv.ParseFloat(text, 64)
		if text == "" {
			v, err = math.NaN(), nil
		}
		if err != nil || math.IsInf(v, 0) {
			names, places := plot.CategoriesOf(a.texts)
			a.values, a.Scale = places, plot.ScaleOf(short, places, names)
			return a, true
		}
		a.values = append(a.values, v)
	}
	a.Scale = plot.ScaleOf(short, a.values, nil)
	return a, true
}

// sweep has the jobs over axes.
func (c *Comparison) sweep(axes []sweepAxis, link func(disdel.JobID) string) *plot.Sweep {
	s := &plot.Sweep{}
	for _, a := range axes {
		s.Scales = append(s.Scales, a.Scale)
	}
	for i := range c.Jobs {
		j := plot.SweepJob{
			Number: i + 1, Note: fmt.Sprintf("%d %s", i+1, c.Jobs[i].Name), Class: fmt.Sprintf("s%d", i%colors),
			Link: link(c.Jobs[i].ID),
		}
		for _, a := range axes {
			j.Values = append(j.Values, a.values[i])
			j.Note += fmt.Sprintf("; %s: %s", a.Name, shown(a.texts[i : i+1])[0])
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

// CurveOptions choose how the plots by round are drawn. The zero value draws values by round on a linear scale.
type CurveOptions struct {
	Log    bool    // losses and errors have a logarithmic scale
	Smooth float64 // weight of the earlier rounds in an average, from 0 to below 1; 0: no average
	Axis   Axis    // what the x axis counts
	// Part of the x axis, in its unit: lines outside of it are not drawn. From >= To: the whole axis.
	From, To float64
}

// Axis is what the x axis of a plot by round counts. Unknown axes count rounds.
type Axis string

// The axes besides the number of the round.
const (
	AxisTime Axis = "time" // of all rounds until then
	AxisCost Axis = "cost" // by use of all activations of the rounds until then, in GB-s
)

// zoomed tells whether the options show only a part of the axis.
func (o *CurveOptions) zoomed() bool { return o.From < o.To }

// has tells whether a place of the axis is shown.
func (o *CurveOptions) has(x float64) bool { return !o.zoomed() || o.From <= x && x <= o.To }

// axis returns the places of the rounds on the x axis, and its name.
func (r *Report) axis() (places []float64, name string) {
	switch costs := r.costByRound(); {
	case r.CurveOptions.Axis == AxisTime:
		return r.timeAxis()
	case r.CurveOptions.Axis == AxisCost && costs != nil:
		return costs, "GB-s of all rounds"
	}
	for i := range r.Rounds {
		places = append(places, float64(r.Rounds[i].Round+1))
	}
	return places, "round"
}

// costByRound is the cost by use until the end of every round, nil if the record has no activations of them. Its sum is
// that of Record.MeteredCost, which counts the activations that the record leaves out.
func (r *Report) costByRound() []float64 {
	all, of := 0.0, map[int]float64{}
	for i := range r.record.Activations {
		a := &r.record.Activations[i]
		of[a.Round] += a.HeldGBs()
		all += a.HeldGBs()
	}
	if all == 0 {
		return nil
	}
	sum, out := 0.0, make([]float64, len(r.Rounds))
	for i := range r.Rounds {
		sum += of[r.Rounds[i].Round] * r.record.MeteredCost() / all
		out[i] = sum
	}
	return out
}

func (r *Report) timeAxis() (places []float64, name string) {
	all := disdel.Millis(0)
	for i := range r.Rounds {
		all += r.Rounds[i].Duration
		places = append(places, time.Duration(all).Seconds())
	}
	unit, name := 1.0, "seconds of all rounds"
	switch {
	case time.Duration(all) > 3*time.Hour:
		unit, name = 3600, "hours of all rounds"
	case time.Duration(all) > 10*time.Minute:
		unit, name = 60, "minutes of all rounds"
	}
	for i := range places {
		places[i] /= unit
	}
	return places, name
}

// smoothed is the exponential average of a line. As in Adam, section 3 of Kingma and Ba 2015, the first values are
// divided by the sum of their weights, so that the average does not begin at 0.
func smoothed(line []plot.Dot, weight float64) []plot.Dot {
	if weight <= 0 {
		return line
	}
	out := make([]plot.Dot, len(line))
	mean, remaining := 0.0, 1.0
	for i, d := range line {
		mean, remaining = weight*mean+(1-weight)*d.Y, remaining*weight
		out[i] = plot.Dot{X: d.X, Y: mean / (1 - remaining)}
	}
	return out
}

// averageNote tells that lines are averages, "" if they are not. dots says what dots are.
func (o *CurveOptions) averageNote(dots string) string {
	if w := o.Smooth; w > 0 {
		return fmt.Sprintf("Lines are averages in which the earlier rounds have the weight %g%s.", w, dots)
	}
	return ""
}

// scale makes the y axis logarithmic if the options say so, and all values are above 0. A linear axis of a part of the
// rounds starts near the least value.
func (o *CurveOptions) scale(p *plot.Lines) {
	switch low := least(p.Series); {
	case o.Log && low > 0 && low < p.Top:
		p.Bottom = low / 1.08
	case o.zoomed():
		p.Low = 0.98 * low
	}
}

// least is the least value of lines and dots.
func least(list []plot.Series) float64 {
	low := math.Inf(1)
	for i := range list {
		for _, piece := range slices.Concat(list[i].Pieces, [][]plot.Dot{list[i].Dots}) {
			for _, d := range piece {
				low = min(low, d.Y)
			}
		}
	}
	return low
}
