package kernel_test

import (
	"fmt"
	"math"

	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// Two users and two items of rank 2, each with a bias in its last column: what is expected of two ratings, and how a
// step moves the rows that they touch.
func ExampleExact() {
	set, err := kernel.Choose()
	if err != nil {
		fmt.Println(err)
		return
	}
	e := kernel.NewExact(set)
	users := []float32{1, 2, 0.5, 0, 1, 0}
	items := []float32{2, 0, 0, 1, 1, -0.5}
	pairs := kernel.Pairs{Users: users, Items: items, Width: 3, Index: []int32{0, 2, 0, 3}, First: 2}
	expected := make([]float32, 2)
	e.Products(&pairs, 3, expected)
	fmt.Println(expected)

	// Both ratings are of user 0, whose gradient is the first of its table.
	ofUsers, ofItems := make([]float32, 3), make([]float32, 6)
	e.Slopes(&pairs, []float32{1, -2}, []int32{0, 0, 0, 1}, ofUsers, ofItems)
	fmt.Println(ofUsers, ofItems, e.SquareSum(ofUsers))
	e.SGD(kernel.SGD{Rate: 0.5, Scale: 1}, &kernel.Touched{
		Rows: []int32{0}, Gradients: ofUsers, Width: 3, Values: users,
	})
	fmt.Println(users)
	// Output:
	// [5.5 6]
	// [0 -2 -1] [1 2 1 -2 -4 -2] 5
	// [1 3 1 0 1 0]
}

// Rows of a regression have entries in few columns.
func ExampleExact_Sums() {
	set, err := kernel.Choose()
	if err != nil {
		fmt.Println(err)
		return
	}
	e, weights := kernel.NewExact(set), []float32{1, 0, 0.5, 0, 2}
	rows := kernel.Entries{Start: []int32{0, 2, 3}, Index: []int32{0, 4, 2}, Values: []float32{3, 1, 4}}
	sums := make([]float64, 2)
	e.Sums(&rows, weights, sums)
	e.AddEntries(&rows, []float32{1, 0.5}, weights)
	fmt.Println(sums, weights)
	// Output: [5 2] [4 0 2.5 0 3]
}

// What is owed of four weights, one of which has not changed and one by too little.
func ExampleExact_Changes() {
	set, err := kernel.Choose()
	if err != nil {
		fmt.Println(err)
		return
	}
	owed, marks := make([]float32, 4), make([]byte, 1)
	kernel.NewExact(set).Changes([]float32{1, 2, 3, 0.5}, []float32{1, 1.75, 1, 1}, nil, owed, 0.5, marks)
	fmt.Printf("%v %04b\n", owed, marks[0])
	// Output: [0 0.25 2 -0.5] 1100
}

// Finite finds a value that is NaN or infinite; large values are finite.
func ExampleFinite() {
	fmt.Println(kernel.Finite([]float32{1, math.MaxFloat32}), kernel.Finite([]float32{1, float32(math.Inf(1))}))
	// Output: true false
}
