package batch

import (
	"cmp"
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// Measure is what jobs are compared by.
type Measure string

// The measures. Where they are equal, or a job was not evaluated, the held-out loss decides, and then the training
// loss.
const (
	ByAccuracy Measure = "accuracy" // held out, the higher the better
	ByLoss     Measure = "loss"     // held out, the lower the better
)

// parseMeasure reads a measure's name; "" is accuracy. It returns Invalid for one that there is not.
func parseMeasure(name string) (Measure, error) {
	switch m := Measure(cmp.Or(name, string(ByAccuracy))); m {
	case ByAccuracy, ByLoss:
		return m, nil
	}
	return "", &disdel.Error{
		Kind: disdel.Invalid, Msg: fmt.Sprintf("jobs are not compared by %q", name), Hint: "compare by accuracy or loss",
	}
}

// Point is how good a job was when so much of it was trained.
type Point struct {
	Epochs    int      `json:"epochs"` // whole ones
	TrainLoss float64  `json:"trainLoss"`
	Loss      *float64 `json:"loss,omitempty"`     // held out; nil: it was not evaluated
	Accuracy  *float64 `json:"accuracy,omitempty"` // the same
}

// compare is below zero where a is better. What is not known, or no number, is worse than anything.
func (m Measure) compare(a, b Point) int {
	order := cmp.Or(cmp.Compare(low(a.Loss), low(b.Loss)), cmp.Compare(low(&a.TrainLoss), low(&b.TrainLoss)))
	if m == ByLoss {
		return order
	}
	return cmp.Or(cmp.Compare(high(b.Accuracy), high(a.Accuracy)), order)
}

func low(v *float64) float64 {
	if v == nil || math.IsNaN(*v) {
		return math.Inf(1)
	}
	return *v
}

func high(v *float64) float64 {
	if v == nil || math.IsNaN(*v) {
		return math.Inf(-1)
	}
	return *v
}
