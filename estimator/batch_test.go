package estimator

import (
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// elsewhere is backends whose engines have their memory on a device, or not.
type elsewhere struct{ device bool }

func (elsewhere) Name(asked string, _ *disdel.CustomNetwork) string { return asked }

func (e elsewhere) Footprint(string, footprint.Spec) (footprint.Footprint, error) {
	on := footprint.Host
	if e.device {
		on = footprint.Device
	}
	return footprint.Footprint{Basis: footprint.Planned, Parts: []footprint.Part{
		{Category: footprint.Weights, Memory: on, Bytes: disdel.MB},
		{Category: footprint.Batch, Memory: footprint.Heap, Bytes: 64 * disdel.KB},
	}}, nil
}

// Where a device computes, the batch that follows is filled meanwhile, by a thread more. With so many rows, no
// garbage is kept.
func TestADevicesNextBatchIsCounted(t *testing.T) {
	in := Input{Graph: lenet(t), BatchSize: 16, Rows: 20_000, SampleBytes: 784, Epochs: 1, Optimizer: adam}
	here, there := Planned(elsewhere{}), Planned(elsewhere{device: true})
	for task, f := range map[disdel.Task]func(Estimator) disdel.Estimate{
		disdel.TaskTrain:    func(e Estimator) disdel.Estimate { return e.Train(in) },
		disdel.TaskEvaluate: func(e Estimator) disdel.Estimate { return e.Evaluate(in) },
	} {
		one, two := f(here), f(there)
		second := disdel.Bytes(16 * 4 * (in.Graph.Input().Len() + 1))
		if task == disdel.TaskEvaluate { // whose batches come when the weights that came in are gone
			if two.Misc < one.Misc || two.Misc > one.Misc+second {
				t.Errorf("%s: %v beside a batch of %v", task, two.Misc, one.Misc)
			}
		} else if two.Misc != one.Misc+second {
			t.Errorf("%s: %v beside a batch of %v, not %v more", task, two.Misc, one.Misc, second)
		}
		if two.Package != one.Package+calibrated.Thread {
			t.Errorf("%s: the process takes %v, and %v", task, one.Package, two.Package)
		}
	}
}

// Rows on disk take no memory but their labels and places, and a row for each thread, also while they are read.
func TestRowsOnDiskTakeNoMemory(t *testing.T) {
	in := Input{
		Graph: lenet(t), BatchSize: 16, Rows: 100_000, SampleBytes: 784, Epochs: 1, Optimizer: adam, Threads: 2,
	}
	for task, estimate := range map[string]func(Input) disdel.Estimate{
		"train": planned.Train, "evaluate": planned.Evaluate,
	} {
		before := estimate(in)
		onDisk := in
		onDisk.OnDisk = true
		after := estimate(onDisk)
		if saved := before.Shard - after.Shard; saved != 784*(100_000-2)-4*100_000 {
			t.Errorf("%s: %v less, not the rows but two and the places", task, saved)
		}
		if after.Total > before.Total-700*100_000 {
			t.Errorf("%s: %v in all, of %v", task, after.Total, before.Total)
		}
	}
}

// Every thread resizes a row of its own.
func TestThreadsResizeRowsOfTheirOwn(t *testing.T) {
	in := Input{
		Graph: lenet(t), BatchSize: 16, Rows: 100, SampleBytes: 784, Epochs: 1, Optimizer: adam, Resizing: 10 * disdel.KB,
	}
	one := planned.Train(in).Shard
	in.Threads = 3
	if three := planned.Train(in).Shard; three != one+2*in.Resizing {
		t.Errorf("three threads hold %v, one %v", three, one)
	}
}

// An estimate of bfloat16 on processors says what it means. One of float32, or of a device, has no such note.
func TestOnlyShortActivationsOnProcessorsAreExplained(t *testing.T) {
	in := Input{Graph: lenet(t), BatchSize: 16, Rows: 1000, SampleBytes: 784, Epochs: 1, Optimizer: adam}
	short := in
	short.Precision = disdel.PrecisionBF16
	meaning := short.Precision.Meaning()
	if notes := planned.Train(short).Notes; !slices.Contains(notes, meaning) {
		t.Errorf("the notes %q do not say %q", notes, meaning)
	}
	if notes := planned.Train(in).Notes; len(notes) > 0 {
		t.Errorf("float32: %q", notes)
	}
	if notes := Planned(elsewhere{device: true}).Train(short).Notes; slices.Contains(notes, meaning) {
		t.Errorf("on a device: %q", notes)
	}
}
