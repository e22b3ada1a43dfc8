package main

import (
	"fmt"
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

var unknown = interval{math.NaN(), math.NaN(), math.NaN()}

func (v interval) known() bool { return !math.IsNaN(v.Value) }

// alone tells whether a value is of one run, which has no interval.
func (v interval) alone() bool { return v.Low == v.High }

func (v interval) String() string {
	switch {
	case !v.known():
		return "not measured"
	case v.alone():
		return fmt.Sprintf("%.3f", v.Value)
	default:
		return fmt.Sprintf("%.3f (%.3f to %.3f)", v.Value, v.Low, v.High)
	}
}

// resamples is how often turns and jobs are drawn anew for an interval.
const resamples = 2000

// ratio is the mean over the jobs of ours over theirs, each by turns: ours[job][turn]. Environments ran in turns, so a
// whole turn is drawn, with all jobs and both environments. The paper's figure is a mean over pairs that stand for
// others, so the jobs are drawn too (a bootstrap over both). Of one turn of one job the interval is the value.
func ratio(ours, theirs [][]float64, seed uint64) interval {
	turns := math.MaxInt
	for j := range ours {
		turns = min(turns, len(ours[j]), len(theirs[j]))
	}
	if len(ours) == 0 || turns == 0 {
		return unknown
	}
	of := func(jobs, pick []int) float64 {
		sum := 0.0
		for _, j := range jobs {
			var a, b float64
			for _, t := range pick {
				a, b = a+ours[j][t], b+theirs[j][t]
			}
			sum += a / b
		}
		return sum / float64(len(jobs))
	}
	lot := rand.New(rand.NewPCG(seed, 90))
	drawn := make([]float64, resamples)
	for i := range drawn {
		drawn[i] = of(draw(lot, len(ours)), draw(lot, turns))
	}
	slices.Sort(drawn)
	return interval{of(upTo(len(ours)), upTo(turns)), drawn[resamples/20], drawn[resamples-1-resamples/20]}
}

// draw is as many numbers below n, each by lot.
func draw(lot *rand.Rand, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = lot.IntN(n)
	}
	return out
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
