package estimator

import (
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// Eq. 6: two trains of 0.5 GB from 0 s to 10 s and one aggregation of 0.25 GB to 12 s cost 12 s x 1.25 GB.
func TestPaperEquation6(t *testing.T) {
	at := func(task disdel.Task, member, from, to int, memory disdel.Bytes) disdel.Activation {
		base := time.Unix(1000, 0)
		return disdel.Activation{
			Invocation: disdel.Invocation{Task: task, Member: member, Limits: disdel.Limits{Memory: memory}},
			Start:      base.Add(time.Duration(from) * time.Second), End: base.Add(time.Duration(to) * time.Second),
		}
	}
	list := []disdel.Activation{
		at(disdel.TaskTrain, 0, 0, 10, disdel.GB/2), at(disdel.TaskTrain, 1, 1, 9, disdel.GB/2),
		at(disdel.TaskAggregate, 0, 10, 12, disdel.GB/4),
		{},
	}
	if got := Cost(list); got != 15 {
		t.Errorf("%g GB-s, want 15", got)
	}
	if Cost(nil) != 0 {
		t.Error("nothing costs something")
	}
}

// Eq. 6 counts train and aggregate actions from the first start to the last end, and evaluations stand beside it.
func TestEvaluationsAreNoPartOfEquationSix(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(task disdel.Task, from, to float64) disdel.Activation {
		second := func(s float64) time.Time { return start.Add(time.Duration(s * 1e9)) }
		return disdel.Activation{
			Invocation: disdel.Invocation{Task: task, Limits: disdel.Limits{Memory: disdel.GB / 2}},
			Start:      second(from), End: second(to), Duration: disdel.Millis((to - from) * 1e9),
		}
	}
	list := []disdel.Activation{at(disdel.TaskTrain, 0, 3), at(disdel.TaskAggregate, 3, 4), at(disdel.TaskEvaluate, 4, 6)}
	if got := Cost(list); got != 4*2*0.5 {
		t.Errorf("Eq. 6 is %g", got)
	}
	var all Bill
	for _, a := range list {
		all.Add(a)
	}
	if got := all.Evaluations; got != 2*0.5 {
		t.Errorf("evaluations %g", got)
	}
	if got := all.Used; got != 6*0.5 {
		t.Errorf("by use %g", got)
	}
}

// Cost by use is never above Eq. 6 and the evaluations together, and one that waits for the others costs nothing by it.
func TestCostByUseIsWhatWasHeld(t *testing.T) {
	one := func(member int, seconds float64) disdel.Activation {
		start := time.Unix(100, 0)
		return disdel.Activation{
			Invocation: disdel.Invocation{Task: disdel.TaskTrain, Member: member, Limits: disdel.Limits{Memory: disdel.GB}},
			Start:      start, End: start.Add(time.Duration(seconds * 1e9)), Duration: disdel.Millis(seconds * 1e9),
		}
	}
	var b Bill
	b.Add(one(0, 4))
	b.Add(one(1, 1))
	if b.Used != 5 || b.Total() != 8 {
		t.Errorf("%g by use, %g by Eq. 6", b.Used, b.Total())
	}
}
