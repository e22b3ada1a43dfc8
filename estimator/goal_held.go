package estimator

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/disdel/disdel"
)

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
