package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// Auto takes the fewest workers that do what the user asks for: with a deadline, the fewest that keep it, at the
// least cost; otherwise the fewest with which an epoch takes at most 3 % longer than with the best known number. It
// uses earlier jobs of the same kind, otherwise this job's first epochs as probes, which may lose a tenth of its
// time. It begins with at most as many workers as processors.
type Auto struct{}

const (
	autoSlower = 1.03 // times the best time, for fewer workers
	autoSpare  = 0.9  // share of the deadline that the plan fills
)

// Name implements Policy.
func (Auto) Name() string { return "auto" }

// Meaning implements Policy.
func (Auto) Meaning() string {
	return "takes the fewest that keep the deadline, or that are as fast as the best but for 3 %"
}

// Decide implements Policy.
func (a Auto) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	s := speedsOf(in)
	best := func(all []timed) timed { return a.best(s, in, all) }
	switch {
	case in.Boundary == disdel.BoundaryEpoch:
		return s.choose(in, best).decision(out)
	case in.Boundary != disdel.BoundaryStart:
		return out
	}
	if s, ok := scalingOf(in, func(int) bool { return true }); ok {
		return s.chosen().decision(out)
	}
	if n := in.Bounds.Processors; n > 0 && out.Next.Workers > n {
		out.Next.Workers = n
		out.Why = fmt.Sprintf("as many as there are processors: %s", workersText(n))
	}
	return out
}

// best is the fewest workers that are enough.
func (Auto) best(s *speeds, in Input, all []timed) timed {
	all = s.payable(in, all)
	remaining, epochs := float64(in.Goal.Deadline), in.Goal.Epochs
	if remaining > 0 && epochs > 0 && s.rows > 0 {
		each := autoSpare * remaining / epochs / s.rows * 1000 // time for 1,000 rows
		intime := slices.DeleteFunc(s.worthwhile(all), func(t timed) bool { return t.time > each })
		if len(intime) > 0 {
			return slices.MinFunc(intime, by(func(t timed) float64 { return t.time * float64(t.workers) }))
		}
	}
	byTime := by(func(t timed) float64 { return t.time })
	enough := max(autoSlower*slices.MinFunc(all, byTime).time, slices.MinFunc(s.worthwhile(all), byTime).time)
	near := slices.DeleteFunc(slices.Clone(all), func(t timed) bool { return t.time > enough })
	return slices.MinFunc(near, func(a, b timed) int { return cmp.Compare(a.workers, b.workers) })
}

// workersThatPay is the number of workers of a job whose file names neither workers nor a policy: the number that
// pays by the times of earlier jobs of the kind, as Auto begins with it. It stays while the job runs, so that the
// same home and file give the same bits. It returns none if the only measured number pays, or if jobs share the
// processors.
func (b *planBuilder) workersThatPay(limit disdel.Bytes) (none choice) {
	if !b.free() || b.Decided || b.Siblings > 0 || len(b.History) == 0 {
		return none
	}
	s, ok := b.scaling(limit)
	if _, measured := s.mean[s.pays.workers]; !ok || measured && len(s.measured(s.all)) < 2 {
		return none
	}
	return s.chosen()
}

// Scaling tells which number of workers pays for a job, by the epochs of earlier jobs of its kind. One worker is
// among the candidates.
type Scaling struct {
	// Workers is the number that pays: the fewest that keep the deadline and the budget, or, without a deadline, that are
	// as fast as the best number. More workers count as faster only where the gain is larger than the noise.
	Workers int `json:"workers"`
	// Epochs are the times of an epoch by numbers of workers, the fewest first.
	Epochs []ScaledEpoch `json:"epochs"`
	// Deviation is that of one measured time, as a part of the time.
	Deviation float64 `json:"deviation"`
}

