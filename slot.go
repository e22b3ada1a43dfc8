package disdel

import (
	"cmp"
	"fmt"
	"slices"
)

// Slot is an action's place in a job, whatever the round: the rounds of one worker are the same action run again.
type Slot struct {
	Task          Task
	Level, Member int
}

// Slot is the place that an invocation is for.
func (i *Invocation) Slot() Slot { return Slot{i.Task, i.Level, i.Member} }

// Name is what people read of a slot: "train 0", "aggregate 1.2", "evaluate".
func (s Slot) Name() string {
	switch s.Task {
	case TaskAggregate:
		return fmt.Sprintf("aggregate %d.%d", s.Level, s.Member)
	case TaskTrain:
		return fmt.Sprintf("train %d", s.Member)
	default:
		return string(s.Task)
	}
}

// taskOrder is the order of a round.
var taskOrder = []Task{TaskTrain, TaskAggregate, TaskEvaluate, TaskInfer}

// BySlot gathers activations by the names of their slots: in the order of a round, then by level and member. Those of
// a slot stay in the order in which they were given.
func BySlot(list []Activation) [][]*Activation {
	var out [][]*Activation
	at := map[string]int{}
	for i := range list {
		name := list[i].Slot().Name()
		k, ok := at[name]
		if !ok {
			k, at[name] = len(out), len(out)
			out = append(out, nil)
		}
		out[k] = append(out[k], &list[i])
	}
	slices.SortStableFunc(out, func(a, b []*Activation) int {
		s, t := a[0].Slot(), b[0].Slot()
		return cmp.Or(slices.Index(taskOrder, s.Task)-slices.Index(taskOrder, t.Task), s.Level-t.Level, s.Member-t.Member)
	})
	return out
}
