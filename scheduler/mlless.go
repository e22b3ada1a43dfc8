package scheduler

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

// MLLess removes one worker at the end of each epoch once the loss is past its knee, as MLLess' scale-in does (its
// section 4.2), while that pays. Two conditions must hold: the loss that is expected after an equal time is at most
// five per cent worse, and speed per cost (Eq. 4: 1 / (time times cost)) does not fall.
//
// The published rule checks neither the second condition nor its own results. In a job that mostly computes, each
// worker less makes the job dearer. So the policy predicts the gain from the part of an epoch that workers share, and
// checks it by measurement: if time times cost rose, the job goes back for good.
type MLLess struct{}

// The constants of mlless.
const (
	mllessFlat   = 0.02 // of the loss: an epoch in which it falls less is past the knee
	mllessCount  = 2    // of such epochs in a row
	mllessLeast  = 3    // epochs before there can be a knee
	mllessSpan   = 0.5  // weight of the newest loss in a running mean
	mllessWorse  = 0.05 // S, as a share of the loss that is expected with all workers
	mllessSlower = 1.03 // times the product of time and cost: more is worse than before
	mllessRises  = 1.01 // times the least loss so far: no worker leaves above it
)

// Name returns the policy's name in job files.
func (MLLess) Name() string { return "mlless" }

// Meaning returns what explain says.
func (MLLess) Meaning() string {
	return "lets one go at the end of each epoch once the loss has flattened, while that costs little progress"
}

// Decide considers the epochs so far.
func (MLLess) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	r := kneeSearch{bounds: in.Bounds, next: in.Now.Workers, rises: LossRises(in.Seen)}
	all := epochs(in.Seen)
	for i, e := range all {
		r.see(e, i == len(all)-1)
	}
	out.Next.Workers, out.Why = r.next, r.why
	return out
}

// kneeSearch follows a job's epochs and decides its number of workers.
type kneeSearch struct {
	bounds Bounds
	points []estimator.LossPoint
	flat   int    // epochs in a row in which the loss hardly fell
	knee   bool   // the knee is passed
	rises  string // how the loss has become worse; "": it has not

	best    measure // the least time times cost since the knee; zero: none was measured
	first   measure // with the number of workers at the knee
	done    bool    // no more workers may leave
	repeats bool

	next int
	why  string
}

// measure is a number of workers and an epoch's time and cost with it.
type measure struct {
	workers int
	time    float64 // of 1,000 rows
	shared  float64 // the share of time, 0 to 1, that falls with more workers
	cost    float64 // of as many rows, by use; workers times time if that is unknown
}

// price is time times cost.
func (m measure) price() float64 { return m.cost * m.time }

// shared returns the part of an epoch that workers share. That is computing; in an epoch of several rounds it is all
// but aggregation, since more workers make fewer rounds. They do not share exchanges after steps: more workers make
// fewer steps each, and read more in each.
func shared(e epoch) float64 {
	part := float64(e.compute)
	if e.rounds > 1 {
		part = float64(e.duration - e.reduce)
	}
	part -= float64(e.exchange)
	if part <= 0 || e.duration <= 0 {
		return 1
	}
	return min(1, part/float64(e.duration))
}

// without predicts the measure with one worker less, in the best case: the others take over what was shared, and the
// rest is saved.
func (m measure) without() measure {
	n := m.workers - 1
	return measure{
		n, m.time * (1 + m.shared/float64(max(1, n))), m.shared, m.cost * (1 - (1-m.shared)/float64(m.workers)),
	}
}

// see adds an epoch.
func (r *kneeSearch) see(e epoch, newest bool) {
	r.next = e.workers
	r.points = append(r.points, estimator.LossPoint{Epoch: e.until, Loss: e.meanLoss()})
	if e.remaining > 0 { // by steps, with a rule of its own: ScaleInFor
		r.next, r.repeats = max(e.workers-e.remaining, r.bounds.Least), false
		r.why = fmt.Sprintf("%d of %d left while the round ran: %s", e.remaining, e.workers, workersText(r.next))
		return
	}
	if !r.knee {
		r.findKnee()
	}
	m := measure{e.workers, float64(e.each()), shared(e), float64(e.each()) * float64(e.workers)}
	if e.cost > 0 {
		m.cost = e.cost / float64(max(1, e.rows))
	}
	switch {
	case !r.knee:
		r.why = fmt.Sprintf("train loss %.4f, which falls: %s", e.meanLoss(), workersText(r.next))
	case e.disturbed && !r.repeats:
		r.repeats, r.why = true, "a container started cold or a worker failed: the same is measured once more"
		return
	case r.done:
		r.why = fmt.Sprintf("no more may go: %s", workersText(r.next))
	default:
		r.passed(m, newest)
	}
	r.repeats = false
}

