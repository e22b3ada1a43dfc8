package render

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// Named describes the network of a name: one of the zoo, at an input of channels x height x width ("1x28x28", "" for
// its own) and with so many outputs (nil for its own), or a model of sparse rows. It returns NotFound for a name that
// no network has, with the nearest one, and Invalid for what is no shape, or one that the network cannot have.
func Named(name, input string, classes *int) (Network, error) {
	if n, ok := SparseNetwork(name); ok {
		return n, nil
	}
	e, ok := model.Find(name)
	if !ok {
		return Network{}, unknown(name)
	}
	n := disdel.Network{Name: name, Input: e.Input, Classes: e.Classes}
	if input != "" {
		var err error
		if n.Input, err = shape(input); err != nil {
			return Network{}, err
		}
	}
	if classes != nil {
		n.Classes = *classes
	}
	return Build(n, e.Title)
}

func unknown(name string) error {
	hint := "disdel model list"
	if near := model.Nearest(name); near != "" {
		hint = "disdel model show " + near
	}
	return &disdel.Error{
		Kind: disdel.NotFound, Op: "show model",
		Msg: fmt.Sprintf("there is no network or trained model %q", name), Hint: hint,
	}
}

// shape reads channels x height x width.
func shape(text string) ([]int, error) {
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
