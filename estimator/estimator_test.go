package estimator

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// The total is the sum of the terms, fit the sum of its own, and nothing falls when batch, rows or layers grow.
func TestEstimatesAddUpAndGrow(t *testing.T) {
	g := lenet(t)
	rapid.Check(t, func(t *rapid.T) {
		in := Input{
			Graph: g, BatchSize: rapid.IntRange(1, 4096).Draw(t, "batch"),
			Rows: rapid.IntRange(0, 1_000_000).Draw(t, "rows"), SampleBytes: 784, Epochs: 3, Optimizer: adam,
		}
		plan, paper := planned, Estimator{engines: backends.Standard(nil), method: MethodPaper}
		tasks := map[string]func(Input) disdel.Estimate{
			"train": plan.Train, "evaluate": plan.Evaluate, "aggregate": plan.Aggregate,
			"paper train": paper.Train, "paper evaluate": paper.Evaluate, "paper aggregate": paper.Aggregate,
		}
		for name, estimate := range tasks {
			e := estimate(in)
			if e.Low > e.Likely || e.Likely > e.High || e.High > e.Total || e.Likely != e.Total-e.Margin {
				t.Fatalf("%s: %v <= %v <= %v <= %v, margin %v", name, e.Low, e.Likely, e.High, e.Total, e.Margin)
			}
			if e.Training != e.Parameters+e.Activations+e.Misc+e.Workspace || e.Total != e.Training+e.Package+e.Shard+e.Model+
				e.Margin {
				t.Fatalf("%s does not add up: %+v", name, e)
			}
			more := in
			more.BatchSize++
			more.Rows += 100
			if estimate(more).Total < e.Total {
				t.Fatalf("%s falls from %v", name, e.Total)
			}
		}
	})
	deeper, err := model.Build(disdel.Network{Name: "vgg16-cifar", Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Graph: g, BatchSize: 32, Rows: 10, SampleBytes: 1, Epochs: 1, Optimizer: adam}
	small := planned.Train(in)
	in.Graph = deeper
	if deep := planned.Train(in); deep.Total <= small.Total {
		t.Error("VGG-16 is not above LeNet-5")
	}
	plan := planned
	sgd := in
	sgd.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}
	weights := float * disdel.Bytes(deeper.Count().Trainable)
	if more := plan.Train(in).Parameters - plan.Train(sgd).Parameters; more < 2*weights || more > 2*weights+weights/100 {
		t.Errorf("Adam keeps two moments of %v more than SGD, not %v", weights, more)
	}
	clipped := in
	clipped.ClipNorm = 1
	if more := plan.Train(clipped).Parameters - plan.Train(in).Parameters; more < weights/3 {
		t.Errorf("clipping needs all gradients at once, and that costs %v more of %v", more, weights)
	}
}

