package estimator

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/disdel/disdel"
)

// The prior spread of the logarithm of the epochs to a goal, for jobs of the same network, data, batch and optimiser:
// goalPrior for the same number of workers and way to average, goalOther for others.
const (
	goalPrior = 0.2
	goalOther = 0.35
)

// mostGoalJobs is the number of matching earlier jobs that count, newest first.
const mostGoalJobs = 20

// goalEvidence is what earlier jobs tell about the epochs to a goal.
type goalEvidence struct {
	epochs  []measured // of the jobs that reached the goal, or would have
	tried   int        // jobs that were long enough to tell
	longest float64    // most epochs of a job that did not reach it
	prior   float64
}

// jobCost is the time and cost of a job with all its epochs.
type jobCost struct {
	seconds, width float64 // width: factor of uncertainty
	held           float64 // GB of Eq. 6
	rate           float64 // GB-s by use per second
}

// goal forecasts when the job reaches its goal; nil if it has none, or no earlier job tells anything.
func (t *timer) goal(total jobCost) *disdel.GoalForecast {
	g := t.in.Job.Training.Goal
	if g == nil || t.in.Job.Training.Epochs == 0 {
		return nil
	}
	w := evidenceFor(*g, t.in)
	if w.tried == 0 {
		return nil
	}
	out := &disdel.GoalForecast{
		Goal: g.String(), Jobs: w.tried, Reached: len(w.epochs), MayNever: len(w.epochs) < w.tried,
	}
	each := total
	each.seconds /= float64(t.in.Job.Training.Epochs)
	if len(w.epochs) == 0 {
		out.Epochs.Low = w.longest
		minimum := each.seconds / total.width * w.longest
		out.Duration.Low, out.Cost.Low, out.Used.Low = millisOf(minimum), minimum*total.held, minimum*total.rate
		t.because("goal: %v in none of %s, of up to %.3g epochs", g, disdel.Counted(w.tried, "earlier job"), w.longest)
		return out
	}
	s := spreadOf(w.epochs, w.prior)
	off := math.Log(s.factor(s.jobs, oneInTwenty))
	spreadOut(out, s.likely, off, each)
	t.because("goal: %v after about %.3g epochs, by %d of %s", g, s.likely, len(w.epochs),
		disdel.Counted(w.tried, "earlier job"))
	return out
}

// spreadOut fills in the intervals of a goal forecast. off is the deviation of the logarithm of the epochs; it
// combines with the uncertainty of each epoch's time.
func spreadOut(out *disdel.GoalForecast, epochs, off float64, each jobCost) {
	both := math.Exp(math.Hypot(off, math.Log(each.width))) // independent of each other
	around := func(likely, factor float64) disdel.Interval[float64] {
		return disdel.Interval[float64]{Low: likely / factor, Likely: likely, High: likely * factor}
	}
	seconds := around(epochs*each.seconds, both)
	out.Epochs = around(epochs, math.Exp(off))
	out.Cost, out.Used = around(seconds.Likely*each.held, both), around(seconds.Likely*each.rate, both)
	out.Duration = disdel.Interval[disdel.Millis]{
		Low: millisOf(seconds.Low), Likely: millisOf(seconds.Likely), High: millisOf(seconds.High),
	}
	if out.MayNever {
		out.Epochs.High, out.Cost.High, out.Used.High, out.Duration.High = 0, 0, 0, 0
	}
}

// evidenceFor prefers jobs with the same number of workers and way to average over all other matching jobs.
func evidenceFor(g disdel.Goal, in TimingInput) goalEvidence {
	same, any := goalEvidence{prior: goalPrior}, goalEvidence{prior: goalOther}
	for i := range in.Past {
		r := &in.Past[i]
		if !sameLearning(in, r) || any.tried == mostGoalJobs {
			continue
		}
		epochs, reached, long := epochsTo(g, r)
		if !reached && !long {
			continue
		}
		any.add(r.ID, epochs, reached)
		if r.Plan.Workers == in.Plan.Workers && r.Job.Distribution.Sync == in.Job.Distribution.Sync {
			same.add(r.ID, epochs, reached)
		}
	}
	if same.tried > 0 {
		return same
	}
	return any
}

func (w *goalEvidence) add(id disdel.JobID, epochs float64, reached bool) {
	w.tried++
	if reached {
		w.epochs = append(w.epochs, measured{id, epochs})
		return
	}
	w.longest = max(w.longest, epochs)
}