// ScaledEpoch is the time of an epoch with a number of workers.
type ScaledEpoch struct {
	Workers  int           `json:"workers"`
	Duration disdel.Millis `json:"durationMs"`
	// Exchange is the part of Duration in which workers exchange or add up their updates.
	Exchange disdel.Millis `json:"exchangeMs"`
	// Fixed is the part of Duration that more workers do not share: starts, loads and waits.
	Fixed disdel.Millis `json:"fixedMs"`
	// Measured is false if the time follows from the times of other numbers.
	Measured bool `json:"measured"`
}

// ScalingOf is the scaling of a job. It is nil if the job's history tells nothing about other numbers of workers.
func ScalingOf(in PlanInput) *Scaling {
	b := planBuilder{PlanInput: in}
	limit, _ := b.ceiling()
	s, ok := b.scaling(limit)
	if !ok {
		return nil
	}
	return s.report()
}

// scaling is the times of a job by number of workers, and the number that pays.
type scaling struct {
	*speeds
	law    speedLaw
	shared speedConditions
	all    []timed // measured or by the law, sorted by workers
	pays   timed
}

// scaling looks at the history of the planned job. ok is false if the history has one number of workers only.
func (b *planBuilder) scaling(limit disdel.Bytes) (scaling, bool) {
	in := Input{
		Bounds: bounds(b.Job, b.Data.Train, b.Platform, b.estimate(1).Total),
		Past:   PastObservations(b.History, b.Job, b.Data),
		Goal:   Goal{Epochs: float64(b.Job.Training.Epochs)},
	}
	if b.Processors > 0 {
		in.Bounds.Processors = b.Processors
	}
	in.Goal.Cost, _ = b.Job.Budget()
	within, _ := b.Job.TimeLimit()
	in.Goal.Deadline = disdel.Millis(within)
	return scalingOf(in, func(workers int) bool { return b.estimate(workers).Total <= limit })
}

// scalingOf is the scaling by observations of earlier jobs, for the numbers of workers that fit.
func scalingOf(in Input, fits func(workers int) bool) (scaling, bool) {
	in.Past = withoutStarts(in.Past)
	s := scaling{speeds: speedsOf(in)}
	s.shared = speedConditions{Processors: in.Bounds.Processors, Rounds: s.several}
	measured := inOrder(s.mean)
	if len(measured) == 0 || !s.fit(measured, partsOf(in.Past)) {
		return s, false
	}
	s.all = slices.DeleteFunc(s.byLaw(measured, s.law, s.shared), func(t timed) bool { return !fits(t.workers) })
	if len(s.all) < 2 {
		return s, false
	}
	s.pays = s.best(in)
	return s, true
}

// chosen is the number that pays, with the times that tell so.
func (s *scaling) chosen() choice {
	more := " in earlier jobs"
	if _, measured := s.mean[s.pays.workers]; !measured {
		more += fmt.Sprintf("; by their law about %s with %d", disdel.Millis(s.pays.time).Text(), s.pays.workers)
	}
	return s.goes(s.pays, more)
}

// best is the number that pays: a measured one, unless another one is clearly better.
func (s *scaling) best(in Input) timed {
	measured := s.measured(s.all)
	want := Auto{}.best(s.speeds, in, s.all)
	if len(measured) == 0 {
		return want
	}
	known := Auto{}.best(s.speeds, in, measured)
	if _, ok := s.mean[want.workers]; ok || !s.clearlyFaster(want, known) && !s.clearlyCheaper(in, want, known) {
		return known
	}
	return want
}

// clearlyFaster tells whether an unmeasured number of workers is faster than a measured one. The gain must be larger
// than the noise, which grows with the distance to the nearest measured number.
func (s *scaling) clearlyFaster(want, known timed) bool {
	return want.time < (1-speedsGain)*known.time &&
		s.noise.clear(want.time, known.time, s.doubt(want.workers), s.variance[known.workers])
}

// clearlyCheaper tells whether a job with a deadline costs clearly less with a number that was not measured.
func (s *scaling) clearlyCheaper(in Input, want, known timed) bool {
	return in.Goal.Deadline > 0 && s.noise.clear(want.time*float64(want.workers), known.time*float64(known.workers),
		s.doubt(want.workers), s.variance[known.workers])
}

