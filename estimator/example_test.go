package estimator_test

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// A main program passes its backends to the estimator, which asks the one that the job names for its footprint.
func ExamplePlanned() {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	planned := estimator.Planned(backends.Standard(nil))
	for _, backend := range disdel.Backends() {
		e := planned.Train(estimator.Input{
			Graph: g, BatchSize: 64, Rows: 1000, SampleBytes: 784, Epochs: 1, Backend: backend,
			Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}},
		})
		fmt.Println(backend, "is", e.Method, "and fits into its total:", e.Likely < e.Total)
	}
	// Output:
	// native is planned and fits into its total: true
	// gorgonia is measured and fits into its total: true
}
