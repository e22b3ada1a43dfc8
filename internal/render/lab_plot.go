package render

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/plot"
)

// WriteLabPlot draws how many workers the first job had under each policy, over its time, to a new file.
func WriteLabPlot(l simulate.Lab, name string, format plot.Format) error {
	if len(l.Trials) == 0 {
		return &disdel.Error{Kind: disdel.Invalid, Op: "draw chart", Msg: "there are no jobs"}
	}
	job := l.Trials[0].Job
	c := plot.Chart{
		Title: "Workers of " + string(job) + " under each policy",
		X:     plot.Axis{Name: "time (s)"}, Y: plot.Axis{Name: "workers", Whole: true},
	}
	for _, t := range l.Trials {
		if t.Job != job || t.Status != disdel.StatusSucceeded {
			continue
		}
		line := plot.Line{Name: t.Policy}
		at := func(m disdel.Millis, workers int) {
			line.Points = append(line.Points, plot.Point{
				X: plot.Span{Likely: m.Seconds()}, Y: plot.Span{Likely: float64(workers)},
			})
		}
		for i, crew := range t.Course {
			at(crew.At, crew.Workers)
			until := t.Took
			if i+1 < len(t.Course) {
				until = t.Course[i+1].At
			}
			at(until, crew.Workers)
		}
		c.Lines = append(c.Lines, line)
	}
	return WriteChart(c, name, format)
}
