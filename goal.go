package disdel

import (
	"fmt"
	"math"
	"strconv"
)

// Goal is what a job is to come to on its held-out rows, and within what. The job ends once that has held for GoalHeld
// evaluations in a row. Exactly one of Accuracy, Loss and RMSE is above 0.
type Goal struct {
	Accuracy float64  `json:"accuracy,omitempty"` // at least
	Loss     float64  `json:"loss,omitempty"`     // at most
	RMSE     float64  `json:"rmse,omitempty"`     // at most, of models whose loss is its square
	Within   Duration `json:"within,omitempty"`   // 0: any time
	Cost     float64  `json:"cost,omitempty"`     // GB-s by use; 0: any
}

// GoalHeld is for how many evaluations in a row a goal has to hold: a single one may be luck.
const GoalHeld = 3

// String is "accuracy 0.95", "loss 0.3" or "rmse 0.9".
func (g Goal) String() string {
	text := func(what string, v float64) string { return what + " " + strconv.FormatFloat(v, 'g', -1, 64) }
	switch {
	case g.Accuracy > 0:
		return text(MetricAccuracy, g.Accuracy)
	case g.RMSE > 0:
		return text("rmse", g.RMSE)
	default:
		return text("loss", g.Loss)
	}
}

// Gap is how far an evaluation is from perfect, and how far it may be for the goal: 1 less the accuracy, or the loss,
// or its root.
func (g Goal) Gap(loss, accuracy float64) (gap, enough float64) {
	switch {
	case g.Accuracy > 0:
		return 1 - accuracy, 1 - g.Accuracy
	case g.RMSE > 0:
		return math.Sqrt(max(0, loss)), g.RMSE
	default:
		return loss, g.Loss
	}
}

// GapOf is the gap of an evaluation; ok is false where it was not made, or does not tell: of numbers no accuracy is
// known.
func (g Goal) GapOf(loss, accuracy *float64) (gap float64, ok bool) {
	if loss == nil || accuracy == nil && g.Accuracy > 0 {
		return 0, false
	}
	right := 0.0
	if accuracy != nil {
		right = *accuracy
	}
	gap, _ = g.Gap(*loss, right)
	return gap, true
}

// Text is a gap as the goal has it: "accuracy 0.93", "loss 0.41", "rmse 0.91".
func (g Goal) Text(gap float64) string {
	switch {
	case g.Accuracy > 0:
		return fmt.Sprintf("%s %.4f", MetricAccuracy, 1-gap)
	case g.RMSE > 0:
		return fmt.Sprintf("rmse %.4g", gap)
	default:
		return fmt.Sprintf("loss %.4g", gap)
	}
}

// Stop is what ends a training before its last epoch, nil where nothing does: its EarlyStop, or that of its Goal.
func (t Training) Stop() *EarlyStop {
	switch g := t.Goal; {
	case g == nil:
		return t.EarlyStop
	case g.Accuracy > 0:
		return &EarlyStop{Metric: MetricAccuracy, Target: g.Accuracy, Keep: KeepBest, Held: GoalHeld}
	case g.RMSE > 0:
		return &EarlyStop{Metric: MetricValLoss, Target: g.RMSE * g.RMSE, Keep: KeepBest, Held: GoalHeld}
	default:
		return &EarlyStop{Metric: MetricValLoss, Target: g.Loss, Keep: KeepBest, Held: GoalHeld}
	}
}

// Budget is what a job may cost in all by use, GB-s, and the field that says so: the lower one of resources.maxCost
// and its goal's. 0: no bound.
func (j Job) Budget() (most float64, field string) {
	most, field = j.Resources.MaxCost, "resources.maxCost"
	if g := j.Training.Goal; g != nil && g.Cost > 0 && (most == 0 || g.Cost < most) {
		return g.Cost, "training.goal.cost"
	}
	return most, field
}

// TimeLimit is what a job may take in all, and the field that says so: the shorter one of reliability.deadline and its
// goal's. 0: no bound.
func (j Job) TimeLimit() (most Duration, field string) {
	most, field = j.Reliability.Deadline, "reliability.deadline"
	if g := j.Training.Goal; g != nil && g.Within > 0 && (most == 0 || g.Within < most) {
		return g.Within, "training.goal.within"
	}
	return most, field
}

// GoalForecast is when a job is expected to come to its goal. With MayNever nothing says that it does: High is not
// known then, and where nothing of the kind has come to it, neither is Likely; both are 0.
type GoalForecast struct {
	Goal     string            `json:"goal"`
	Epochs   Interval[float64] `json:"epochs"` // from the job's start on
	Duration Interval[Millis]  `json:"durationMs"`
	Cost     Interval[float64] `json:"costGBs"`
	Used     Interval[float64] `json:"usedGBs,omitzero"`  // by use; zero in records of earlier versions
	Jobs     int               `json:"jobs,omitempty"`    // earlier ones that it goes by; 0: the job's own evaluations
	Reached  int               `json:"reached,omitempty"` // of them, or would have
	MayNever bool              `json:"mayNever,omitempty"`
}

// ByUse is the cost by use, and Eq. 6, which is not below it, in forecasts of earlier versions.
func (f *GoalForecast) ByUse() Interval[float64] {
	if f.Used != (Interval[float64]{}) {
		return f.Used
	}
	return f.Cost
}

// String is "accuracy 0.95 after about 12 epochs (9 to 20)".
func (f GoalForecast) String() string {
	e := f.Epochs
	switch {
	case f.MayNever && e.Likely == 0:
		return fmt.Sprintf("%s is not expected: %.3g epochs were not enough", f.Goal, e.Low)
	case f.MayNever:
		return fmt.Sprintf("%s after about %.3g epochs (%.3g or more), or never", f.Goal, e.Likely, e.Low)
	default:
		return fmt.Sprintf("%s after about %.3g epochs (%.3g to %.3g)", f.Goal, e.Likely, e.Low, e.High)
	}
}
