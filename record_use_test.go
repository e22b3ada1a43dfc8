package disdel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// The cost by use of a record that does not say it is what its activations held.
func TestByUseOfEarlierRecords(t *testing.T) {
	held := disdel.Activation{
		Invocation: disdel.Invocation{Limits: disdel.Limits{Memory: disdel.GB}}, Duration: disdel.Millis(2 * time.Second),
	}
	for want, r := range map[float64]disdel.Record{
		3: {UsedGBs: 3, CostGBs: 9},
		2: {Activations: []disdel.Activation{held}, CostGBs: 9},
		6: {Activations: []disdel.Activation{held, held}, Omitted: 1},
		5: {CostGBs: 4, EvaluationGBs: 1},
	} {
		if got := r.MeteredCost(); got != want {
			t.Errorf("%g GB-s, want %g", got, want)
		}
	}
}

// A record of before the cost by use was kept has it all the same.
func ExampleRecord_MeteredCost() {
	old := disdel.Record{CostGBs: 9, Activations: []disdel.Activation{{
		Invocation: disdel.Invocation{Limits: disdel.Limits{Memory: disdel.GB / 4}}, Duration: disdel.Millis(8 * time.Second),
	}}}
	fmt.Println(old.MeteredCost(), "GB-s")
	// Output: 2 GB-s
}

// Money is told where the job file says a price.
func ExampleResources_Money() {
	money, ok := disdel.Resources{Price: 0.0000167}.Money(1000)
	fmt.Println(money, ok)
	// Output: 0.0167 true
}

func ExampleRecord_ModelRounds() {
	r := disdel.Record{Rounds: []disdel.Round{{Round: 0}, {Round: 1}, {Round: 2}}, Best: &disdel.Best{Round: 1}}
	fmt.Println(len(r.ModelRounds())) // the model has the weights of the second round
	// Output: 2
}
