package rig_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel/bench/rig"
)

func ExampleInterval() {
	values := []float64{12, 3, 7, 1, 9, 5, 8, 2, 11, 4, 6, 10, 20, 13, 19, 14, 18, 15, 17, 16}
	low, high, ok := rig.Interval(values)
	fmt.Println(rig.Median(values), low, high, ok)
	_, _, ok = rig.Interval(values[:4])
	fmt.Println(rig.Median(values[:4]), ok)
	// Output:
	// 10.5 6 15 true
	// 5 false
}

// Of what is skewed too, the interval holds the true median as often as it says, and is no wider than it has to be.
func TestAnIntervalHoldsTheMedianInNineCasesOfTen(t *testing.T) {
	lot := rand.New(rand.NewPCG(5, 1))
	for _, n := range []int{5, 6, 20, 66} {
		held := 0
		const times = 4000
		for range times {
			values := make([]float64, n)
			for i := range values {
				values[i] = math.Exp(lot.NormFloat64())
			}
			if low, high, ok := rig.Interval(values); ok && low <= 1 && 1 <= high {
				held++
			}
		}
		if share := float64(held) / times; share < 0.89 || share > 0.98 {
			t.Errorf("%d values: %.3f of the intervals hold the median, want 0.9 and little more", n, share)
		}
	}
}

func TestNothingHasNoMedian(t *testing.T) {
	if m := rig.Median(nil); !math.IsNaN(m) {
		t.Errorf("nothing has the median %g", m)
	}
	if low, high, ok := rig.Interval(nil); ok || !math.IsNaN(low) || !math.IsNaN(high) {
		t.Errorf("nothing has the interval %g to %g", low, high)
	}
	if m := rig.Median([]float64{1, math.Inf(1), 3}); m != 3 {
		t.Errorf("the median of two numbers and one that never came is %g, want 3", m)
	}
}
