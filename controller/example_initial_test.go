package controller_test

import (
	"fmt"
	"log"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/model"
)

// What a network has learned on ten classes is a beginning for five, but for its last layer.
func ExampleCheckInitial() {
	g, err := model.Build(disdel.Network{Name: "softmax-regression", Input: []int{1, 8, 8}, Classes: 5})
	if err != nil {
		log.Fatal(err)
	}
	arrays := disdel.Weights{{Name: "fc.weight", Shape: []int{10, 64}}, {Name: "fc.bias", Shape: []int{10}}}
	init := disdel.Init{Weights: "digits:v3"}
	for _, f := range controller.CheckInitial(g, init, arrays) {
		fmt.Println(f.Msg)
	}
	init.Except = "fc"
	fmt.Println(len(controller.CheckInitial(g, init, arrays)), "faults")
	// Output:
	// digits:v3: fc.weight is [10 64], and the network's is [5 64]
	// digits:v3: fc.bias is [10], and the network's is [5]
	// 0 faults
}
