package main

import (
	"fmt"
	"math"
	"testing"

	"github.com/disdel/disdel/bench/rig"
)

func TestARatioIsTheMeanOverJobsAndItsIntervalHoldsIt(t *testing.T) {
	ours := [][]float64{{1, 2, 3}, {10, 10, 10}}
	theirs := [][]float64{{2, 4, 6}, {40, 40, 40}}
	got := ratio(ours, theirs, 1)
	if got.Value != 0.375 || got.Low != 0.25 || got.High != 0.5 { // every turn has the same ratios, the jobs have not
		t.Errorf("%+v, want 0.375 between those of the two jobs", got)
	}
	if one := ratio(ours[:1], theirs[:1], 1); one != (interval{0.5, 0.5, 0.5}) {
		t.Errorf("%+v, want 0.5 throughout", one)
	}
	theirs[0] = []float64{2, 8, 3}
	got = ratio(ours, theirs, 1)
	if got.Low >= got.Value || got.High <= got.Value || got.Low < 0.25 || got.High > 1 {
		t.Errorf("%+v: the interval does not hold the value, or is wider than turns and jobs are", got)
	}
	if again := ratio(ours, theirs, 1); again != got {
		t.Errorf("the same seed gave %+v and %+v", got, again)
	}
	if one := ratio([][]float64{{3}}, [][]float64{{4}}, 1); one != (interval{0.75, 0.75, 0.75}) {
		t.Errorf("one turn gave %+v", one)
	}
	if none := ratio(nil, nil, 1); !math.IsNaN(none.Value) {
		t.Errorf("nothing gave %+v", none)
	}
}

func Example_spread() {
	s := spreadOf([]float64{2, 4, 6})
	fmt.Printf("%.0f +- %.0f of %d, median %.0f\n", s.Mean, s.Deviation, s.N, rig.Median([]float64{6, 2, 4}))
	// Output: 4 +- 2 of 3, median 4
}
