package scheduler

import (
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

// LetsGo is what workers of a job are let go by while a round runs, of one that begins with so many: scale-in by steps,
// where the policy is MLLess and workers take batches from a queue, so that what one leaves is another's. nil: nobody
// is.
func LetsGo(p Policy, job disdel.Job, workers int) *ScaleIn {
	if _, ours := p.(MLLess); !ours || !job.Distribution.Exchange.Queued() {
		return nil
	}
	return &ScaleIn{Workers: workers, Least: max(1, job.Distribution.MinWorkers)}
}

// ScaleIn removes workers while a round runs: MLLess' scale-in (its section 4.2) by steps, for workers that exchange
// updates after every step. Past the knee of the loss it checks every few steps whether the job would end with less
// time times cost if it had fewer workers.
//
// It assumes the worst case: the progress of a step is proportional to the workers, each of which brings a batch. Then
// fewer workers pay only if a step is mostly waiting for other workers' updates. The published rule ignores cost, and
// removes workers of a job that computes most of the time.
//
// No worker leaves while the loss is above its minimum by more than its noise: the assumption was wrong then.
//
// It is pure: equal steps, equal answers. The zero value with Workers set is ready.
type ScaleIn struct {
	Workers int     // that there are; Step lowers it
	Least   int     // that stay; 0: 1
	Every   int     // steps between decisions; 0: 50
	Target  float64 // loss that the job is to come to; 0: it is not known, and as many steps are left as were made
	Holds   bool    // nobody leaves: held-out rows say that the loss rises

	losses   []float64 // running means
	batches  []float64 // that were trained when they were seen
	spread   float64   // running mean of the squares of how far a step's loss was from the mean
	least    float64   // of losses
	steepest float64   // that the loss fell in Every steps
	changed  int       // the step after which Workers changed last
	own      float64   // of the steps since, added up
	others   float64
	counted  int
	time     float64 // of all steps
	cost     float64 // worker times time
}

// StepSeen is a step as ScaleIn sees it.
type StepSeen struct {
	Loss   float64 // of the batches of all workers, before it
	Own    float64 // time of fetching, computing and applying
	Others float64 // time of sending, waiting and reading
}

// What ScaleIn goes by.
const (
	scaleInEvery  = 50
	scaleInSpan   = 20.0 // steps of a running mean, as MLLess' code has it
	scaleInFlat   = 0.2  // of the steepest fall: less is past the knee
	scaleInSettle = 4    // steps after a change that are not counted, as there
	scaleInGain   = 0.97 // of time times cost: what is not less than that is no gain
	scaleInPoints = 40   // losses that a curve is fitted to
	scaleInMost   = 4.0  // times the steps so far that are thought to be left
	scaleInAlpha  = 2 / (scaleInSpan + 1)
	scaleInRises  = 3.0 // deviations of a running mean: a loss that rose by more has become worse
)

// Step takes a step, and returns how many workers are to make the next one. Those that go leave with it.
func (s *ScaleIn) Step(seen StepSeen) (workers int) {
	took := seen.Own + seen.Others
	s.time, s.cost = s.time+took, s.cost+took*float64(s.Workers)
	smooth, batches := seen.Loss, float64(s.Workers)
	if n := len(s.losses); n > 0 {
		off := seen.Loss - s.losses[n-1]
		smooth = scaleInAlpha*seen.Loss + (1-scaleInAlpha)*s.losses[n-1]
		s.spread = scaleInAlpha*off*off + (1-scaleInAlpha)*s.spread
		batches += s.batches[n-1]
	}
	if len(s.losses) == 0 || smooth < s.least {
		s.least = smooth
	}
	s.losses, s.batches = append(s.losses, smooth), append(s.batches, batches)
	since := len(s.losses) - s.changed
	if since > scaleInSettle {
		s.own, s.others, s.counted = s.own+seen.Own, s.others+seen.Others, s.counted+1
	}
	if s.knee() && since%s.every() == 0 && s.counted > 0 && !s.worsens() {
		if n := s.best(); n < s.Workers {
			s.Workers, s.changed = n, len(s.losses)
			s.own, s.others, s.counted = 0, 0, 0
		}
	}
	return s.Workers
}

// Now says how many workers there are from now on, where something else has decided it. Losses so far stay known.
func (s *ScaleIn) Now(workers int) {
	if workers != s.Workers {
		s.Workers, s.changed = workers, len(s.losses)
		s.own, s.others, s.counted = 0, 0, 0
	}
}

func (s *ScaleIn) every() int {
	if s.Every > 0 {
		return s.Every
	}
	return scaleInEvery
}

// knee tells whether the loss falls by little, held against how it has fallen.
func (s *ScaleIn) knee() bool {
	n, every := len(s.losses), s.every()
	if n <= every {
		return false
	}
	fell := s.losses[n-1-every] - s.losses[n-1]
	s.steepest = max(s.steepest, fell)
	return fell < scaleInFlat*s.steepest
}

// worsens tells whether the loss has become worse than it was.
func (s *ScaleIn) worsens() bool {
	deviation := math.Sqrt(2 * s.spread * scaleInAlpha / (2 - scaleInAlpha)) // of the difference of two running means
	return s.Holds || s.losses[len(s.losses)-1] > mllessRises*s.least+scaleInRises*deviation
}

// curve is how the loss has fallen by batches; nil: it follows no curve.
func (s *ScaleIn) curve() *estimator.LossCurve {
	var points []estimator.LossPoint
	apart := max(1, len(s.losses)/scaleInPoints)
	for i := apart - 1; i < len(s.losses); i += apart {
		points = append(points, estimator.LossPoint{Epoch: s.batches[i], Loss: s.losses[i]})
	}
	c, ok := estimator.FitLosses(points)
	if !ok {
		return nil
	}
	return &c
}

// best is the number of workers, down to half of those that there are, with which time times cost of the whole job
// would be the least: also if a quarter, or four times, as much of it is left as it seems.
func (s *ScaleIn) best() int {
	left := s.left()
	best, least := s.Workers, scaleInGain*s.price(s.Workers, left)
	for n := s.Workers - 1; n >= max(1, s.Least, (s.Workers+1)/2); n-- {
		if p := s.price(n, left); p < least && s.price(n, left/4) < s.price(s.Workers, left/4) &&
			s.price(n, 4*left) < s.price(s.Workers, 4*left) {
			best, least = n, p
		}
	}
	return best
}

// price is time times cost of the whole job, if so many workers make what now takes so many steps.
func (s *ScaleIn) price(workers int, left float64) float64 {
	now, w := float64(s.Workers), float64(workers)
	step := s.own / float64(s.counted)
	if s.Workers > 1 {
		step += s.others / float64(s.counted) * (w - 1) / (now - 1)
	}
	time := left * now / w * step
	return (s.time + time) * (s.cost + time*w)
}

// left is how many steps with all workers are thought to be left: until a curve through the losses comes to the target.
func (s *ScaleIn) left() float64 {
	made := float64(len(s.losses))
	if s.Target <= 0 {
		return made
	}
	most := scaleInMost * made
	c := s.curve()
	if c == nil {
		return most
	}
	more := (c.Reaches(s.Target) - s.batches[len(s.batches)-1]) / float64(s.Workers)
	return min(max(more, float64(s.every())), most)
}
