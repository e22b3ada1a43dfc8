package estimator

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/disdel/disdel"
)

// goalPrior is the spread of the logarithm of the epochs that jobs of the same network, data, batch and optimiser take
// to the same goal, before anything is measured; goalOther that where another number of workers, or another way to
// average, is among the differences.
const (
	goalPrior = 0.2
	goalOther = 0.35
)

// mostGoalJobs are looked through for a goal, the newest first.
const mostGoalJobs = 20

// way is what earlier jobs say of the epochs to a goal.
type way struct {
	epochs  []measured // of those that came to it, or would have
	tried   int        // jobs that were long enough to say anything
	longest float64    // epochs of those that did not
	prior   float64
}

// takes is what a job takes in all its epochs.
type takes struct {
	seconds, width float64 // and by which factor that may be off
	held           float64 // GB that Eq. 6 sums
	rate           float64 // GB-s by use, a second
}

// goal forecasts when the job comes to its goal; nil where it has none, or no earlier job says anything.
func (t *timer) goal(whole takes) *disdel.GoalForecast {
	g := t.in.Job.Training.Goal
	if g == nil || t.in.Job.Training.Epochs == 0 {
		return nil
	}
	w := wayTo(*g, t.in)
	if w.tried == 0 {
		return nil
	}
	out := &disdel.GoalForecast{
		Goal: g.String(), Jobs: w.tried, Reached: len(w.epochs), MayNever: len(w.epochs) < w.tried,
	}
	each := whole
	each.seconds /= float64(t.in.Job.Training.Epochs)
	if len(w.epochs) == 0 {
		out.Epochs.Low = w.longest
		least := each.seconds / whole.width * w.longest
		out.Duration.Low, out.Cost.Low, out.Used.Low = millisOf(least), least*whole.held, least*whole.rate
		t.because("goal: %v in none of %s, of up to %.3g epochs", g, plural(w.tried, "earlier job"), w.longest)
		return out
	}
	s := spreadOf(w.epochs, w.prior)
	off := math.Log(s.factor(s.jobs, oneInTwenty))
	spreadOut(out, s.likely, off, each)
	t.because("goal: %v after about %.3g epochs, by %d of %s", g, s.likely, len(w.epochs), plural(w.tried, "earlier job"))
	return out
}

