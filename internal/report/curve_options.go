package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

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
