package controller_test

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

// Workers that exchange after every step make as many as the one with the most rows.
func ExampleSteps() {
	job := disdel.Job{Training: disdel.Training{BatchSize: 32}}
	plan := disdel.Plan{Workers: 2, Shards: []disdel.RowRange{{End: 100}, {Start: 100, End: 230}}}
	fmt.Println(controller.Steps(&job, &plan, disdel.TrainRange{Epochs: 3}))
	job.Distribution.Exchange = &disdel.Exchange{Batches: disdel.BatchesQueue} // any of which one worker might take
	fmt.Println(controller.Steps(&job, &plan, disdel.TrainRange{Epochs: 1}))
	// Output:
	// 15
	// 8
}