// A network of an action's own binary is estimated by what the binary says it computes, and grows with the batch.
func TestDescribedNetworksAreEstimated(t *testing.T) {
	d := &disdel.CustomNetwork{
		Name: "mine", Input: []int{1, 28, 28}, Classes: 10, Activations: 10_000, Backward: 20_000,
		Params: []disdel.CustomParam{{Name: "w", Shape: []int{784, 10}, Trainable: true}},
	}
	g, err := model.Build(disdel.Network{Custom: d, Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Graph: g, BatchSize: 64, Rows: 100, SampleBytes: 784, Epochs: 1, Optimizer: adam}
	e := planned.Train(in)
	if least := disdel.Bytes(4 * 64 * 30_000); e.Training < least || e.Training > 7*least || e.Method != "measured" {
		t.Errorf("fit %v by %s for %v of values", e.Training, e.Method, least)
	}
	in.BatchSize = 128
	if more := planned.Train(in); more.Training < e.Training*3/2 {
		t.Errorf("twice the batch needs %v, and the half %v", more.Training, e.Training)
	}
	if v, train := planned.Evaluate(in), planned.Train(in); v.Training >= train.Training {
		t.Errorf("evaluation needs %v", v.Training)
	}
}

// An estimator is chosen by name; one that there is not comes back with the name that was meant.
func TestEstimatorsAreChosenByName(t *testing.T) {
	in := Input{Graph: lenet(t), BatchSize: 32, Rows: 100, SampleBytes: 784, Epochs: 1, Optimizer: adam}
	for method, want := range map[string]string{
		"": "planned", "planned": "planned", "paper": "paper",
		"learned": "planned",
	} {
		e, err := New(backends.Standard(nil), method, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Train(in).Method; got != want {
			t.Errorf("%q without records estimates as %q, want %q", method, got, want)
		}
	}
	_, err := New(backends.Standard(nil), "lerned", 0, nil)
	if !errors.Is(err, disdel.Invalid) || disdel.AsError(err).Hint != `did you mean "learned"?` {
		t.Errorf("%v, hint %q", err, disdel.AsError(err).Hint)
	}
	for _, risk := range []float64{-0.1, 0.06, 1} {
		if _, err := New(backends.Standard(nil), "", risk, nil); !errors.Is(err, disdel.Invalid) {
			t.Errorf("a risk of %v: %v, want Invalid", risk, err)
		}
	}
}

// Less risk takes more memory, up to what is needed for certain; the likely peak and its interval do not depend on it.
func TestTheTotalFollowsTheRisk(t *testing.T) {
	in := Input{Graph: lenet(t), BatchSize: 32, Rows: 30_000, SampleBytes: 784, Epochs: 1, Optimizer: adam}
	at := func(risk float64) disdel.Estimate {
		e, err := New(backends.Standard(nil), "", risk, nil)
		if err != nil {
			t.Fatal(err)
		}
		return e.Train(in)
	}
	last := at(0.05)
	for _, risk := range []float64{0.01, 0.001, 1e-4, 1e-6} {
		e := at(risk)
		if e.Total <= last.Total || e.Likely != last.Likely || e.High != last.High || e.Risk != risk {
			t.Errorf("at a risk of %v: total %v after %v, likely %v after %v", e.Risk, e.Total, last.Total, e.Likely,
				last.Likely)
		}
		last = e
	}
	certain := disdel.Bytes(math.Ceil(2*float64(last.Likely)/calibrated.WatchShare)) + calibrated.Pages
	if e := at(1e-300); e.Total > certain {
		t.Errorf("without any risk it takes %v, above all that there can be, %v", e.Total, certain)
	}
	if at(0).Total != at(DefaultRisk).Total {
		t.Error("a risk of 0 is not the default one")
	}
}

// The quantiles are those of tables of Student's distribution with four degrees of freedom, over the root of its
// variance.
func TestQuantilesAreStudents(t *testing.T) {
	for p, want := range map[float64]float64{
		0.95: 2.1318, 0.975: 2.7764, 0.99: 3.7469, 0.999: 7.1732, 0.5: 0,
		0.05: -2.1318,
	} {
		if got := heavyTail(p) * 1.4142136; got < want-1e-3 || got > want+1e-3 {
			t.Errorf("t(%v) = %.4f, want %.4f", p, got, want)
		}
	}
}

// Threads have stacks, a process that computes only once takes less, and a chunk counts where it is the largest thing
// there ever is.
func TestSmallTermsCount(t *testing.T) {
	in := Input{Graph: lenet(t), BatchSize: 1, Rows: 10, SampleBytes: 784, Epochs: 1}
	large := in // keeps no garbage
	large.BatchSize, large.Rows = 256, 256
	more := large
	more.Threads = 3
	if got := planned.Train(more).Package - planned.Train(large).Package; got != 2*calibrated.Thread {
		t.Errorf("two more threads take %v", got)
	}
	again := large
	again.Epochs = 2
	if got := planned.Train(again).Package - planned.Train(large).Package; got != calibrated.Once {
		t.Errorf("a second epoch takes %v more", got)
	}
	base := planned.Train(in)
	part := in
	part.Part = 1_000_000
	if got := planned.Train(part).Likely - base.Likely; got <= 0 || got > calibrated.Chunk {
		t.Errorf("rows out of a large data set take %v more", got)
	}
}

// A small action keeps garbage, a large one none, and where it fades the sum does not fall.
func TestSmallActionsKeepGarbage(t *testing.T) {
	last := disdel.Bytes(0)
	for likely := 5 * disdel.MB; likely < 2*calibrated.KeptBelow; likely += 50 * disdel.KB {
		kept := calibrated.keptGarbage(likely)
		keeps := calibrated.KeptAbove < likely && likely < calibrated.KeptBelow
		if likely+kept <= last || kept > calibrated.Kept || (kept > 0) != keeps {
			t.Errorf("%v and %v of garbage, after %v", likely, kept, last)
		}
		last = likely + kept
	}
	if got := calibrated.keptGarbage(8 * disdel.MB); got != calibrated.Kept {
		t.Errorf("8 MB keep %v", got)
	}
}

// The largest phase wins, and none falls when the batch grows: not where reading a chunk of large rows takes more than
// training small batches does, and not where both are about the same.
func TestNothingFallsWhereReadingIsTheLargestPhase(t *testing.T) {
	for _, size := range []disdel.Bytes{20 * disdel.KB, 400 * disdel.KB, 8 * disdel.MB} {
		for _, part := range []int{0, 100_000} {
			var last disdel.Estimate
			for batch := 1; batch < 400; batch += 4 {
				e := planned.Train(Input{
					Graph: lenet(t), BatchSize: batch, Rows: 300, Part: part, SampleBytes: size, Epochs: 1,
					Optimizer: adam,
				})
				if e.Likely < last.Likely || e.High < last.High || e.Low < last.Low || e.Total < last.Total {
					t.Errorf("rows of %v, batch %d: %d <= %d <= %d, total %d after %d <= %d <= %d, total %d",
						size, batch, e.Low, e.Likely, e.High, e.Total, last.Low, last.Likely, last.High, last.Total)
				}
				last = e
			}
		}
	}
}

// What a worker holds beside its engine: moments that are averaged go with the weights; a narrow wire takes the
// reference and the residual; moments that a worker keeps go array by array, into a checkpoint's file too.
func TestWhatAWorkerCarriesCounts(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "resnet18", Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Graph: g, BatchSize: 8, Rows: 100, SampleBytes: 3072, Epochs: 1, Optimizer: adam}
	weights := float64(in.carried())
	plain := [3]disdel.Bytes{planned.Train(in).Likely, planned.Aggregate(in).Likely, planned.Evaluate(in).Likely}
	for name, c := range map[string]struct {
		change func(*Input)
		want   [3]float64 // times the weights, more than plain
	}{
		"average":       {func(in *Input) { in.Moments = disdel.StateAverage }, [3]float64{2, 0, 2}},
		"keep":          {func(in *Input) { in.Moments = disdel.StateKeep }, [3]float64{}},
		"keep in files": {func(in *Input) { in.Moments, in.Checkpoints = disdel.StateKeep, true }, [3]float64{}},
		"int8":          {func(in *Input) { in.Wire = disdel.WireInt8 }, [3]float64{2.27, 0, 0}},
		"bfloat16":      {func(in *Input) { in.Wire = disdel.WireBfloat16 }, [3]float64{2.5, 0, 0}},
		"significant": { // as if everything were significant
			func(in *Input) { in.Wire = disdel.WireSignificant }, [3]float64{3.375, 0, 0},
		},
		"bfloat16 average": {
			func(in *Input) { in.Wire, in.Moments = disdel.WireBfloat16, disdel.StateAverage },
			[3]float64{9.5, 0, 2},
		},
	} {
		other := in
		c.change(&other)
		for i, e := range []disdel.Estimate{planned.Train(other), planned.Aggregate(other), planned.Evaluate(other)} {
			if got := float64(e.Likely-plain[i]) / weights; math.Abs(got-c.want[i]) > 0.15 {
				t.Errorf("%s, action %d: %.2f times the weights more, not %.2f", name, i, got, c.want[i])
			}
		}
	}
}

// An aggregation takes a few columns, whatever the network and however many its members: more values never take less,
// and VGG-16's 553 MB take no more than ResNet-18's 45 MB.
func TestAnAggregationTakesAFewColumns(t *testing.T) {
	network := func(n disdel.Network) *model.Graph {
		g, err := model.Build(n)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	dense := func(units int) *model.Graph {
		return network(disdel.Network{Input: []int{1, 8, 8}, Classes: 10, Layers: []disdel.Layer{
			{Kind: "flatten"}, {Kind: "dense", Units: units}, {Kind: "dense", Units: 10},
		}})
	}
	large := [2]*model.Graph{
		network(disdel.Network{Name: "resnet18", Input: []int{3, 224, 224}, Classes: 1000}),
		network(disdel.Network{Name: "vgg16", Input: []int{3, 224, 224}, Classes: 1000}),
	}
	for _, wire := range disdel.Wires() {
		for members := range 7 {
			in := Input{Members: members, Wire: wire, Epochs: 2}
			var last disdel.Estimate
			for units := 1; units < 1<<16; units += 1 + units/8 {
				in.Graph = dense(units)
				e := planned.Aggregate(in)
				if e.Likely < last.Likely || e.Total < last.Total {
					t.Errorf("%s, %d members, %d units: %d, total %d after %d, total %d", wire, members, units, e.Likely, e.Total,
						last.Likely, last.Total)
				}
				last = e
			}
			// a bucket takes more, up to the parts that are uploaded at once
			in.Graph, in.Bucket = large[1], true
			if e := planned.Aggregate(in); e.Likely <= last.Likely || e.Likely > 32*disdel.MB {
				t.Errorf("%s, %d members: %v with a bucket, %v without", wire, members, e.Likely, last.Likely)
			}
			in.Bucket = false
			var likely [2]disdel.Bytes
			for i, g := range large {
				in.Graph = g
				likely[i] = planned.Aggregate(in).Likely - in.nodes(calibrated.AggregateNode)
				if n := planned.Aggregate(in).Update; n != in.carried() {
					t.Errorf("%s: an update of %v, not %v", g.Name, n, in.carried())
				}
			}
			if likely[0] != likely[1] || likely[1] > 20*disdel.MB {
				t.Errorf("%s, %d members: %v for ResNet-18, %v for VGG-16", wire, members, likely[0], likely[1])
			}
		}
	}
}

// Estimating is arithmetic: nothing of a network's size is allocated, however large.
func TestEstimatingAllocatesLittle(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "resnet152", Input: []int{3, 224, 224}, Classes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Graph: g, BatchSize: 32, Rows: 10_000, SampleBytes: 3 * 224 * 224, Epochs: 1, Optimizer: adam}
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			planned.Train(in)
		}
	})
	const most = 1<<20 + 1<<16 // below 1 MB, and what the race detector adds
	if got := r.AllocedBytesPerOp(); got > most {
		t.Errorf("ResNet-152 of %v is estimated with %v of garbage", disdel.Bytes(4*g.Count().Trainable), disdel.Bytes(got))
	}
}

