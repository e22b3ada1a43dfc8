package rig

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Figure prints "figure NAME VALUE UNIT". A whole number has all of its digits, any other value four.
func Figure(name string, value float64, unit string) {
	format := "figure %s %.4g %s\n"
	if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
		format = "figure %s %.0f %s\n"
	}
	fmt.Printf(format, name, value, unit)
}

// MedianFigure prints the median of values, and its interval as NAME_low and NAME_high where [Interval] has one.
func MedianFigure(name string, values []float64, unit string) {
	Figure(name, Median(values), unit)
	if low, high, ok := Interval(values); ok {
		Figure(name+"_low", low, unit)
		Figure(name+"_high", high, unit)
	}
}

// Mean is the mean of values, 0 of none.
func Mean(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

// Percentile is the smallest value that at least this share of all values does not exceed (nearest rank), NaN of none.
func Percentile(values []float64, share float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return math.NaN()
	}
	return s[min(len(s)-1, max(0, int(math.Ceil(share*float64(len(s))))-1))]
}

// Since is the time since begun, in milliseconds.
func Since(begun time.Time) float64 { return float64(time.Since(begun)) / float64(time.Millisecond) }

// Times runs f so often and returns what each run took, in milliseconds.
func Times(runs int, f func() error) ([]float64, error) {
	var out []float64
	for range runs {
		begun := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		out = append(out, Since(begun))
	}
	return out, nil
}