// doubt is the variance of the law's time, divided by the variance of one measurement. It grows with each doubling
// between a number of workers and the nearest measured one.
func (s *scaling) doubt(workers int) float64 {
	nearest := math.Inf(1)
	for w := range s.mean {
		nearest = min(nearest, math.Abs(math.Log2(float64(workers)/float64(w))))
	}
	return 1 + nearest*nearest
}

// fit finds the law of the times. It uses the parts of the times if they are known and agree with the times,
// otherwise the times of at least two numbers of workers.
func (s *scaling) fit(measured []timed, parts map[int]speedLaw) bool {
	if law, ok := lawOfParts(measured, parts, s.shared); ok {
		off := noiseSure * s.noise.deviation()
		if len(measured) == 1 || lawError(law, measured, s.shared) <= float64(len(measured))*off*off {
			s.law = law
			return true
		}
	}
	law, ok := fitSpeed(s.worthwhile(measured), s.shared)
	s.law = law
	return ok
}

// lawOfParts is the law whose terms are the means of the parts. ok is false if the parts of a number are unknown.
func lawOfParts(measured []timed, parts map[int]speedLaw, conditions speedConditions) (law speedLaw, ok bool) {
	for _, t := range measured {
		p, known := parts[t.workers]
		if !known {
			return speedLaw{}, false
		}
		terms, n := conditions.terms(t.workers), float64(len(measured))
		law.fixed += p.fixed / terms[0] / n
		law.work += p.work / terms[1] / n
		law.each += p.each / terms[2] / n
	}
	return law, true
}

// partsOf is the parts of the time of 1,000 rows, by number of workers: means over the epochs with known parts.
func partsOf(past []disdel.Observation) map[int]speedLaw {
	sums, counts := map[int]speedLaw{}, map[int]float64{}
	for _, e := range epochs(past) {
		if e.disturbed || e.compute <= 0 || e.rows <= 0 {
			continue
		}
		p, rows := sums[e.workers], float64(e.rows)/1000
		p.work += float64(max(0, e.compute-e.exchange)) / rows
		p.each += float64(e.exchange+e.reduce) / rows
		p.fixed += float64(max(0, e.duration-e.compute-e.reduce)) / rows
		sums[e.workers] = p
		counts[e.workers]++
	}
	for w, p := range sums {
		n := counts[w]
		sums[w] = speedLaw{p.fixed / n, p.work / n, p.each / n}
	}
	return sums
}

// withoutStarts subtracts cold starts from the rounds of numbers of workers that were never seen without one. So jobs
// of one epoch count, too.
func withoutStarts(past []disdel.Observation) []disdel.Observation {
	calm := map[int]bool{}
	for _, e := range epochs(past) {
		calm[e.workers] = calm[e.workers] || !e.disturbed
	}
	out := slices.Clone(past)
	for i := range out {
		if o := &out[i]; !calm[o.Setting.Workers] && o.Cold < o.Duration {
			o.Duration, o.Cold = o.Duration-o.Cold, 0
		}
	}
	return out
}

// report is the scaling for users.
func (s *scaling) report() *Scaling {
	out := &Scaling{Workers: s.pays.workers, Deviation: s.noise.deviation()}
	for _, t := range s.all {
		terms := s.shared.terms(t.workers)
		share := s.rows / 1000 * t.time / s.law.at(t.workers, s.shared)
		_, measured := s.mean[t.workers]
		out.Epochs = append(out.Epochs, ScaledEpoch{
			Workers: t.workers, Measured: measured, Duration: disdel.Millis(s.rows / 1000 * t.time),
			Exchange: disdel.Millis(share * s.law.each * terms[2]), Fixed: disdel.Millis(share * s.law.fixed * terms[0]),
		})
	}
	return out
}