// findKnee tells by running means, forward and back, whether the newest losses are flat.
func (r *kneeSearch) findKnee() {
	n := len(r.points)
	if n < mllessLeast {
		return
	}
	losses := make([]float64, n)
	for i, p := range r.points {
		losses[i] = p.Loss
	}
	s := smooth(losses)
	r.flat = 0
	for i := n - 1; i > 0 && s[i-1]-s[i] < mllessFlat*s[i-1]; i-- {
		r.flat++
	}
	r.knee = r.flat >= mllessCount
}

// smooth is the mean of a running mean forward and one back.
func smooth(v []float64) []float64 {
	out := make([]float64, len(v))
	run := v[0]
	for i, x := range v {
		run = (1-mllessSpan)*run + mllessSpan*x
		out[i] = run / 2
	}
	run = v[len(v)-1]
	for i := len(v) - 1; i >= 0; i-- {
		run = (1-mllessSpan)*run + mllessSpan*v[i]
		out[i] += run / 2
	}
	return out
}

// passed considers an epoch after the knee.
func (r *kneeSearch) passed(m measure, newest bool) {
	if r.first.workers == 0 {
		r.first = m
	}
	if r.best.workers == 0 || m.price() < r.best.price() {
		r.best = m
	}
	if was := r.best; m.workers < was.workers && m.price() > mllessSlower*was.price() {
		r.done, r.next = true, was.workers
		r.why = fmt.Sprintf("time times cost rose by %.0f %%: back to %s, and no more may go",
			100*(m.price()/was.price()-1), workersText(r.next))
		return
	}
	less, worse := m.without(), 0.0
	if newest {
		worse = r.worse(less)
	}
	switch {
	case less.workers < r.bounds.Least:
		r.why = fmt.Sprintf("past the knee, with as few as there may be: %s", workersText(m.workers))
	case less.price() > m.price():
		r.done = true
		r.why = fmt.Sprintf("past the knee, and workers share %.0f %% of an epoch: with one less time times cost would rise "+
			"by %.0f %%", 100*m.shared, 100*(less.price()/m.price()-1))
	case r.rises != "":
		r.why = fmt.Sprintf("past the knee, but %s: %s", r.rises, workersText(m.workers))
	case worse >= mllessWorse:
		r.why = fmt.Sprintf("past the knee: with %s the loss would be %.1f %% worse after as long", workersText(less.workers),
			100*worse)
	default:
		r.next = less.workers
		r.why = fmt.Sprintf("past the knee: with %s the loss is %.1f %% worse after as long, "+
			"and time times cost %.0f %% less",
			workersText(less.workers), 100*max(0, worse), 100*(1-less.price()/m.price()))
	}
}

// LossRises says how the newest loss is worse than an earlier one; "" if it is not. It compares losses of held-out
// rows if the job evaluates them, otherwise train losses.
func LossRises(seen []disdel.Observation) string {
	heldOut, train := math.Inf(1), math.Inf(1)
	var newest *float64
	all := epochs(seen)
	for _, e := range all {
		if train = min(train, e.meanLoss()); e.heldOut != nil {
			newest, heldOut = e.heldOut, min(heldOut, *e.heldOut)
		}
	}
	switch {
	case newest != nil && !(*newest <= mllessRises*heldOut):
		return fmt.Sprintf("the held-out loss is %.4g after %.4g", *newest, heldOut)
	case len(all) > 0 && !(all[len(all)-1].meanLoss() <= mllessRises*train):
		return fmt.Sprintf("the train loss is %.4g after %.4g", all[len(all)-1].meanLoss(), train)
	default:
		return ""
	}
}

// worse returns how much higher the loss would be with fewer workers than with those of the knee, after the time of
// one epoch (MLLess, Eq. 1, with the sign of its text and code; the printed sign is wrong).
func (r *kneeSearch) worse(less measure) float64 {
	c, ok := estimator.FitLosses(r.points)
	if !ok {
		return 0
	}
	now := r.points[len(r.points)-1].Epoch
	all, fewer := c.At(now+1), c.At(now+r.first.time/less.time)
	return (fewer - all) / all
}

// ScaleInFor returns the rule by which workers leave while a round runs that starts with so many workers. It is nil
// unless the policy is MLLess and workers take batches from a queue: then others take the batches of one that leaves.
func ScaleInFor(p Policy, job disdel.Job, workers int) *ScaleIn {
	if _, ours := p.(MLLess); !ours || !job.Distribution.Exchange.Queued() {
		return nil
	}
	return &ScaleIn{Workers: workers, Least: max(1, job.Distribution.MinWorkers)}
}

