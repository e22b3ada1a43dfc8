package model

import (
	"errors"
	"math"
	"testing"

	"github.com/disdel/disdel"
)

func described() *disdel.CustomNetwork {
	one := float32(1)
	return &disdel.CustomNetwork{
		Name: "mine", Input: []int{1, 8, 8}, Classes: 3, Activations: 50, Backward: 70,
		Params: []disdel.CustomParam{
			{Name: "w", Shape: []int{64, 3}, Trainable: true}, {Name: "mean", Shape: []int{3}, Fill: &one},
		},
	}
}

func TestADescribedNetworkIsCountedAsItsBinarySays(t *testing.T) {
	g, err := Build(disdel.Network{Custom: described(), Input: []int{1, 8, 8}, Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	c := g.Count()
	if c.Trainable != 192 || c.NonTrainable != 3 || c.ActivationsB != 50 || len(c.Layers) != 1 ||
		c.Layers[0].Op != "custom" {
		t.Errorf("counts %+v", c)
	}
	p := g.Params()
	if len(p) != 2 || p[0].Name != "w" || g.Output().Len() != 3 || g.Custom() == nil {
		t.Errorf("parameters %+v", p)
	}
	if _, ok := g.Fill(p[0]); ok {
		t.Error("w is drawn")
	}
	if v, ok := g.Fill(p[1]); !ok || v != 1 {
		t.Errorf("mean starts from %v", v)
	}
}

func TestDescriptionsThatNoGraphHasAreRefused(t *testing.T) {
	for name, change := range map[string]func(n *disdel.Network){
		"classes":      func(n *disdel.Network) { n.Classes = 4 },
		"input":        func(n *disdel.Network) { n.Input = []int{1, 7, 8} },
		"no outputs":   func(n *disdel.Network) { n.Custom.Classes, n.Classes = 0, 0 },
		"no params":    func(n *disdel.Network) { n.Custom.Params = nil },
		"no name":      func(n *disdel.Network) { n.Custom.Params[0].Name = "" },
		"no own name":  func(n *disdel.Network) { n.Custom.Name = "" },
		"twice":        func(n *disdel.Network) { n.Custom.Params[0].Name = "mean" },
		"zero side":    func(n *disdel.Network) { n.Custom.Params[0].Shape = []int{0, 3} },
		"overflow":     func(n *disdel.Network) { n.Custom.Params[0].Shape = []int{math.MaxInt32, math.MaxInt32, 9} },
		"negative":     func(n *disdel.Network) { n.Custom.Backward = -1 },
		"beyond count": func(n *disdel.Network) { n.Custom.Activations = math.MaxInt64 },
	} {
		n := disdel.Network{Custom: described(), Input: []int{1, 8, 8}, Classes: 3}
		change(&n)
		if _, err := Build(n); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}
