package rig

import (
	"math"
	"slices"
)

// sure is how often an interval may miss on each of its sides.
const sure = 0.05

// Median is the median of some values, whose order stays as it is; NaN of none.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return math.NaN()
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Interval holds the median of what the values were drawn from, in nine cases of ten or more: its ends are two of the
// values, chosen by their order alone, so that no law of theirs is assumed (the sign test's interval). It is the
// narrowest such pair with as many values below it as above. ok is false for fewer than five values, of which not even
// the least and the largest hold it as often.
func Interval(values []float64) (low, high float64, ok bool) {
	s := slices.Sorted(slices.Values(values))
	below := -1 // values outside on each side
	chance, sum := math.Pow(0.5, float64(len(s))), 0.0
	for k := range len(s) / 2 {
		if sum += chance; sum > sure { // that k of them or fewer are below the median
			break
		}
		below, chance = k, chance*float64(len(s)-k)/float64(k+1)
	}
	if below < 0 {
		return math.NaN(), math.NaN(), false
	}
	return s[below], s[len(s)-1-below], true
}
