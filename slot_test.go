package disdel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// Activations of a slot stay together in the order in which they came; the slots come as a round goes: by task, level
// and member, and ten after two.
func TestBySlotGathersInTheOrderOfARound(t *testing.T) {
	var list []disdel.Activation
	for _, s := range []struct {
		disdel.Slot
		round int
	}{
		{disdel.Slot{Task: disdel.TaskInfer}, 0},
		{disdel.Slot{Task: disdel.TaskEvaluate}, 0},
		{disdel.Slot{Task: disdel.TaskAggregate, Level: 2}, 0},
		{disdel.Slot{Task: disdel.TaskAggregate, Level: 1, Member: 1}, 0},
		{disdel.Slot{Task: disdel.TaskTrain, Member: 10}, 0},
		{disdel.Slot{Task: disdel.TaskTrain, Member: 2}, 1},
		{disdel.Slot{Task: disdel.TaskTrain, Member: 2}, 0},
		{disdel.Slot{Task: disdel.TaskEvaluate}, 1},
	} {
		list = append(list, disdel.Activation{Invocation: disdel.Invocation{
			Task: s.Task, Level: s.Level, Member: s.Member, Round: s.round,
		}})
	}
	type slot struct {
		Name   string
		Rounds []int
	}
	var got []slot
	for _, of := range disdel.BySlot(list) {
		s := slot{Name: of[0].Slot().Name()}
		for _, a := range of {
			s.Rounds = append(s.Rounds, a.Round)
		}
		got = append(got, s)
	}
	if diff := cmp.Diff([]slot{
		{"train 2", []int{1, 0}},
		{"train 10", []int{0}},
		{"aggregate 1.1", []int{0}},
		{"aggregate 2.0", []int{0}},
		{"evaluate", []int{0, 1}},
		{"infer", []int{0}},
	}, got); diff != "" {
		t.Errorf("slots in the order of a round (-want +got):\n%s", diff)
	}
}
