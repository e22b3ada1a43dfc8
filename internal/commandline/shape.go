package commandline

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Shape reads channels x height x width: "1x28x28". It returns Invalid for anything else.
func Shape(text string) ([]int, error) {
	var c, h, w int
	if n, err := fmt.Sscanf(text, "%dx%dx%d", &c, &h, &w); err != nil || n != 3 ||
		fmt.Sprintf("%dx%dx%d", c, h, w) != text {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("%q is no shape", text),
			Hint: "write channels x height x width: 1x28x28",
		}
	}
	return []int{c, h, w}, nil
}
