package main

import "github.com/disdel/disdel/bench/rig"

// several are the values of a figure, one of each seed or job.
type several []float64

// figure prints their median, and an interval for it (rig.Interval) where there are enough of them.
func (s several) figure(name, unit string) {
	figure(name, median(s), unit)
	if low, high, ok := rig.Interval(s); ok {
		figure(name+"_low", low, unit)
		figure(name+"_high", high, unit)
	}
}

// higher is the one with the higher median.
func higher(a, b several) several {
	if len(a) > 0 && median(a) >= median(b) {
		return a
	}
	return b
}

func median(v []float64) float64 { return rig.Median(v) }
