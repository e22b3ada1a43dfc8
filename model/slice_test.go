package model

import (
	"errors"
	"testing"

	"github.com/disdel/disdel"
)

// ResNet-50's first pool ends the first slice: it hands over a quarter of the values. A job of an earlier version, whose
// second slice began with the pool, may go on.
func TestACutIsBehindAPool(t *testing.T) {
	g, err := Build(disdel.Network{Name: "resnet50", Input: []int{3, 64, 64}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	first := g.Cuts()[0]
	if before := g.Nodes[first-1]; before.Op != OpMaxPool {
		t.Errorf("the first slice ends with %s", before.Name)
	}
	if _, err := g.Sliced(first-1, len(g.Nodes)); err != nil {
		t.Error(err)
	}
	if _, err := g.Sliced(first+1, len(g.Nodes)); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a cut within a block: %v", err)
	}
}