// What gorgonia takes was too little for a user: three convolutions of 64 filters, of which the columns are most. The
// peaks are those that were measured then.
func TestGorgoniasColumnsCount(t *testing.T) {
	var layers []disdel.Layer
	for range 3 {
		layers = append(layers, disdel.Layer{Kind: "conv", Filters: 64, Kernel: 3, SamePad: true, Activation: "relu"})
	}
	layers = append(layers, disdel.Layer{Kind: "globalAvgPool"}, disdel.Layer{Kind: "dense", Units: 10})
	g, err := model.Build(disdel.Network{Input: []int{1, 16, 16}, Classes: 10, Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{
		Graph: g, BatchSize: 16, Rows: 480, SampleBytes: 256, Epochs: 2, Optimizer: adam,
		Backend: disdel.BackendGorgonia,
	}
	riskiest := Estimator{engines: backends.Standard(nil), risk: highestRisk}
	train, evaluate := riskiest.Train(in), riskiest.Evaluate(in)
	for _, c := range []struct {
		e    disdel.Estimate
		peak float64 // MB
	}{{train, 92.9}, {evaluate, 53.8}} {
		peak := disdel.Bytes(c.peak * float64(disdel.MB))
		if off := float64(c.e.Likely)/float64(peak) - 1; math.Abs(off) > 0.2 || peak > c.e.Total {
			t.Errorf("a peak of %v, and %v is likely (%+.0f %%), %v the total", peak, c.e.Likely, 100*off, c.e.Total)
		}
	}
}

// A network of one layer has no slices: its estimate by layers is refused, not 0.
func TestANetworkOfOnePieceIsNotEstimatedByLayers(t *testing.T) {
	g, err := model.Build(disdel.Network{Input: []int{4}, Classes: 2, Layers: []disdel.Layer{{Kind: "dense", Units: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := planned.EvaluateByLayers(Input{Graph: g, BatchSize: 8, Rows: 100, SampleBytes: 4, Epochs: 1})
	if !errors.Is(err, disdel.Invalid) || e.Total != 0 {
		t.Errorf("%v, %v", e.Total, err)
	}
}
