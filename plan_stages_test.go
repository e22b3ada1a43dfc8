package disdel_test

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Two networks are trained side by side, each by three actions. Only those with the last layers compute the loss.
func ExamplePlan_Replicas() {
	p := disdel.Plan{Workers: 6, Stages: make([]disdel.PlannedStage, 3)}
	fmt.Println(p.Replicas(), "networks")
	for w := range p.Workers {
		if p.KnowsLoss(w) {
			fmt.Println("worker", w, "knows the loss")
		}
	}
	// Output:
	// 2 networks
	// worker 2 knows the loss
	// worker 5 knows the loss
}
