package estimator

import (
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

// Where a device computes, the batch that follows is filled meanwhile, by a thread more.
func TestADevicesNextBatchIsCounted(t *testing.T) {
	in := Input{Graph: lenet(t), BatchSize: 16, Rows: 100, SampleBytes: 784, Epochs: 1, Optimizer: adam}
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
