package model

import (
	"slices"

	"github.com/disdel/disdel"
)

// TwoOutputs makes two outputs with softmax of a network's single output with sigmoid, as people write a choice between
// two classes. Both can say the same: the sigmoid of z is the softmax of 0 and z. ok is false for any other network.
func TwoOutputs(layers []disdel.Layer) (out []disdel.Layer, ok bool) {
	last := len(layers) - 1
	switch {
	case last >= 0 && layers[last].Kind == "dense" && layers[last].Units == 1 && layers[last].Activation == "sigmoid":
		out = slices.Clone(layers)
		out[last].Units, out[last].Activation = 2, "softmax"
		return out, true
	case last >= 1 && layers[last].Kind == "sigmoid" && follows(layers, last) && layers[last-1].Kind == "dense" &&
		layers[last-1].Units == 1 && layers[last-1].Activation == "":
		out = slices.Clone(layers)
		out[last-1].Units, out[last].Kind = 2, "softmax"
		return out, true
	default:
		return nil, false
	}
}

// follows says whether layer i takes the one before it.
func follows(layers []disdel.Layer, i int) bool {
	from := layers[i].From
	return len(from) == 0 || len(from) == 1 && from[0] == layerName(i-1, &layers[i-1])
}