// sameLearning tells whether two jobs learn alike: everything but the seeds and the distribution of the work is
// equal. A job that starts from given weights reaches a goal sooner, so that counts, too.
func sameLearning(in TimingInput, r *disdel.Record) bool {
	a, b := in.Job.Training, r.Job.Training
	return sameNetwork(in, r) && sameData(in, r) && in.Job.Model.Init.Given() == r.Job.Model.Init.Given() &&
		a.BatchSize == b.BatchSize && a.Loss == b.Loss && a.LabelSmoothing == b.LabelSmoothing &&
		a.ClassWeights == b.ClassWeights && a.ClipNorm == b.ClipNorm && a.Exact == b.Exact && a.StepMemory == b.StepMemory &&
		a.Precision.Same(b.Precision) && reflect.DeepEqual(a.Optimizer, b.Optimizer) &&
		reflect.DeepEqual(a.Schedule, b.Schedule)
}

// gaps are a job's evaluations as distances from a perfect score, and the mean number of epochs between them.
func gaps(g disdel.Goal, r *disdel.Record) (points []LossPoint, step float64) {
	for _, round := range r.Rounds {
		if gap, ok := g.GapOf(round.Figures()); ok {
			points = append(points, LossPoint{r.EpochsAfter(round), gap})
		}
	}
	if n := len(points); n > 1 {
		step = (points[n-1].Epoch - points[0].Epoch) / float64(n-1)
	}
	return points, step
}

// leastEvaluations is the least number of evaluations of a job that tells something without reaching the goal.
const leastEvaluations = leastPoints + disdel.GoalHeld

// epochsTo is the number of epochs after which a job reached a goal, or would have by the curve of its evaluations.
// Otherwise it is the number of epochs that the job had. long is false if the job was too short to tell.
func epochsTo(g disdel.Goal, r *disdel.Record) (epochs float64, reached, long bool) {
	points, step := gaps(g, r)
	enough := g.Enough()
	row := 0
	for _, p := range points {
		if row++; !(p.Loss <= enough) { // false for NaN, too
			row = 0
		}
		if row == disdel.GoalHeld {
			return p.Epoch, true, true
		}
	}
	if len(points) < leastEvaluations {
		return 0, false, false
	}
	last := points[len(points)-1].Epoch
	if c, ok := Converge(points, enough); ok && !math.IsInf(c.Epochs.Likely, 0) && !c.MayNever() {
		return c.Epochs.Likely + (disdel.GoalHeld-1)*step, true, true
	}
	return last, false, true
}

// RemainingGoal forecasts when a running job reaches its goal. It uses the job's own evaluations; while there are too
// few, it uses the forecast of the plan. left is the forecast of the job's remaining epochs. past is the rounds of
// earlier jobs of the same kind, oldest first. If enough of their losses fell like the job's own, the forecast
// follows them. Evaluations that are at the goal already count. It returns nil if the job has no goal, or if nothing
// is known.
func RemainingGoal(r *disdel.Record, remaining *disdel.Forecast, past []disdel.Observation) *disdel.GoalForecast {
	g := r.Job.Training.Goal
	if g == nil || remaining == nil || len(r.Rounds) == 0 {
		return nil
	}
	points, step := gaps(*g, r)
	enough := g.Enough()
	c, ok := ConvergeBySimilar(points, pastGaps(*g, past), enough)
	if !ok {
		c, ok = Converge(points, enough)
	}
	if !ok {
		if r.Plan.Forecast == nil {
			return nil
		}
		return r.Plan.Forecast.Goal
	}
	out := &disdel.GoalForecast{Goal: g.String(), MayNever: c.MayNever()}
	done := r.EpochsAfter(r.Rounds[len(r.Rounds)-1])
	reach := c.Epochs
	if !math.IsInf(reach.Likely, 1) && step > 0 {
		h := newHeldGoal(points, step, enough, c)
		reach = h.epochs()
	}
	if c.MayNever() {
		reach.High = math.Inf(1)
	}
	ahead := float64(r.Job.Training.Epochs) - done
	for _, v := range []struct {
		at         float64
		epochs     *float64
		took       *disdel.Millis
		cost, used *float64
	}{
		{reach.Low, &out.Epochs.Low, &out.Duration.Low, &out.Cost.Low, &out.Used.Low},
		{reach.Likely, &out.Epochs.Likely, &out.Duration.Likely, &out.Cost.Likely, &out.Used.Likely},
		{reach.High, &out.Epochs.High, &out.Duration.High, &out.Cost.High, &out.Used.High},
	} {
		if math.IsInf(v.at, 0) {
			continue
		}
		*v.epochs = max(v.at, done)
		if ahead <= 0 { // no epoch is left, so remaining does not tell what one takes
			continue
		}
		share := max(0, v.at-done) / ahead
		*v.took = disdel.Millis(share * float64(remaining.Duration.Likely))
		*v.cost, *v.used = share*remaining.Cost.Likely, share*remaining.Used.Likely
	}
	if c.Never() {
		out.Epochs.Low = done
	}
	return out
}

