package estimator

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel"
)

// A running job's forecast holds the truth nine times in ten, and does not run ahead of it: evaluations that are at the
// goal already count, and evaluations are noisy.
func TestAForecastNearTheGoalHoldsTheTruth(t *testing.T) {
	inside, all := 0, 0
	var off []float64
	for seed := range uint64(60) {
		lot := rand.New(rand.NewPCG(seed, 31))
		l := &learner{work: lenetWork, lot: lot}
		l.law = LossCurve{Floor: 0.05 + 0.1*lot.Float64(), Rate: 0.5 + lot.Float64(), Start: 1.2}
		noise := 0.005 + 0.03*lot.Float64()
		r, pace := l.run(60)
		for i := range r.Rounds {
			loss := l.law.At(float64(i+1)*pace) * math.Exp(noise*lot.NormFloat64())
			*r.Rounds[i].Loss, *r.Rounds[i].Accuracy = loss, 1-loss
		}
		goal := disdel.Goal{Loss: l.law.At(8 + 8*lot.Float64())}
		if lot.IntN(2) == 0 {
			goal = disdel.Goal{Accuracy: 1 - goal.Loss}
		}
		r.Job.Training.Goal = &goal
		took, reached, _ := epochsTo(goal, &r)
		if !reached {
			continue
		}
		whole := r.Rounds
		for n := max(6, int(took)-6); n < int(took); n++ {
			r.Rounds = whole[:n]
			f := RemainingGoal(&r, &disdel.Forecast{}, nil)
			if f == nil {
				t.Fatalf("seed %d: nothing after %d epochs", seed, n)
			}
			all++
			high := f.Epochs.High
			inside += btoi(f.Epochs.Low <= took && (took <= high || f.MayNever))
			if f.Epochs.Likely > 0 {
				off = append(off, f.Epochs.Likely-took)
			}
		}
	}
	slices.Sort(off)
	median := off[len(off)/2]
	t.Logf("%d of %d within the interval, median %.2f epochs off", inside, all, median)
	if inside < all*85/100 {
		t.Errorf("%d of %d within an interval that is meant for nine of ten", inside, all)
	}
	if math.Abs(median) > 1 {
		t.Errorf("the median forecast is %.2f epochs off", median)
	}
}

// A goal that has held for all evaluations but one lacks one evaluation at the least.
func TestEvaluationsThatHeldCount(t *testing.T) {
	l := &learner{work: lenetWork, lot: rand.New(rand.NewPCG(1, 1)), law: LossCurve{Floor: 0.1, Rate: 0.4, Start: 1}}
	r, pace := l.run(30)
	goal := disdel.Goal{Loss: l.law.At(9.5 * pace)}
	r.Job.Training.Goal = &goal
	took, _, _ := epochsTo(goal, &r)
	whole := r.Rounds
	for n := int(took) - disdel.GoalHeld + 1; n < int(took); n++ {
		r.Rounds = whole[:n]
		e := RemainingGoal(&r, &disdel.Forecast{}, nil).Epochs
		if e.Low > took || math.Abs(e.Likely-took) > 0.5 || e.High < took {
			t.Errorf("after %d epochs: %+v, want %g", n, e, took)
		}
	}
}

// A loss that hardly falls any more comes to its goal after millions of epochs. The forecast does not go through all of
// them, and says so many.
func TestAFarGoalIsForecastInFewSteps(t *testing.T) {
	const target = 0.5
	for seed := range uint64(20) {
		lot := rand.New(rand.NewPCG(seed, 3))
		curve := LossCurve{Floor: 0.1, Rate: math.Pow(10, -6+2*lot.Float64())}
		curve.Start = 1 / (target*(1.001+lot.Float64()) - curve.Floor)
		likely := curve.Reaches(target)
		c := Convergence{Curve: curve, Epochs: disdel.Interval[float64]{Low: likely / 2, Likely: likely, High: likely * 2}}
		var points []LossPoint
		for e := range 12 {
			points = append(points, LossPoint{float64(e + 1), curve.At(float64(e+1)) * (1 + 1e-3*lot.NormFloat64())})
		}
		h := newHeldGoal(points, 1, target, c)
		for range 50 {
			if _, n := h.course(lot); n > goalSteps {
				t.Fatalf("seed %d: %d evaluations in one course", seed, n)
			}
		}
		if e := h.epochs(); likely > 10*goalSteps && math.Abs(math.Log(e.Likely/likely)) > 0.1 {
			t.Errorf("seed %d: likely after %g epochs, want %g", seed, e.Likely, likely)
		}
	}
}

// A goal is crossed at the likely epoch, or so many deviations from it. Where nobody knows the latest epoch, the
// earliest says how wide the deviations are.
func TestACrossingIsDrawnFromItsInterval(t *testing.T) {
	at := func(deviations, high float64) float64 {
		h := heldGoal{crossing: disdel.Interval[float64]{Low: 5, Likely: 10, High: high}}
		return h.drawCrossing(deviations)
	}
	for _, c := range []struct{ deviations, high, want float64 }{
		{0, 40, 10},
		{goalSpread, 40, 40},
		{-goalSpread, 40, 5},
		{goalSpread, math.Inf(1), 20},
		{-goalSpread, math.Inf(1), 5},
	} {
		if got := at(c.deviations, c.high); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Without a curve, an evaluation is at the goal from the crossing on. With one, it is if its value is.
func TestAnEvaluationIsAtTheGoalByTheCurve(t *testing.T) {
	curve := LossCurve{Floor: 0.1, Rate: 1, Start: 1}
	for _, none := range []float64{0, -1, math.Inf(1)} {
		h := heldGoal{curve: curve, at: none, target: 0}
		if h.holds(9, 10, 1) || !h.holds(10, 10, 1) {
			t.Errorf("a curve that crosses at %v: 9 holds %v, 10 holds %v", none, h.holds(9, 10, 1), h.holds(10, 10, 1))
		}
	}
	h := heldGoal{curve: curve, at: 4, target: curve.At(4)}
	for _, c := range []struct {
		x, off float64
		holds  bool
	}{{8.1, 1, true}, {7.9, 1, false}, {8.1, 1.2, false}, {7.9, 0.9, true}} {
		if got := h.holds(c.x, 8, c.off); got != c.holds {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
