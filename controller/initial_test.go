package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	if len(faults) != 2 || faults[0].Path != InitialPath || !strings.Contains(faults[0].Hint, "replaceHead: true") ||
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

// A network may end in another layer than the weights do, for instance a classifier that begins as a language model.
// One layer of the weights may be missing in it, if they have none of the name of its own last layer.
func TestTheReplacedLayerMayHaveHadAnotherName(t *testing.T) {
	g := digitsCNN(t)
	params := g.Params()
	last := g.Nodes[params[len(params)-1].Node].Name
	init := disdel.Init{Weights: "x", ReplaceHead: true, Except: last}
	body := arraysOf(g)[:len(params)-2]
	former := disdel.Weights{{Name: "out.weight", Shape: []int{7, 9}}, {Name: "out.bias", Shape: []int{7}}}
	with := func(more ...disdel.Tensor) disdel.Weights { return append(slices.Clone(body), more...) }
	if faults := CheckInitial(g, init, with(former...)); faults != nil {
		t.Errorf("its last layer has another name: %v", faults)
	}
	hint := "So does except: " + last + ", out"
	if faults := CheckInitial(g, disdel.Init{Weights: "x"}, with(former...)); len(faults) != 4 ||
		!strings.HasSuffix(faults[0].Hint, hint) {
		t.Errorf("without replaceHead: %v", faults)
	}
	if faults := CheckInitial(g, disdel.Init{Weights: "x", Except: last + ", out"}, with(former...)); faults != nil {
		t.Errorf("by except: %v", faults)
	}
	for what, arrays := range map[string]disdel.Weights{
		"its own last layer has the same name": with(append(slices.Clone(former), arraysOf(g)[len(params)-1])...),
		"it lacks two layers":                  with(append(slices.Clone(former), disdel.Tensor{Name: "norm.weight"})...),
	} {
		faults := CheckInitial(g, init, arrays)
		if !slices.ContainsFunc(faults, func(f disdel.Fault) bool { return strings.Contains(f.Msg, "has no out.weight") }) {
			t.Errorf("%s: %v", what, faults)
		}
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

// Every request of a job with frozen layers names the checkpoint that has them.
func TestRequestsNameTheFrozenWeights(t *testing.T) {
	for freeze, want := range map[string]string{"": "", "fc1": "checkpoints/job-1/000000/reference.safetensors"} {
		spec := runSpec(2, 2)
		spec.Network.Init.Freeze = freeze
		for _, inv := range []disdel.Invocation{
			spec.train(work{}, 0, ""), spec.aggregate(work{}, 1, 0, []int{0, 1}, outputs{final: true}),
			spec.evaluate(work{}, 0, ""),
		} {
			var req struct{ Given string }
			if err := json.Unmarshal(inv.Params, &req); err != nil || req.Given != want {
				t.Errorf("%s: frozen weights of %q, want %q; %v", inv.Task, req.Given, want, err)
			}
		}
	}
}

// A replaced head is drawn, and a list of layers gets the outputs of the data set. Networks without a head of their own
// are refused.
func TestAReplacedHeadFitsTheData(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	dense := func(layers ...disdel.Layer) disdel.Model { return disdel.Model{Layers: layers} }
	hidden, three := disdel.Layer{Kind: "dense", Units: 8}, disdel.Layer{Kind: "dense", Units: 3, Name: "out"}
	for name, c := range map[string]struct {
		model  disdel.Model
		except string // what is drawn in the end
		fault  string
	}{
		"layers":          {dense(disdel.Layer{Kind: "flatten"}, hidden, three), "out", ""},
		"softmax at last": {dense(disdel.Layer{Kind: "flatten"}, hidden, three, disdel.Layer{Kind: "softmax"}), "out", ""},
		"zoo":             {disdel.Model{Name: "digits-cnn"}, "fc2", ""},
		"one more":        {disdel.Model{Name: "digits-cnn", Init: disdel.Init{Except: "fc1"}}, "fc1, fc2", ""},
		"named already":   {disdel.Model{Name: "digits-cnn", Init: disdel.Init{Except: "fc2"}}, "fc2", ""},
		"only a head":     {dense(disdel.Layer{Kind: "flatten"}, three), "", "no dense or convolution layer"},
		"norm at last": {
			dense(disdel.Layer{Kind: "flatten"}, hidden, disdel.Layer{Kind: "dense", Units: 10},
				disdel.Layer{Kind: "batchNorm"}),
			"", "no dense or convolution layer",
		},
	} {
		job := disdel.Job{Model: c.model}
		job.Model.Init.Weights, job.Model.Init.ReplaceHead = "x", true
		job.Data.Source, job.Training.BatchSize, job.Training.Loss = "dataset://digits", 64, disdel.LossCrossEntropy
		given := fmt.Sprint(job.Model.Layers)
		r, err := Resolve(ctx, job, store, "job.yaml", func(string) (int, int) { return 0, 0 }, nil)
		var faults *disdel.Faults
		switch {
		case c.fault != "":
			if !errors.As(err, &faults) || faults.Faults[0].Path != headPath ||
				!strings.Contains(faults.Faults[0].Msg, c.fault) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case r.Network.Init.Except != c.except || r.Job.Model.Init.Except != c.except:
			t.Errorf("%s: drawn are %q and %q", name, r.Network.Init.Except, r.Job.Model.Init.Except)
		case r.Graph.Output().Len() != 10:
			t.Errorf("%s: %d outputs", name, r.Graph.Output().Len())
		}
		if fmt.Sprint(job.Model.Layers) != given {
			t.Errorf("%s: the caller's layers changed", name)
		}
	}
}

// Layers that cannot be kept are faults at training.recompute, all of them at once.
func TestKeptLayersAreChecked(t *testing.T) {
	for again, want := range map[disdel.Recompute]string{
		"": "", disdel.RecomputeAuto: "", "conv1, conv2": "",
		"conv3, x, conv1": "there is no layer conv3, there is no layer x",
	} {
		job := disdel.Job{Model: disdel.Model{Name: "digits-cnn"}}
		job.Data.Source, job.Training.BatchSize, job.Training.Loss = "dataset://digits", 64, disdel.LossCrossEntropy
		job.Training.Recompute = again
		_, err := Resolve(t.Context(), job, digitsStore(t), "job.yaml", func(string) (int, int) { return 0, 0 }, nil)
		var faults *disdel.Faults
		switch errors.As(err, &faults); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", again, err)
		case want != "" && (faults == nil || faults.Faults[0].Path != "training.recompute" || faults.Faults[0].Msg != want):
			t.Errorf("%s: %v", again, err)
		}
	}
}

// The job gets the names of the layers that it freezes. What cannot be frozen is a fault, which lists the layers.
func TestFrozenLayersAreNamed(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	for freeze, want := range map[string]string{
		"*": "conv1, conv2, fc1", "conv*": "conv1, conv2", "conv1": "conv1", "conv1, fc*, conv2": "conv1, conv2, fc1",
		"fc1": "fc1", "conv3, x, conv1": "no layer with given weights for conv3, x",
		"fc2": "no layer with given weights for fc2",
	} {
		job := disdel.Job{Model: disdel.Model{Name: "digits-cnn"}}
		job.Model.Init = disdel.Init{Weights: "x", ReplaceHead: true, Freeze: freeze}
		job.Data.Source, job.Training.BatchSize, job.Training.Loss = "dataset://digits", 64, disdel.LossCrossEntropy
		r, err := Resolve(ctx, job, store, "job.yaml", func(string) (int, int) { return 0, 0 }, nil)
		var faults *disdel.Faults
		if errors.As(err, &faults) {
			if faults.Faults[0].Path != freezePath || !strings.Contains(faults.Faults[0].Msg, want) {
				t.Errorf("%s: %v", freeze, err)
			}
			continue
		}
		if err != nil || r.Job.Model.Init.Freeze != want || r.Network.Init.Freeze != want {
			t.Errorf("%s: frozen are %q, %v", freeze, r.Network.Init.Freeze, err)
		}
	}
}

// The job gets the names of the layers with an adapter, and of those that are trained whole. What fits no layer is a
// fault.
func TestAdaptedLayersAreNamed(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	for _, c := range []struct {
		lora          disdel.LoRA
		layers, whole string
		field, fault  string
	}{
		{disdel.LoRA{Layers: "*"}, "fc1", "fc2", "", ""},
		{disdel.LoRA{Layers: "*", Whole: "conv*"}, "fc1", "conv1, conv2, fc2", "", ""},
		{disdel.LoRA{Layers: "conv1"}, "", "", "layers", "no dense layer with given weights for conv1"},
		{disdel.LoRA{Layers: "fc2"}, "", "", "layers", "no dense layer with given weights for fc2"},
		{disdel.LoRA{Layers: "fc1", Whole: "fc1"}, "", "", "layers", "no dense layer with given weights for fc1"},
		{disdel.LoRA{Layers: "*", Whole: "x, y"}, "", "", "whole", "no layer with weights for x, y"},
	} {
		job := disdel.Job{Model: disdel.Model{Name: "digits-cnn"}}
		job.Model.Init = disdel.Init{Weights: "x", ReplaceHead: true}
		c.lora.Rank, c.lora.Alpha = 2, 4
		job.Model.LoRA = &c.lora
		asked := c.lora
		job.Data.Source, job.Training.BatchSize, job.Training.Loss = "dataset://digits", 64, disdel.LossCrossEntropy
		r, err := Resolve(ctx, job, store, "job.yaml", func(string) (int, int) { return 0, 0 }, nil)
		var faults *disdel.Faults
		switch {
		case c.fault != "":
			if !errors.As(err, &faults) || faults.Faults[0].Path != "model.lora."+c.field ||
				!strings.Contains(faults.Faults[0].Msg, c.fault) {
				t.Errorf("%+v: %v", c.lora, err)
			}
		case err != nil:
			t.Errorf("%+v: %v", c.lora, err)
		case r.Job.Model.LoRA.Layers != c.layers || r.Job.Model.LoRA.Whole != c.whole ||
			!r.Network.LoRA.Same(r.Job.Model.LoRA):
			t.Errorf("%+v: it became %+v", c.lora, r.Job.Model.LoRA)
		}
		if c.lora != asked {
			t.Error("the caller's LoRA changed")
		}
	}
}

// The outputs of a language model share the weight of its embedding.
func TestATiedHeadIsNotReplaced(t *testing.T) {
	b := model.NewBuilder("tied", model.Shape{1, 1, 16})
	tokens := b.Embedding("tokens", b.Flatten("data", 0), 64, 8, false)
	b.TiedDense("head", b.Dense("last", tokens, 8), tokens)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if name, ok := g.Head(); ok {
		t.Errorf("the head is %s", name)
	}
}
