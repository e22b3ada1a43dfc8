package disdel_test

import (
	"fmt"

	"github.com/disdel/disdel"
)

// What steps came to between two heartbeats; another activation counts from 0 again.
func ExampleStepsSoFar_Minus() {
	first := disdel.StepsSoFar{Made: 10, Rows: 80, Loss: 40, Own: 20, Others: 60}
	later := disdel.StepsSoFar{Made: 25, Rows: 200, Loss: 90, Own: 50, Others: 150}
	since, ok := later.Minus(first)
	fmt.Println(since.Made, since.Rows, since.Loss, ok)
	_, ok = first.Minus(later)
	fmt.Println(ok)
	// Output:
	// 15 120 50 true
	// false
}

// The steps of two workers together.
func ExampleStepsSoFar_Add() {
	both := disdel.StepsSoFar{Made: 10, Rows: 80}
	both.Add(disdel.StepsSoFar{Made: 12, Rows: 96, Own: 3})
	fmt.Println(both.Made, both.Rows, both.Own)
	// Output:
	// 22 176 3
}