// ScaleIn removes workers while a round runs: MLLess' scale-in (its section 4.2) by steps, for workers that exchange
// updates after every step. Past the knee of the loss it checks every few steps whether the job would end with less
// time times cost if it had fewer workers.
//
// It assumes the worst case: the progress of a step is proportional to the workers, each of which brings a batch.
// Then fewer workers pay only if a step is mostly waiting for other workers' updates. The published rule ignores
// cost, and removes workers of a job that computes most of the time.
//
// No worker leaves while the loss is above its minimum by more than its noise: the assumption was wrong then.
//
// ScaleIn is deterministic. The zero value with Workers set is ready for use.
type ScaleIn struct {
	Workers int     // now; Step lowers it
	Least   int     // that stay; 0: 1
	Every   int     // steps between decisions; 0: 50
	Target  float64 // the loss that ends the job; 0: unknown, as many steps are left as were made
	Holds   bool    // no worker leaves: the loss of held-out rows rises

	losses   []float64 // running means
	batches  []float64 // trained at each of losses
	spread   float64   // running mean of a step's squared distance from the mean loss
	minimum  float64   // of losses
	steepest float64   // fall of the loss in Every steps
	changed  int       // the step after which Workers changed last
	own      float64   // of the steps since, in total
	others   float64
	counted  int
	time     float64 // of all steps
	cost     float64 // worker times time
}

// StepSeen is what ScaleIn needs to know about a step.
type StepSeen struct {
	Loss   float64 // of the batches of all workers, before it
	Own    float64 // time of fetching, computing and applying
	Others float64 // time of sending, waiting and reading
}

// The constants of ScaleIn.
const (
	scaleInEvery  = 50
	scaleInSpan   = 20.0 // steps of a running mean, as MLLess' code has it
	scaleInFlat   = 0.2  // of the steepest fall: less is past the knee
	scaleInSettle = 4    // steps after a change that are not counted, as in MLLess' code
	scaleInGain   = 0.97 // of time times cost: more than that is no gain
	scaleInPoints = 40   // losses that a curve is fitted to
	scaleInMost   = 4.0  // times the steps so far: the most that are assumed to be left
	scaleInAlpha  = 2 / (scaleInSpan + 1)
	scaleInRises  = 3.0 // standard deviations of a running mean: a larger rise means that the loss is worse
)

// Step adds a step and returns how many workers make the next one.
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
	if len(s.losses) == 0 || smooth < s.minimum {
		s.minimum = smooth
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

// Now sets the number of workers after another decision. The losses so far remain known.
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

// knee tells whether the loss now falls little compared with its steepest fall.
func (s *ScaleIn) knee() bool {
	n, every := len(s.losses), s.every()
	if n <= every {
		return false
	}
	fell := s.losses[n-1-every] - s.losses[n-1]
	s.steepest = max(s.steepest, fell)
	return fell < scaleInFlat*s.steepest
}

// worsens tells whether the loss is clearly above its minimum.
func (s *ScaleIn) worsens() bool {
	deviation := math.Sqrt(2 * s.spread * scaleInAlpha / (2 - scaleInAlpha)) // of the difference of two running means
	return s.Holds || s.losses[len(s.losses)-1] > mllessRises*s.minimum+scaleInRises*deviation
}

// curve fits the loss by batches; it returns nil if no curve fits.
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

// best returns the number of workers, down to half of those now, with the least time times cost of the whole job. It
// must also be better if a quarter, or four times, as much of the job is left as estimated.
func (s *ScaleIn) best() int {
	remaining := s.remaining()
	best, minimum := s.Workers, scaleInGain*s.price(s.Workers, remaining)
	for n := s.Workers - 1; n >= max(1, s.Least, (s.Workers+1)/2); n-- {
		if p := s.price(n, remaining); p < minimum && s.price(n, remaining/4) < s.price(s.Workers, remaining/4) &&
			s.price(n, 4*remaining) < s.price(s.Workers, 4*remaining) {
			best, minimum = n, p
		}
	}
	return best
}

// price returns time times cost of the whole job if so many workers make the steps that are left.
func (s *ScaleIn) price(workers int, remaining float64) float64 {
	now, w := float64(s.Workers), float64(workers)
	step := s.own / float64(s.counted)
	if s.Workers > 1 {
		step += s.others / float64(s.counted) * (w - 1) / (now - 1)
	}
	time := remaining * now / w * step
	return (s.time + time) * (s.cost + time*w)
}

// remaining estimates how many steps with all workers are left, from a curve through the losses and the target.
func (s *ScaleIn) remaining() float64 {
	made := float64(len(s.losses))
	if s.Target <= 0 {
		return made
	}
	maximum := scaleInMost * made
	c := s.curve()
	if c == nil {
		return maximum
	}
	more := (c.Reaches(s.Target) - s.batches[len(s.batches)-1]) / float64(s.Workers)
	return min(max(more, float64(s.every())), maximum)
}
