package engine_test

import (
	"fmt"

	"github.com/disdel/disdel/runtime/engine"
)

// Two rows of three outputs each.
func ExampleLargest() {
	fmt.Println(engine.Largest([]float32{0.1, 0.7, 0.2, 0.4, 0.2, 0.4}, 3))
	// Output: [1 0]
}

// The fourth lane of each group is of no row.
func ExampleLanes() {
	inputs := engine.Lanes{Values: make([]float32, 8), Rows: 3, Span: 4}
	inputs.Set(0, []float32{1, 2, 3, 4})
	inputs.Set(4, []float32{5, 6})
	fmt.Println(inputs.Len(), inputs.Values)
	fmt.Println(inputs.Block(2, 3))
	// Output:
	// 6 [1 2 3 0 4 5 6 0]
	// [3 4 5]
}
