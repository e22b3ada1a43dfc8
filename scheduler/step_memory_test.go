package scheduler

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// deep is a job of two workers whose memory is mostly activations.
func deep(t testing.TB, layers []disdel.Layer) PlanInput {
	t.Helper()
	in := planInput(t)
	g, err := model.Build(disdel.Network{Layers: layers, Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in.Graph, in.Data.Sample, in.Data.SampleSize, in.Data.Train = g, []int{3, 32, 32}, 3072, 1000
	in.Job.Training.BatchSize, in.Job.Distribution.Workers = 64, 2
	in.Platform.MinMemory = disdel.MB
	return in
}

// chain are convolutions, with batch norms or without, and a dense layer.
func chain(depth, filters int, norms bool) (out []disdel.Layer) {
	for range depth {
		out = append(out, disdel.Layer{Kind: "conv", Filters: filters, Kernel: 3, Padding: 1})
		if norms {
			out = append(out, disdel.Layer{Kind: "batchNorm"})
		}
		out = append(out, disdel.Layer{Kind: "relu"})
	}
	return append(out, disdel.Layer{Kind: "globalAvgPool"}, disdel.Layer{Kind: "dense", Units: 10, Activation: "softmax"})
}

// under plans a job whose actions may have so much memory.
func under(in PlanInput, limit disdel.Bytes, fit disdel.Fitting) (disdel.Plan, error) {
	in.Job.Resources.MaxMemory, in.Job.Training.Fit = limit, fit
	return NewPlan(in)
}

// A plan that saves memory keeps its limit, its engine takes what the plan says, and trains. A job that fits as it is
// has the plan that it has without fitting.
func TestAFittedPlanKeepsItsLimitAndTrains(t *testing.T) {
	some := 0
	rapid.Check(t, func(r *rapid.T) {
		// Numbers near the first of a range are drawn most: those of large jobs with almost enough memory.
		in := deep(t, chain(9-rapid.IntRange(0, 8).Draw(r, "shallower"), 24-rapid.IntRange(0, 20).Draw(r, "narrower"),
			rapid.Bool().Draw(r, "norms")))
		in.Job.Training.BatchSize = 130 - rapid.IntRange(0, 122).Draw(r, "rows less")
		whole, err := under(in, boundless, disdel.FitNone)
		if err != nil {
			r.Fatal(err)
		}
		train, _ := whole.Action(disdel.TaskTrain)
		limit := train.Estimate.Total * disdel.Bytes(110-rapid.IntRange(0, 90).Draw(r, "percent less")) / 100
		limit = limit / disdel.MB * disdel.MB // a platform gives whole megabytes
		p, err := under(in, limit, "")
		if plain, none := under(in, limit, disdel.FitNone); none == nil {
			if err != nil || !reflect.DeepEqual(p, plain) {
				r.Fatalf("it fits, and the plan is another: %v", err)
			}
			return
		}
		if err != nil {
			if !errors.Is(err, disdel.OverLimit) {
				r.Fatal(err)
			}
			return
		}
		some++
		if train, _ = p.Action(disdel.TaskTrain); !p.Saves() || train.Limits.Memory > limit {
			r.Fatalf("%+v needs %v of %v", p.StepMemory, train.Limits.Memory, limit)
		}
		if len(p.Stages) > 0 { // no engine has the whole network
			return
		}
		e, err := native.New(engine.Spec{
			Graph: in.Graph, BatchSize: in.Job.Training.BatchSize, Optimizer: in.Job.Training.Optimizer, Training: true,
			StepMemory: p.StepMemory,
		})
		if err != nil {
			r.Fatal(err)
		}
		defer e.Close() //nolint:errcheck // the test ends
		if err := e.Init(disdel.Init{Seed: 1}); err != nil {
			r.Fatal(err)
		}
		rows := in.Job.Training.BatchSize
		if _, err := e.Step(dataset.Dense(rows, make([]float32, rows*3072), make([]int32, rows))); err != nil {
			r.Fatal(err)
		}
		if n := e.Footprint().Total(); n > train.Estimate.Training {
			r.Errorf("the engine takes %v, and the plan says %v", n, train.Estimate.Training)
		}
	})
	if some == 0 {
		t.Error("no job was made to fit")
	}
}

// The plan names every way that was turned down with its figures, and what the chosen one costs.
func TestAFittedPlanSaysWhatItCosts(t *testing.T) {
	in := deep(t, chain(8, 24, true))
	whole, err := under(in, boundless, disdel.FitNone)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := whole.Action(disdel.TaskTrain)
	p, err := under(in, train.Estimate.Total*3/4, "")
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(p.Reasons, "\n")
	if p.StepMemory != (disdel.StepMemory{Recompute: disdel.RecomputeAuto}) || !strings.Contains(said,
		"fit: whole batches and all activations: a train action needs") || !strings.Contains(said, "% more") {
		t.Errorf("%+v: %s", p.StepMemory, said)
	}
	if _, err := under(in, train.Estimate.Total*3/4, disdel.FitNone); !errors.Is(err, disdel.OverLimit) {
		t.Error(err)
	}
	again, _ := p.Action(disdel.TaskTrain)
	p, err = under(in, again.Estimate.Total*4/5, "")
	said = strings.Join(p.Reasons, "\n")
	if err != nil || p.StepMemory.MicroBatch == 0 || !strings.Contains(said, "batch norm sees the rows") ||
		!strings.Contains(said, "fit: activations that are computed again: a train action needs") {
		t.Errorf("%+v, %v: %s", p.StepMemory, err, said)
	}
	in.Job.Training.Exact = true
	if p, err := under(in, again.Estimate.Total*4/5, ""); err == nil && p.StepMemory.MicroBatch > 0 {
		t.Error("an exact batch norm sees parts of a batch")
	}
	in.Job.Training.MicroBatch = 16
	if _, err := under(in, boundless, ""); !errors.Is(err, disdel.Invalid) {
		t.Errorf("the same by hand: %v", err)
	}
}

// Rows that take most of a limit go to a file, and steps stay as they are. Rows that the job file keeps in memory stay
// there.
func TestRowsGoToDiskWhereTheyAreWhatDoesNotFit(t *testing.T) {
	in := wide(t)
	in.Job.Distribution.Workers, in.Platform.MinMemory = 1, disdel.MB
	p, err := under(in, 64*disdel.MB, "")
	if err != nil || !p.OnDisk || p.StepMemory != (disdel.StepMemory{}) || len(p.Stages) > 0 {
		t.Fatalf("%s: %v", p.SavedBy(), err)
	}
	if train, _ := p.Action(disdel.TaskTrain); train.Limits.Memory > 64*disdel.MB {
		t.Errorf("it needs %v", train.Limits.Memory)
	}
	if why := strings.Join(p.Reasons, "; "); !strings.Contains(why, "fit: rows on disk: a train action needs") ||
		!strings.Contains(why, "a disk with room for its rows") {
		t.Errorf("the reasons are %s", why)
	}
	in.Platform.Concurrent = 1 // no workers share the rows
	f := FitMemory(in, 64*disdel.MB, 1)
	if f.Given == nil || f.Given.Workers > 1 || !slices.Contains(f.Given.Set, "data.keep=disk") {
		t.Errorf("a limit gives %+v", f.Given)
	}
	in.Job.Data.Keep = disdel.KeepMemory
	if _, err := under(in, 64*disdel.MB, ""); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("the job file keeps rows in memory: %v", err)
	}
}

// Moments are rounded where the weights take most of the memory, so that nothing else is enough. They go to a file
// where that is not enough either. A job file's float32 rules both out.
func TestMomentsAreRoundedWhereNothingElseIsEnough(t *testing.T) {
	in := deep(t, []disdel.Layer{
		{Kind: "flatten"}, {Kind: "dense", Units: 1000}, {Kind: "dense", Units: 10, Activation: "softmax"},
	})
	in.Job.Training.Optimizer = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}}
	whole, err := under(in, boundless, disdel.FitNone)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := whole.Action(disdel.TaskTrain)
	limit := train.Estimate.Total * 9 / 10 / disdel.MB * disdel.MB
	p, err := under(in, limit, "")
	if said := strings.Join(p.Reasons, "\n"); err != nil || !p.StepMemory.StateFormat.Short() ||
		!strings.Contains(said, "moments are rounded to 8 bits") || !strings.Contains(said, "fit: micro-batches of 16") {
		t.Errorf("%+v, %v: %s", p.StepMemory, err, said)
	}
	in.Data.HeldOut = 100 // an evaluation needs less than training
	needs := map[disdel.StateFormat]disdel.Bytes{}
	for _, f := range []disdel.StateFormat{disdel.StateInt8, disdel.StatePaged} {
		in.Job.Training.StepMemory = disdel.StepMemory{StateFormat: f}
		p, err := under(in, boundless, disdel.FitNone)
		if err != nil {
			t.Fatal(err)
		}
		train, _ := p.Action(disdel.TaskTrain)
		needs[f] = train.Estimate.Total
	}
	in.Job.Training.StepMemory = disdel.StepMemory{}
	p, err = under(in, (needs[disdel.StateInt8]+needs[disdel.StatePaged])/2/disdel.MB*disdel.MB, "")
	if said := strings.Join(p.Reasons, "\n"); err != nil || !p.StepMemory.StateFormat.Paged() ||
		!strings.Contains(said, "needs a disk with room") {
		t.Errorf("%+v, %v, %v: %s", p.StepMemory, err, needs, said)
	}
	in.Job.Training.StateFormat = disdel.StateFloat32
	if p, err := under(in, limit, ""); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("%+v, %v", p.StepMemory, err)
	}
}

