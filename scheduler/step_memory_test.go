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
	"github.com/disdel/disdel/estimator"
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

// residual is a job of residual blocks.
func residual(t testing.TB, blocks, filters int, norms bool) PlanInput {
	t.Helper()
	in := deep(t, chain(1, 1, false))
	b := model.NewBuilder("residual", model.Shape{3, 32, 32})
	conv := func(name string, x int) int {
		x = b.Conv(name, x, filters, model.Square(3, 1, 1), 1, true)
		if norms {
			x = b.BatchNorm(name+".norm", x)
		}
		return b.Same(name+".relu", x, model.OpReLU)
	}
	x := conv("first", 0)
	for i := range blocks {
		y := conv(fmt.Sprintf("block%d.second", i), conv(fmt.Sprintf("block%d.first", i), x))
		x = b.Add(fmt.Sprintf("block%d", i), x, y)
	}
	b.Same("softmax", b.Dense("out", b.Flatten("flat", b.GlobalPool("pool", x)), 10), model.OpSoftmax)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	in.Graph = g
	return in
}

// spoken is a job whose rows are 24 tokens, for blocks with attention.
func spoken(t testing.TB, blocks, width int) PlanInput {
	t.Helper()
	in := deep(t, chain(1, 1, false))
	layers := []disdel.Layer{{Kind: "embedding", Vocabulary: 100, Width: width}, {Kind: "positions"}}
	for range blocks {
		layers = append(layers, disdel.Layer{Kind: "transformer", Heads: 2})
	}
	layers = append(layers, disdel.Layer{Kind: "takePosition", Take: "mean"})
	layers = append(layers, disdel.Layer{Kind: "dense", Units: 10, Activation: "softmax"})
	g, err := model.Build(disdel.Network{Layers: layers, Input: []int{1, 1, 24}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in.Graph, in.Data.Sample, in.Data.SampleSize = g, []int{1, 1, 24}, 24
	return in
}

// engineFor is an engine that trains a network, or a stage of it, as a plan says.
func engineFor(r *rapid.T, in PlanInput, p disdel.Plan, g *model.Graph) engine.Engine {
	e, err := native.New(engine.Spec{
		Graph: g, BatchSize: in.Job.Training.BatchSize, Optimizer: in.Job.Training.Optimizer, Training: true,
		StepMemory: p.StepMemory,
	})
	if err == nil {
		err = e.Init(disdel.Init{Seed: 1})
	}
	if err != nil {
		r.Fatal(err)
	}
	return e
}

// trainsInStages passes a micro-batch through the engines of all stages, forward and backward. Each takes no more than
// the plan says of it.
func trainsInStages(r *rapid.T, in PlanInput, p disdel.Plan) {
	rows := min(in.Job.Training.BatchSize, p.StepMemory.MicroBatch)
	pass := engine.Pass{Rows: rows, Input: dataset.Matrix{Rows: rows}}
	pass.Target.Classes = make([]int32, rows)
	pass.Input.Values = make([]float32, rows*in.Graph.Input().Len())
	pass.Tokens = pass.Input.Values
	var all []engine.Engine
	var passes []engine.Pass
	var values []float32
	for i, s := range p.Stages {
		g, err := in.Graph.Sliced(s.From, s.To)
		if err != nil {
			r.Fatal(err)
		}
		e := engineFor(r, in, p, g)
		defer e.Close() //nolint:errcheck // the test ends
		if i > 0 {
			e.Passes().Inputs(rows).Set(0, values)
		}
		all, passes = append(all, e), append(passes, pass)
		if i == len(p.Stages)-1 {
			break
		}
		out, err := e.Passes().Forward(pass)
		if err != nil {
			r.Fatal(err)
		}
		values, pass.Input.Values = slices.Clone(out.Block(0, out.Len())), nil
	}
	for i := len(all) - 1; i >= 0; i-- {
		if i < len(all)-1 { // the inputs are still there
			gradient, err := all[i].Passes().Recompute(passes[i])
			if err != nil {
				r.Fatal(err)
			}
			gradient.Set(0, values)
		}
		back, _, err := all[i].Passes().Backward(passes[i])
		if err != nil {
			r.Fatal(err)
		}
		if i > 0 {
			values = slices.Clone(back.Block(0, back.Len()))
		}
		part, err := in.Graph.Sliced(p.Stages[i].From, p.Stages[i].To)
		if err != nil {
			r.Fatal(err)
		}
		of := estimator.Input{
			Graph: part, BatchSize: in.Job.Training.BatchSize, Optimizer: in.Job.Training.Optimizer,
			StepMemory: p.StepMemory, OnDisk: p.OnDisk,
		}
		e := in.Estimator.Train(of)
		if n := all[i].Footprint().Total(); n > e.Training || p.Stages[i].Memory < e.Total {
			r.Errorf("stage %d takes %v, estimated %v; an action %v, planned %v", i+1, n, e.Training, e.Total,
				p.Stages[i].Memory)
		}
	}
}

// A plan that saves memory keeps its limit, its engine takes what the plan says, and trains. A job that fits as it is
// has the plan that it has without fitting.
func TestAFittedPlanKeepsItsLimitAndTrains(t *testing.T) {
	some, staged := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		// Numbers near the first of a range are drawn most: those of large jobs with almost enough memory.
		depth, width := 9-rapid.IntRange(0, 8).Draw(r, "shallower"), 24-rapid.IntRange(0, 20).Draw(r, "narrower")
		norms := rapid.Bool().Draw(r, "norms")
		var in PlanInput
		switch rapid.IntRange(0, 2).Draw(r, "kind") {
		case 0:
			in = deep(t, chain(depth, width, norms))
		case 1:
			in = residual(t, (depth+1)/2, width, norms)
		default:
			in = spoken(t, (depth+1)/2, width/4*4)
		}
		if n := min(rapid.IntRange(0, 3).Draw(r, "stages"), len(in.Graph.Cuts())+1); n > 1 {
			in.Job.Distribution.Stages = n
		}
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
			if len(p.Stages) > 0 {
				staged++
				trainsInStages(r, in, p)
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
		if len(p.Stages) > 0 {
			staged++
			trainsInStages(r, in, p)
			return
		}
		e := engineFor(r, in, p, in.Graph)
		defer e.Close() //nolint:errcheck // the test ends
		rows := in.Job.Training.BatchSize
		input := make([]float32, rows*in.Graph.Input().Len())
		if _, err := e.Step(dataset.Dense(rows, input, make([]int32, rows))); err != nil {
			r.Fatal(err)
		}
		if n := e.Footprint().Total(); n > train.Estimate.Training {
			r.Errorf("the engine takes %v, and the plan says %v", n, train.Estimate.Training)
		}
	})
	if t.Logf("%d jobs were made to fit, %d trained in stages", some, staged); some == 0 {
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
	p, err = under(in, again.Estimate.Total*4/5, "")
	if err == nil && p.StepMemory.MicroBatch%in.Job.Training.BatchSize > 0 {
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

// A network whose layers the job's backend lacks, in its precision, is refused before anything runs.
func TestAPlanRefusesWhatItsBackendLacks(t *testing.T) {
	in := planInput(t)
	g, err := model.Build(disdel.Network{Input: []int{9}, Classes: 3, Layers: []disdel.Layer{
		{Kind: "embedding", Vocabulary: 12, Width: 8},
		{Kind: "lstm", Units: 8},
		{Kind: "takePosition", Take: "last"},
		{Kind: "dense", Units: 3},
		{Kind: "softmax"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	in.Graph = g
	if _, err := NewPlan(in); err != nil {
		t.Errorf("float32: %v", err)
	}
	for _, change := range []func(*disdel.Training){
		func(t *disdel.Training) { t.Precision = disdel.PrecisionBF16 },
		func(t *disdel.Training) { t.Backend = disdel.BackendGorgonia },
	} {
		job := in
		change(&job.Job.Training)
		if _, err := NewPlan(job); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%+v: %v", job.Job.Training, err)
		}
	}
}
