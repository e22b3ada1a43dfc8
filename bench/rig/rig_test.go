package rig_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel/bench/rig"
)

func ExampleFigure() {
	rig.Figure("jobs", 123456, "jobs")
	rig.Figure("share", 0.123456, "of 1")
	// Output:
	// figure jobs 123456 jobs
	// figure share 0.1235 of 1
}

func TestPartsRunInTheirOrderAndAFailureKeepsNoneFromRunning(t *testing.T) {
	var ran []string
	broken := errors.New("broken")
	part := func(name string, err error) rig.Part {
		return rig.Part{Name: name, Run: func() error { ran = append(ran, name); return err }}
	}
	parts := []rig.Part{part("a", broken), part("b", nil), part("c", nil)}
	if err := rig.RunParts(parts, "c,a"); !errors.Is(err, broken) || !slices.Equal(ran, []string{"a", "c"}) {
		t.Errorf("%v ran, %v", ran, err)
	}
	ran = nil
	if err := rig.RunParts(parts, "b,d"); err == nil || len(ran) > 0 {
		t.Errorf("%v ran, %v", ran, err)
	}
}

func TestAPercentileIsOneOfTheValues(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for share, want := range map[float64]float64{0: 1, 0.2: 1, 0.21: 2, 0.5: 3, 1: 5} {
		if got := rig.Percentile(values, share); got != want {
			t.Errorf("%g: %g, want %g", share, got, want)
		}
	}
	if got := rig.Percentile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of none: %g", got)
	}
}

func TestMemoryOfThisProcess(t *testing.T) {
	got, err := rig.Memory(0, "VmRSS", "VmHWM")
	if err != nil || got[0] <= 0 || got[1] < got[0]/2 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := rig.Memory(0, "VmNone"); err == nil {
		t.Errorf("%v", got)
	}
}
