package estimator

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// drawnInput draws a network and all that changes what a worker holds.
func drawnInput(t *rapid.T) Input {
	g, err := model.Build(disdel.Network{
		Name:  rapid.SampledFrom([]string{"lenet5", "resnet18", "vgg16-cifar"}).Draw(t, "network"),
		Input: []int{3, 32, 32}, Classes: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	optimizers := []disdel.Optimizer{
		adam,
		{SGD: &disdel.SGD{LearningRate: 1}},
		{SGD: &disdel.SGD{LearningRate: 1, Momentum: 0.9}},
		{Lion: &disdel.Lion{LearningRate: 1}},
		{RMSprop: &disdel.RMSprop{LearningRate: 1}},
	}
	policy := []disdel.StatePolicy{disdel.StateAverage, disdel.StateReset, disdel.StateKeep}
	in := Input{
		Graph: g, BatchSize: rapid.IntRange(1, 700).Draw(t, "batch"), Rows: rapid.IntRange(1, 9000).Draw(t, "rows"),
		Part: rapid.IntRange(0, 9000).Draw(t, "part"), Drawn: rapid.Bool().Draw(t, "drawn"),
		SampleBytes: disdel.Bytes(rapid.IntRange(1, 9000).Draw(t, "sample")), Epochs: 2,
		Optimizer: rapid.SampledFrom(optimizers).Draw(t, "optimizer"),
		ClipNorm:  rapid.SampledFrom([]float64{0, 1}).Draw(t, "clip"), Exact: rapid.Bool().Draw(t, "exact"),
		Precision: rapid.SampledFrom(disdel.Precisions()).Draw(t, "precision"),
		Threads:   rapid.IntRange(1, 4).Draw(t, "threads"), Members: rapid.IntRange(1, 9).Draw(t, "members"),
		Moments: rapid.SampledFrom(policy).Draw(t, "moments"), Wire: rapid.SampledFrom(disdel.Wires()).Draw(t, "wire"),
		Bucket: rapid.Bool().Draw(t, "bucket"), Checkpoints: rapid.Bool().Draw(t, "checkpoints"),
		Resizing: disdel.Bytes(rapid.IntRange(0, 9000).Draw(t, "resizing")),
	}
	in.StepMemory.MicroBatch = rapid.SampledFrom([]int{0, 1, 16}).Draw(t, "parts")
	if in.Precision.Plain() && rapid.Bool().Draw(t, "again") {
		in.StepMemory.Recompute = disdel.RecomputeAuto
	}
	if rapid.Bool().Draw(t, "exchange") {
		in.Exchange = &disdel.Exchange{Threshold: rapid.SampledFrom([]float64{0, 0.7}).Draw(t, "threshold")}
	}
	return in
}

// No estimate falls when the batch, the rows, the threads or what is kept grow, however the job trains.
func TestMoreNeverTakesLessMemory(t *testing.T) {
	grow := map[string]func(t *rapid.T, in *Input){
		"batch":       func(t *rapid.T, in *Input) { in.BatchSize += rapid.IntRange(1, 300).Draw(t, "more") },
		"rows":        func(t *rapid.T, in *Input) { in.Rows += rapid.IntRange(1, 9000).Draw(t, "more") },
		"part":        func(t *rapid.T, in *Input) { in.Part += rapid.IntRange(1, 9000).Draw(t, "more") },
		"sample":      func(_ *rapid.T, in *Input) { in.SampleBytes *= 3 },
		"threads":     func(_ *rapid.T, in *Input) { in.Threads++ },
		"checkpoints": func(_ *rapid.T, in *Input) { in.Checkpoints = true },
		"clipping":    func(_ *rapid.T, in *Input) { in.ClipNorm = 1 },
	}
	for what, change := range grow {
		t.Run(what, rapid.MakeCheck(func(t *rapid.T) {
			in := drawnInput(t)
			more := in
			change(t, &more)
			// Rows are read in chunks of whole rows. A chunk of larger rows may be smaller by a row, and has fewer labels.
			slack := disdel.Bytes(0)
			// Buffers that shrink while they live leave other gaps: vgg16-cifar takes 1.4 % less at a batch of 513 than at 512.
			if in.Precision.Short() {
				slack = planned.Train(in).Total / 50
			}
			if what == "sample" {
				slack = 2 * (disdel.Bytes(max(in.Rows, in.Part))*label + more.SampleBytes)
			}
			evaluate := func(in Input) (disdel.Estimate, error) { return planned.Evaluate(in), nil }
			for task, estimate := range map[disdel.Task]func(Input) (disdel.Estimate, error){
				disdel.TaskTrain: planned.TrainOrRefuse, disdel.TaskEvaluate: evaluate,
			} {
				a, err1 := estimate(in)
				b, err2 := estimate(more)
				if err1 != nil || err2 != nil { // no engine trains so, for example a batch norm in parts
					continue
				}
				if b.Low+slack < a.Low || b.Likely+slack < a.Likely || b.High+slack < a.High || b.Total+slack < a.Total {
					t.Fatalf("%s: %d <= %d <= %d, total %d; with more %d <= %d <= %d, total %d", task, a.Low, a.Likely, a.High,
						a.Total, b.Low, b.Likely, b.High, b.Total)
				}
			}
		}))
	}
}
