package model

import (
	"slices"
	"testing"

	"github.com/disdel/disdel"
)

// Every kind that a job file may name is described, with every option and a default where it may be left out.
func TestEveryKindOfLayerIsDescribed(t *testing.T) {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
		for _, o := range k.Options {
			if o.Required == (o.Default != "") {
				t.Errorf("%s.%s: required %v, default %q", k.Name, o.Name, o.Required, o.Default)
			}
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, LayerKinds()) {
		t.Errorf("%v are described, and there are %v", names, LayerKinds())
	}
	for _, k := range layerKinds {
		if (k.add == nil || k.options == "slope") != slices.Contains(Activations(), k.name) {
			t.Errorf("%s is an activation, or something adds it: exactly one of them, but for a slope", k.name)
		}
	}
}

// The defaults that are told are those that hold: writing them out changes nothing.
func TestTheDefaultsOfLayersHold(t *testing.T) {
	yes := true
	plain := []disdel.Layer{
		{Kind: "conv", Filters: 8, Kernel: 3},
		{Kind: "batchNorm"},
		{Kind: "depthwiseConv", Kernel: 3},
		{Kind: "maxPool", Kernel: 2},
		{Kind: "dense", Units: 3},
	}
	written := []disdel.Layer{
		{Kind: "conv", Filters: 8, Kernel: 3, Stride: 1, Dilation: 1, Groups: 1, Bias: &yes},
		{Kind: "batchNorm", Eps: 1e-5, Momentum: 0.1, Scale: &yes, Center: &yes},
		{Kind: "depthwiseConv", Kernel: 3, Stride: 1, Dilation: 1, Bias: &yes},
		{Kind: "maxPool", Kernel: 2, Stride: 2},
		{Kind: "dense", Units: 3, Bias: &yes},
	}
	var counts []Counts
	for _, layers := range [][]disdel.Layer{plain, written} {
		g, err := Build(disdel.Network{Input: []int{1, 16, 16}, Classes: 3, Layers: layers})
		if err != nil {
			t.Fatal(err)
		}
		for i := range g.Nodes {
			if n := g.Nodes[i]; n.Op == OpBatchNorm && (n.Eps != 1e-5 || n.Momentum != 0.1) {
				t.Errorf("%+v", n)
			}
		}
		counts = append(counts, g.Count())
	}
	if counts[0].Trainable != counts[1].Trainable || counts[0].MACs != counts[1].MACs {
		t.Errorf("%+v and %+v", counts[0], counts[1])
	}
}
