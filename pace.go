package disdel

import (
	"math"
	"slices"
)

// Margins over the time that a pace predicts.
const (
	// leastMargin covers what comes after the last batch, and a machine that is a little slower next time.
	leastMargin = 1.3
	// PacedMargin is for what was measured once only, so that its noise is not known.
	PacedMargin = 1.5
	// mostMargin keeps a limit below two and a half times the need.
	mostMargin = 1.9
	// certain is the number of standard errors that the margin covers.
	certain = 3
	// segments is the number of parts that heartbeats are divided into, to measure their noise.
	segments = 8
)

// Pace is the time that a piece of work takes, extrapolated from its heartbeats.
type Pace struct {
	Whole Millis // of the whole work, from the start of a new try
	Ends  Millis // of the activation that was measured, from its own start: an earlier one may have done a part
	Error Millis // standard error of Whole; below 0: one measurement only, so that it is not known
}

// Margin is the factor over Whole that covers the error of the pace.
func (p Pace) Margin() float64 {
	if p.Error < 0 || p.Whole <= 0 {
		return PacedMargin
	}
	return min(mostMargin, max(leastMargin, 1.1+certain*float64(p.Error)/float64(p.Whole)))
}

// oneBeatTells is the number of batches from which a single heartbeat gives the pace. Before, most of its time was the
// start.
const oneBeatTells = 8

// Pace is the pace by the activation's heartbeats; ok is false if they show no progress, or so little that most of the
// time may have been the start.
func (a *Activation) Pace() (Pace, bool) {
	points, all := a.points()
	if len(points) == 0 || all == 0 {
		return Pace{}, false
	}
	again := a.Leg > 0 || a.Attempt > 1 // others may have done the first batches
	first, last := points[0], points[len(points)-1]
	if len(points) == 1 {
		if last.done < oneBeatTells || again {
			return Pace{}, false
		}
		total := last.at * Millis(all) / Millis(last.done)
		return Pace{Whole: total, Ends: total, Error: -1}, true
	}
	each := float64(last.at-first.at) / float64(last.done-first.done)
	remaining := all - first.done
	if again { // the next try may have all of it to do
		remaining = all
	}
	return Pace{
		Whole: first.at + Millis(each*float64(remaining)),
		Ends:  last.at + Millis(each*float64(all-last.done)),
		Error: standardError(points, each, float64(all-last.done)),
	}, true
}

// progress is the number of batches done at a time since the activation's start.
type progress struct {
	at   Millis
	done int
}

// points are the heartbeats with progress, and the number of batches of the work.
func (a *Activation) points() (points []progress, all int) {
	for _, b := range a.Beats {
		done, total := a.ProgressAt(b)
		if done > 0 && (len(points) == 0 || done > points[len(points)-1].done) {
			points, all = append(points, progress{max(0, b.At-a.WaitTime), done}), total
		}
	}
	return points, all
}

// standardError is that of the time for more batches, by how much the parts of the progress differ; below 0: there are
// too few parts.
func standardError(points []progress, each, remaining float64) Millis {
	parts := slices.Clone(points)
	if n := len(points) - 1; n > segments {
		parts = parts[:0]
		for i := range segments + 1 {
			parts = append(parts, points[i*n/segments])
		}
	}
	if len(parts) < 3 {
		return -1
	}
	var sum, done float64
	for i := 1; i < len(parts); i++ {
		n := float64(parts[i].done - parts[i-1].done)
		off := float64(parts[i].at-parts[i-1].at) - each*n
		sum, done = sum+off*off/n, done+n
	}
	variance := sum / float64(len(parts)-2) // of one batch's time
	return Millis(math.Sqrt(variance * (remaining + remaining*remaining/done)))
}
