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
	{"rmse", "RMSE", func(e *JobResult) float64 { return positive(e.RMSE) }},
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
	scatter.Title = fmt.Sprintf("%s by %s", capital(metric.Name), over.Name)
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

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
