package model_test

import (
	"fmt"

	"github.com/disdel/disdel/model"
)

// The windows of an attention are moved around the edges of the map.
func ExampleWindows() {
	b := model.NewBuilder("windows", model.Shape{6, 4, 4})
	b.WindowAttention("a", 0, model.WindowAttention{
		Heads: 2, Window: model.Sides{H: 2, W: 2}, Shift: model.Sides{H: 1, W: 1},
	})
	g, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	windows := model.WindowsOf(&g.Nodes[2], 4, 4)
	last := windows.Count() - 1
	for i := range windows.Len() {
		row, column := windows.Pixel(last, i)
		fmt.Println(row, column, "part", windows.Part(last, i))
	}
	// Output:
	// 3 3 part 0
	// 3 0 part 2
	// 0 3 part 1
	// 0 0 part 3
}