// What --max-memory and the remedy after an out-of-memory kill offer was planned: it fits, with the batch as it is.
func TestWaysToSaveMemoryAreOffered(t *testing.T) {
	in := deep(t, chain(8, 24, false))
	whole, err := under(in, boundless, disdel.FitNone)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := whole.Action(disdel.TaskTrain)
	limit := train.Estimate.Total * 3 / 4
	f := FitMemory(in, limit, 2)
	if f.Given == nil || len(f.Given.Set) == 0 || f.LeastGiven > limit {
		t.Fatalf("%+v", f)
	}
	asked := apply(t, in, append(f.Given.Set, fmt.Sprintf("distribution.workers=%d", f.Given.Workers)))
	if _, err := under(asked, limit, disdel.FitNone); err != nil {
		t.Errorf("%v: %v", f.Given.Set, err)
	}
	killed := KilledAction{Task: disdel.TaskTrain, Need: train.Estimate.Total * 5 / 4, Batch: 64, Workers: 2}
	ways := FitKilled(in, killed, train.Estimate.Total)
	if !slices.ContainsFunc(ways[:1], func(c Change) bool { return strings.HasPrefix(c.Set[0], "training.microBatch=") }) {
		t.Errorf("after a kill: %v", ways)
	}
	in.Job.Training.Fit = disdel.FitNone
	if f := FitMemory(in, limit, 2); f.Given != nil {
		t.Errorf("without fitting: %+v", f.Given.Set)
	}
}
