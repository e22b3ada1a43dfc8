package report

import (
	"fmt"
	"math"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// CurveOptions choose how the plots by round are drawn. The zero value draws values by round on a linear scale.
type CurveOptions struct {
	Log    bool    // losses and errors have a logarithmic scale
	Smooth float64 // weight of the earlier rounds in an average, from 0 to below 1; 0: no average
	ByTime bool    // the axis is the time that the rounds took together, instead of their number
}

// axis returns the places of the rounds on the x axis, and its name.
func (r *Report) axis() (places []float64, name string) {
	if !r.CurveOptions.ByTime {
		for i := range r.Rounds {
			places = append(places, float64(r.Rounds[i].Round+1))
		}
		return places, "round"
	}
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
	mean, left := 0.0, 1.0
	for i, d := range line {
		mean, left = weight*mean+(1-weight)*d.Y, left*weight
		out[i] = plot.Dot{X: d.X, Y: mean / (1 - left)}
	}
	return out
}

// averageNote tells that lines are averages, "" if they are not.
func (r *Report) averageNote() string {
	if w := r.CurveOptions.Smooth; w > 0 {
		return fmt.Sprintf("Lines are averages in which the earlier rounds have the weight %g; dots are the values.", w)
	}
	return ""
}

// scale makes the y axis logarithmic if the options say so, and all values are above 0.
func (r *Report) scale(p *plot.Lines) {
	least := math.Inf(1)
	for i := range p.Series {
		for _, piece := range p.Series[i].Pieces {
			for _, d := range piece {
				least = min(least, d.Y)
			}
		}
		for _, d := range p.Series[i].Dots {
			least = min(least, d.Y)
		}
	}
	if r.CurveOptions.Log && least > 0 && least < p.Top {
		p.Bottom = least / 1.08
	}
}