// spreadOut fills in what epochs, of a logarithm that is off by so much, take and cost, where each of them is off as
// well.
func spreadOut(out *disdel.GoalForecast, epochs, off float64, each takes) {
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

// wayTo looks for the jobs that say the most: the same number of workers and way to average before any others.
func wayTo(g disdel.Goal, in TimingInput) way {
	same, any := way{prior: goalPrior}, way{prior: goalOther}
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

func (w *way) add(id disdel.JobID, epochs float64, reached bool) {
	w.tried++
	if reached {
		w.epochs = append(w.epochs, measured{id, epochs})
		return
	}
	w.longest = max(w.longest, epochs)
}

// sameLearning is what makes two jobs learn alike: all but seeds, and how the work is spread. Who begins with what
// another job has learned is sooner there.
func sameLearning(in TimingInput, r *disdel.Record) bool {
	a, b := in.Job.Training, r.Job.Training
	return sameNetwork(in, r) && sameData(in, r) && in.Job.Model.Init.Given() == r.Job.Model.Init.Given() &&
		a.BatchSize == b.BatchSize && a.Loss == b.Loss &&
		a.ClipNorm == b.ClipNorm && a.Exact == b.Exact &&
		a.Precision.Same(b.Precision) && reflect.DeepEqual(a.Optimizer, b.Optimizer) &&
		reflect.DeepEqual(a.Schedule, b.Schedule)
}

// gaps are a job's evaluations, as gaps to what is perfect, and the epochs from one to the next.
func gaps(g disdel.Goal, r *disdel.Record) (points []LossPoint, step float64) {
	for _, round := range r.Rounds {
		if gap, ok := g.GapOf(round.Loss, round.Accuracy); ok {
			points = append(points, LossPoint{r.EpochsAfter(round), gap})
		}
	}
	if n := len(points); n > 1 {
		step = (points[n-1].Epoch - points[0].Epoch) / float64(n-1)
	}
	return points, step
}

// leastEvaluations are fewer than which a job that did not come to a goal says nothing of it.
const leastEvaluations = leastPoints + disdel.GoalHeld

// epochsTo is after how many epochs a job had come to a goal, or would have by the curve of its evaluations. Where it
// would not, epochs is how many it had; long is false for a job that was too short to say so.
func epochsTo(g disdel.Goal, r *disdel.Record) (epochs float64, reached, long bool) {
	points, step := gaps(g, r)
	_, enough := g.Gap(0, 0)
	row := 0
	for _, p := range points {
		if row++; !(p.Loss <= enough) { // which a loss that is no number is not
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

// GoalAhead forecasts when a running job comes to its goal. It uses the job's own evaluations; before there are enough
// of them, it uses the forecast of the plan. left is the forecast of the job's remaining epochs. past is the rounds of
// earlier jobs of the same kind, oldest first. If enough of their losses fell like the job's own, the forecast follows
// them. Evaluations that are at the goal already count. GoalAhead returns nil if the job has no goal, or if nothing is
// known. It is pure.
func GoalAhead(r *disdel.Record, left *disdel.Forecast, past []disdel.Observation) *disdel.GoalForecast {
	g := r.Job.Training.Goal
	if g == nil || left == nil || len(r.Rounds) == 0 {
		return nil
	}
	points, step := gaps(*g, r)
	_, enough := g.Gap(0, 0)
	c, ok := ConvergeLike(points, pastGaps(*g, past), enough)
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
	ahead := max(1e-9, float64(r.Job.Training.Epochs)-done)
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
		share := max(0, v.at-done) / ahead
		*v.epochs = max(v.at, done)
		*v.took = disdel.Millis(share * float64(left.Duration.Likely))
		*v.cost, *v.used = share*left.Cost.Likely, share*left.Used.Likely
	}
	if c.Never() {
		out.Epochs.Low = done
	}
	return out
}

// pastGaps are the evaluations of earlier jobs, as gaps to what is perfect. A job begins where epochs begin anew.
func pastGaps(g disdel.Goal, past []disdel.Observation) (jobs [][]LossPoint) {
	until := math.Inf(1)
	for _, o := range past {
		gap, ok := g.GapOf(o.HeldOut, o.Accuracy)
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

// goalDraws is the number of courses of evaluations that a forecast of a goal draws. goalPatience is how long it
// follows a course, as a multiple of the expected epochs.
const (
	goalDraws    = 400
	goalPatience = 4
	goalSteps    = 2000  // evaluations that a course is followed for
	goalSpread   = 1.645 // deviations from the likely value to the end of a nine-in-ten interval
)

// heldGoal is what is known of a goal that has to hold for several evaluations in a row.
type heldGoal struct {
	target   float64
	step     float64 // epochs between evaluations
	done     float64 // epochs at the newest one
	held     int     // newest evaluations in a row that are at the goal
	noise    float64 // of an evaluation, as a share of its loss
	crossing disdel.Interval[float64]
	curve    LossCurve
	at       float64 // where the curve comes to the target
}

// newHeldGoal counts the evaluations that hold already, and measures how far evaluations are off their curve.
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

// epochs forecasts after how many epochs the goal has held often enough; the interval covers nine cases in ten. It
// draws courses of the coming evaluations, with an uncertain curve and with noise in each evaluation.
func (h *heldGoal) epochs() disdel.Interval[float64] {
	lot := rand.New(rand.NewPCG(31, uint64(goalDraws)))
	all := make([]float64, goalDraws)
	for i := range all {
		all[i], _ = h.course(lot)
	}
	slices.Sort(all)
	return disdel.Interval[float64]{Low: all[goalDraws/20], Likely: all[goalDraws/2], High: all[goalDraws-1-goalDraws/20]}
}

// course draws one course. It returns the epoch at which the goal has held often enough, and the number of evaluations
// drawn. A goal that is more than goalSteps evaluations away holds once the curve reaches it: over such a distance the
// noise of one evaluation does not matter.
func (h *heldGoal) course(lot *rand.Rand) (epoch float64, evaluations int) {
	crossing := h.drawCrossing(lot.NormFloat64())
	most := goalPatience*max(h.done, h.crossing.Likely) + 10*h.step
	held, x, n := h.held, h.done, 0
	for ; held < disdel.GoalHeld && x < most; n++ {
		if n == goalSteps {
			return max(x, min(most, crossing+(disdel.GoalHeld-1)*h.step)), n
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

// drawCrossing is the epoch at which a course's curve reaches the target, so many deviations from the likely epoch.
func (h *heldGoal) drawCrossing(deviations float64) float64 {
	likely, to := max(1e-9, h.crossing.Likely), h.crossing.High
	if deviations < 0 || math.IsInf(to, 1) {
		to = h.crossing.Low
	}
	ends := math.Abs(math.Log(max(1e-9, to) / likely))
	return likely * math.Exp(deviations*ends/goalSpread)
}

// holds tells whether an evaluation is at the goal. off is its distance from the curve.
func (h *heldGoal) holds(x, crossing, off float64) bool {
	if math.IsInf(h.at, 1) || h.at <= 0 {
		return x >= crossing
	}
	return h.curve.At(x*h.at/crossing)*off <= h.target
}
