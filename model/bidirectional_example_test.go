package model_test

import (
	"fmt"

	"github.com/disdel/disdel/model"
)

func ExampleBuilder_Bidirectional() {
	b := model.NewBuilder("reader", model.Shape{30})
	x := b.Bidirectional("lstm", b.Embedding("tokens", 0, 100, 16, true), model.OpLSTM, 12)
	fmt.Println(b.Out(x)) // channels of both directions, positions
	// Output: [24 30]
}
