package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// spread is the mean of some values and how they are spread.
type spread struct {
	N         int     `json:"n"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"` // of the sample; 0 of one value
}

func spreadOf(v []float64) spread {
	s := spread{N: len(v)}
	if s.N == 0 {
		return s
	}
	for _, x := range v {
		s.Mean += x / float64(s.N)
	}
	if s.N > 1 {
		for _, x := range v {
			s.Deviation += (x - s.Mean) * (x - s.Mean) / float64(s.N-1)
		}
		s.Deviation = math.Sqrt(s.Deviation)
	}
	return s
}

// interval is a value with the interval that nine of ten resamples lie in.
type interval struct {
	Value, Low, High float64
}

// resamples is how often turns are drawn anew for an interval.
const resamples = 2000

// ratio is the mean over the jobs of ours over theirs, each by turns: ours[job][turn]. Environments ran in turns, so a
// turn is drawn as a whole, of all jobs and both environments (the bootstrap over turns). Of one turn the interval is
// the
// value.
func ratio(ours, theirs [][]float64, seed uint64) interval {
	turns := math.MaxInt
	for j := range ours {
		turns = min(turns, len(ours[j]), len(theirs[j]))
	}
	if len(ours) == 0 || turns == 0 {
		return interval{math.NaN(), math.NaN(), math.NaN()}
	}
	of := func(pick []int) float64 {
		sum := 0.0
		for j := range ours {
			var a, b float64
			for _, t := range pick {
				a, b = a+ours[j][t], b+theirs[j][t]
			}
			sum += a / b
		}
		return sum / float64(len(ours))
	}
	every := make([]int, turns)
	for t := range every {
		every[t] = t
	}
	lot := rand.New(rand.NewPCG(seed, 90))
	drawn := make([]float64, resamples)
	for i := range drawn {
		pick := make([]int, turns)
		for t := range pick {
			pick[t] = lot.IntN(turns)
		}
		drawn[i] = of(pick)
	}
	slices.Sort(drawn)
	return interval{of(every), drawn[resamples/20], drawn[resamples-1-resamples/20]}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
