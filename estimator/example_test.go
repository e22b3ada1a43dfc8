package estimator_test

import (
	"fmt"
	"log"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// input is a worker of LeNet-5 with 1000 pictures, in batches of 64.
func input() estimator.Input {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		log.Fatal(err)
	}
	return estimator.Input{
		Graph: g, BatchSize: 64, Rows: 1000, SampleBytes: 784, Epochs: 1,
		Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}},
	}
}

// A main program passes its backends to the estimator, which asks the one that the job names for its footprint.
func ExamplePlanned() {
	planned := estimator.Planned(backends.Standard(nil))
	in := input()
	for _, in.Backend = range []string{disdel.BackendNative, disdel.BackendGorgonia} {
		e := planned.Train(in)
		fmt.Println(in.Backend, "is", e.Method, "and fits into its total:", e.Likely < e.Total)
	}
	// Output:
	// native is planned and fits into its total: true
	// gorgonia is measured and fits into its total: true
}
