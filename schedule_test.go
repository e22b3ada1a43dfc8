package disdel_test

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
)

// One cycle is PyTorch's OneCycleLR(max_lr=1, total_steps=N) in every epoch.
func TestOneCycleIsPyTorchs(t *testing.T) {
	s := &disdel.Schedule{OneCycle: &disdel.OneCycleSchedule{Rise: 0.3, StartFactor: 0.04, EndFactor: 0.000004}}
	for epochs, want := range map[int][]float64{
		10: {
			0.040000000000000036, 0.52, 1.0, 0.9504846320134737, 0.8117456539497631,
			0.6112620219362893, 0.38874197806371075,
			0.18825834605023697, 0.049519367986526286, 4e-06,
		},
		4: {
			0.040000000000000036, 0.811745653949763, 0.28306099820869923, 4e-06,
		},
		7: {
			0.040000000000000036, 0.9805566273349586, 0.9190443762697106, 0.6726838364805451,
			0.35773877573965707, 0.0992967918932656, 4e-06,
		},
	} {
		for epoch, factor := range want {
			if got := s.Factor(epoch, epochs); math.Abs(got-factor) > 1e-9 {
				t.Errorf("epoch %d of %d has the factor %g, want %g", epoch, epochs, got, factor)
			}
		}
	}
}

// Milestones are PyTorch's MultiStepLR: the rate falls with the epoch of each.
func TestMilestonesArePyTorchs(t *testing.T) {
	s := &disdel.Schedule{Step: &disdel.StepSchedule{Milestones: []int{2, 3, 6}, Factor: 0.5}}
	for epoch, want := range []float64{1, 1, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125} {
		if got := s.Factor(epoch, 8); got != want {
			t.Errorf("epoch %d: %g, want %g", epoch, got, want)
		}
	}
}

// A warm-up rises evenly to the rate of the schedule, or to the constant one.
func TestWarmupRisesToTheSchedule(t *testing.T) {
	alone := &disdel.Schedule{Warmup: 3}
	for epoch, want := range []float64{0.25, 0.5, 0.75, 1, 1} {
		if got := alone.Factor(epoch, 5); got != want {
			t.Errorf("alone, epoch %d: %g, want %g", epoch, got, want)
		}
	}
	both := &disdel.Schedule{Step: &disdel.StepSchedule{Every: 2, Factor: 0.5}, Warmup: 1}
	for epoch, want := range []float64{0.5, 1, 0.5, 0.5} {
		if got := both.Factor(epoch, 4); got != want {
			t.Errorf("with steps, epoch %d: %g, want %g", epoch, got, want)
		}
	}
}
