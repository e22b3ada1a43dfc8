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