// pastGaps are the evaluations of earlier jobs as distances from a perfect score. A new job begins where the epochs
// start again.
func pastGaps(g disdel.Goal, past []disdel.Observation) (jobs [][]LossPoint) {
	until := math.Inf(1)
	for _, o := range past {
		gap, ok := g.GapOf(o.Figures())
		if !ok {
			continue
		}
		if o.Epoch <= until {
			jobs = append(jobs, nil)
		}
		until = o.Epoch
		jobs[len(jobs)-1] = append(jobs[len(jobs)-1], LossPoint{o.Epoch, gap})
	}
	return jobs
}

// Constants of the simulation of coming evaluations.
const (
	goalDraws    = 400   // simulated courses of evaluations
	goalPatience = 4     // length of a course, as a multiple of the expected epochs
	goalSteps    = 2000  // most evaluations of a course
	goalSpread   = 1.645 // deviations from the likely value to the end of a 90 % interval
)

// heldGoal forecasts a goal that must hold for several evaluations in a row.
type heldGoal struct {
	target   float64
	step     float64 // epochs between evaluations
	done     float64 // epochs at the newest one
	held     int     // newest evaluations in a row at the goal
	noise    float64 // relative deviation of an evaluation
	crossing disdel.Interval[float64]
	curve    LossCurve
	at       float64 // epoch at which the curve reaches the target
}

// newHeldGoal counts the evaluations at the goal, and measures the deviation of evaluations from their curve.
func newHeldGoal(points []LossPoint, step, target float64, c Convergence) heldGoal {
	h := heldGoal{target: target, step: step, crossing: c.Epochs, curve: c.Curve, at: c.Curve.Reaches(target)}
	h.done = points[len(points)-1].Epoch
	for _, p := range slices.Backward(points) {
		if !(p.Loss <= target) {
			break
		}
		h.held++
	}
	sum := 0.0
	for _, p := range points {
		if off := p.Loss/c.Curve.At(p.Epoch) - 1; !math.IsNaN(off) && !math.IsInf(off, 0) {
			sum += off * off
		}
	}
	h.noise = math.Sqrt(sum / float64(max(1, len(points)-3)))
	return h
}

// epochs forecasts after how many epochs the goal has held often enough, as a 90 % interval. It simulates the coming
// evaluations with an uncertain curve and noise in each evaluation.
func (h *heldGoal) epochs() disdel.Interval[float64] {
	lot := rand.New(rand.NewPCG(31, uint64(goalDraws)))
	all := make([]float64, goalDraws)
	for i := range all {
		all[i], _ = h.course(lot)
	}
	slices.Sort(all)
	return disdel.Interval[float64]{Low: all[goalDraws/20], Likely: all[goalDraws/2], High: all[goalDraws-1-goalDraws/20]}
}

// course simulates once. It returns the epoch at which the goal has held often enough, and the number of simulated
// evaluations. Beyond goalSteps evaluations the goal holds once the curve reaches it: over such a distance the noise
// of one evaluation does not matter.
func (h *heldGoal) course(lot *rand.Rand) (epoch float64, evaluations int) {
	crossing := h.drawCrossing(lot.NormFloat64())
	maximum := goalPatience*max(h.done, h.crossing.Likely) + 10*h.step
	held, x, n := h.held, h.done, 0
	for ; held < disdel.GoalHeld && x < maximum; n++ {
		if n == goalSteps {
			return max(x, min(maximum, crossing+(disdel.GoalHeld-1)*h.step)), n
		}
		x += h.step
		if h.holds(x, crossing, 1+h.noise*lot.NormFloat64()) {
			held++
		} else {
			held = 0
		}
	}
	return x, n
}

// drawCrossing is the epoch at which the curve reaches the target, a number of deviations from the likely epoch.
func (h *heldGoal) drawCrossing(deviations float64) float64 {
	likely, to := max(1e-9, h.crossing.Likely), h.crossing.High
	if deviations < 0 || math.IsInf(to, 1) {
		to = h.crossing.Low
	}
	ends := math.Abs(math.Log(max(1e-9, to) / likely))
	return likely * math.Exp(deviations*ends/goalSpread)
}

// holds tells whether an evaluation is at the goal. off is its ratio to the curve.
func (h *heldGoal) holds(x, crossing, off float64) bool {
	if math.IsInf(h.at, 1) || h.at <= 0 {
		return x >= crossing
	}
	return h.curve.At(x*h.at/crossing)*off <= h.target
}
