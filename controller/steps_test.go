package controller

import (
	"math"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// A round's steps are the mean over its workers, each stretch by its last step; who was tried again tells of fewer.
func TestStepsOfARoundAreTheMeanOfItsWorkers(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0).UTC() }
	stretch := func(last, steps, rows int, loss, wait float64, end int) disdel.StepStretch {
		return disdel.StepStretch{
			Last: last, Steps: steps, Rows: rows, Loss: loss, Values: 10 * wait, Bytes: 50, End: at(end),
			StepTimes: disdel.StepTimes{Wait: wait, Compute: 1},
		}
	}
	got := stepsOf([]*disdel.StepCourse{
		{Median: 2, High: 4, Stretches: []disdel.StepStretch{stretch(10, 10, 100, 2, 1, 5), stretch(15, 5, 50, 1, 3, 9)}},
		nil,
		{Median: 4, High: 8, Stretches: []disdel.StepStretch{stretch(15, 5, 150, 3, 5, 8)}},
	})
	if got == nil || got.Median != 3 || got.High != 6 || len(got.Stretches) != 2 {
		t.Fatalf("%+v", got)
	}
	first, second := got.Stretches[0], got.Stretches[1]
	if first.Steps != 10 || first.Wait != 1 || first.Loss != 2 || first.Total() != 2 {
		t.Errorf("%+v", first)
	}
	if second.Steps != 5 || second.Rows != 200 || math.Abs(second.Loss-2.5) > 1e-12 || second.Wait != 4 ||
		second.Values != 40 || second.Bytes != 50 || second.End != at(9) {
		t.Errorf("%+v", second)
	}
	if times, bytes := got.Mean(); math.Abs(times.Total()-(10*2+5*5)/15.) > 1e-12 || math.Abs(bytes-50) > 1e-9 {
		t.Errorf("in the mean %+v and %v bytes", times, bytes)
	}
	if stepsOf([]*disdel.StepCourse{nil, nil}) != nil {
		t.Error("steps of rounds without exchange")
	}
}
