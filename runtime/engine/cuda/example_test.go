package cuda_test

import (
	"fmt"
	"log"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// What a job would take of a GPU is known without one.
func ExampleBackend_Footprint() {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		log.Fatal(err)
	}
	f, err := cuda.Backend{}.Footprint(engine.Spec{
		Graph: g, BatchSize: 512, Training: true, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("weights", f.Sum(footprint.Weights), "of the device", f.In(footprint.Device))
	// Output: weights 267 KB of the device 29.5 MB
}
