package disdel

import (
	"math"
	"slices"
)

// Schedule changes the learning rate with the epochs. It is at most one of Step, Cosine and OneCycle; none is a
// constant rate.
type Schedule struct {
	Step     *StepSchedule     `json:"step,omitempty"`
	Cosine   *CosineSchedule   `json:"cosine,omitempty"`
	OneCycle *OneCycleSchedule `json:"oneCycle,omitempty"`
	// Warmup is the number of epochs at the start of the job in which the rate rises evenly. It ends at the rate of the
	// schedule. 0: none.
	Warmup int `json:"warmup,omitempty"`
}

// StepSchedule multiplies the rate by Factor after every Every epochs, or after each of the numbers of epochs in
// Milestones.
type StepSchedule struct {
	Every      int     `json:"every,omitempty"`
	Milestones []int   `json:"milestones,omitempty"` // rising; without Every
	Factor     float64 `json:"factor"`
}

// steps is how often the rate has been multiplied in an epoch, counted from 0.
func (s *StepSchedule) steps(epoch int) int {
	if s.Every > 0 {
		return epoch / s.Every
	}
	n, found := slices.BinarySearch(s.Milestones, epoch)
	if found {
		n++
	}
	return n
}

// CosineSchedule lets the rate fall to Floor times itself along half a cosine (Loshchilov and Hutter 2017, without
// restarts).
type CosineSchedule struct {
	Floor float64 `json:"floor,omitempty"`
}

// OneCycleSchedule lets the rate rise from StartFactor times itself along half a cosine, for the share Rise of the
// epochs, and then fall to EndFactor times itself (Smith and Topin 2018, as PyTorch's OneCycleLR).
type OneCycleSchedule struct {
	Rise        float64 `json:"rise"`
	StartFactor float64 `json:"startFactor"`
	EndFactor   float64 `json:"endFactor"`
}

func (s *OneCycleSchedule) factor(epoch, epochs int) float64 {
	turn, last := s.Rise*float64(epochs)-1, float64(epochs-1)
	from, to, share := s.StartFactor, 1.0, float64(epoch)/turn
	if turn <= 0 || float64(epoch) > turn {
		from, to, share = 1, s.EndFactor, (float64(epoch)-turn)/(last-turn)
	}
	return to + (from-to)*(1+math.Cos(math.Pi*min(1, share)))/2
}

// Factor is what the learning rate is multiplied with in an epoch, counted from 0, of so many.
func (s *Schedule) Factor(epoch, epochs int) float64 {
	if s != nil && epoch < s.Warmup {
		return s.after(epoch, epochs) * float64(epoch+1) / float64(s.Warmup+1)
	}
	return s.after(epoch, epochs)
}

// after is Factor without the warm-up.
func (s *Schedule) after(epoch, epochs int) float64 {
	switch {
	case s == nil:
		return 1
	case s.OneCycle != nil && epochs > 1:
		return s.OneCycle.factor(epoch, epochs)
	case s.Step != nil:
		return math.Pow(s.Step.Factor, float64(s.Step.steps(epoch)))
	case s.Cosine != nil && epochs > 1:
		return s.Cosine.Floor + (1-s.Cosine.Floor)*(1+math.Cos(math.Pi*float64(epoch)/float64(epochs)))/2
	default:
		return 1
	}
}
