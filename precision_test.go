package disdel_test

import (
	"fmt"

	"github.com/disdel/disdel"
)

// A job says in what it trains; what it does not say is float32.
func ExamplePrecision() {
	var t disdel.Training
	fmt.Println(t.Precision.Short())
	for _, p := range disdel.Precisions() {
		fmt.Println(p, p.Short())
	}
	// Output:
	// false
	// float32 false
	// bf16 true
}
