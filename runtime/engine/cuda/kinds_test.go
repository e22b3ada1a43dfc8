package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// A network with a layer that has no kernels here is refused by name, and never made.
func TestLayersWithoutKernelsAreRefused(t *testing.T) {
	g, err := model.Build(disdel.Network{Input: []int{1, 1, 5}, Layers: []disdel.Layer{
		{Kind: "embedding", Vocabulary: 9, Width: 6}, {Kind: "takePosition", Take: model.TakeLast},
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = Backend{}.Supports(g)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "kind embedding") {
		t.Error(err)
	}
}
