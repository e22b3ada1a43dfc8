package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

func digitsCNN(t *testing.T) *model.Graph {
	t.Helper()
	g, err := model.Build(disdel.Network{Name: "digits-cnn", Input: []int{1, 8, 8}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// arraysOf is what fits a network.
func arraysOf(g *model.Graph) (out disdel.Weights) {
	for _, p := range g.Params() {
		out = append(out, disdel.Tensor{Name: p.Name, Shape: p.Shape})
	}
	return out
}

// All that does not fit is said, at most twenty lines of it, and what can be done where only the last layer differs.
func TestArraysAreHeldAgainstTheNetwork(t *testing.T) {
	g := digitsCNN(t)
	params := g.Params()
	last := g.Nodes[params[len(params)-1].Node].Name
	if faults := CheckInitial(g, disdel.Init{Weights: "x"}, arraysOf(g)); faults != nil {
		t.Errorf("what fits: %v", faults)
	}
	head := arraysOf(g)
	head[len(head)-1].Shape, head[len(head)-2].Shape = []int{100}, []int{100, 7}
	faults := CheckInitial(g, disdel.Init{Weights: "x"}, head)
	if len(faults) != 2 || faults[0].Path != InitialPath || !strings.Contains(faults[0].Hint, "except: "+last) ||
		!strings.Contains(faults[1].Msg, "is [100], and the network's is [10]") {
		t.Errorf("another last layer: %v", faults)
	}
	if faults := CheckInitial(g, disdel.Init{Weights: "x", Except: last}, head[:len(head)-1]); faults != nil {
		t.Errorf("it is excepted: %v", faults)
	}
	faults = CheckInitial(g, disdel.Init{Weights: "x", Except: "y, " + last}, head)
	if len(faults) != 1 || faults[0].Path != exceptPath || !strings.Contains(faults[0].Msg, `no layer "y"`) {
		t.Errorf("a layer that there is not: %v", faults)
	}
	var foreign disdel.Weights
	for i := range 50 {
		foreign = append(foreign, disdel.Tensor{Name: fmt.Sprintf("layer%d.weight", i), Shape: []int{1}})
	}
	faults = CheckInitial(g, disdel.Init{Weights: "x"}, foreign)
	if n := len(faults); n != mostInitial+1 ||
		!strings.Contains(faults[n-1].Msg, fmt.Sprintf("%d arrays more", len(params)+50-mostInitial)) ||
		!strings.Contains(faults[0].Hint, "--layers") {
		t.Errorf("another network: %d, %v", n, faults[n-1])
	}
}

// The first round of a job that was given weights starts from their checkpoint, and so does the round that it goes back
// to while there is no other.
func TestTheFirstRoundStartsFromWhatWasGiven(t *testing.T) {
	spec := Spec{
		ID: "job-1", Job: disdel.Job{Training: disdel.Training{Epochs: 2}},
		Plan: disdel.Plan{
			Workers: 2, Rounds: 2, Epochs: 1, Levels: []disdel.Level{{Clusters: [][]int{{0, 1}}}},
			Shards: []disdel.RowRange{{End: 10}, {Start: 10, End: 20}},
		},
		From: &disdel.Checkpoint{Path: "checkpoints/job-1/000000/reference.safetensors"},
	}
	for _, order := range NewManager(spec).Step(StartedEvent{}) {
		invoke, ok := order.(InvokeOrder)
		if !ok {
			continue
		}
		var req disdel.TrainRequest
		if err := json.Unmarshal(invoke.Invocation.Params, &req); err != nil || req.Round != 0 ||
			req.ReferenceCheckpoint != spec.From.Path {
			t.Errorf("%+v, %v", req, err)
		}
	}
}
