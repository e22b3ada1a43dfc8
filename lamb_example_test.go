package disdel_test

import (
	"fmt"

	"github.com/disdel/disdel"
)

func ExampleLAMB() {
	o := disdel.Optimizer{LAMB: &disdel.LAMB{LearningRate: 0.002, WeightDecay: 0.01}}
	fmt.Println(o.Name(), o.MomentNames(), o.LAMB.WithDefaults().Epsilon)
	// Output: lamb [exp_avg exp_avg_sq] 1e-06
}
