package engine

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
)

// A value that is not finite is found at every place of an array of every length; large finite values are none.
func TestValuesThatAreNotFiniteAreFoundEverywhere(t *testing.T) {
	for length := range 36 { // more than two vectors of any processor
		values := make([]float32, length)
		for i := range values {
			values[i] = math.MaxFloat32
		}
		if err := finite("w", values); err != nil {
			t.Errorf("%d finite values: %v", length, err)
		}
		for at := range values {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				values[at] = float32(bad)
				if err := finite("w", values); disdel.KindOf(err) != disdel.Diverged {
					t.Errorf("%v at %d of %d: %v", bad, at, length, err)
				}
			}
			values[at] = 1
		}
	}
}
