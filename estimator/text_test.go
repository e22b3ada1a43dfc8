package estimator_test

import (
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// An action that continues texts keeps keys and values, and has no activations of whole rows.
func TestTextsTakeTheirKeysAndValues(t *testing.T) {
	const positions, width, layers = 128, 128, 2
	network := disdel.Network{Name: "gpt-tiny", Input: []int{1, 1, positions}, Classes: 512, NextToken: true}
	g, err := model.Build(network)
	if err != nil {
		t.Fatal(err)
	}
	in := estimator.Input{Graph: g, BatchSize: 1, Rows: 1}
	e := estimator.Planned(backends.Standard(nil))
	whole := e.Evaluate(in)
	in.Continues = true
	text := e.Evaluate(in)
	f, err := backends.Standard(nil).Footprint("", footprint.Spec{Graph: g, BatchSize: 1, Continues: true})
	if err != nil || f.Sum(footprint.Workspace) < 4*2*layers*width*positions {
		t.Errorf("%v of workspace has no keys and values, %v", f.Sum(footprint.Workspace), err)
	}
	if whole.Activations < 4*disdel.Bytes(positions*512) || text.Activations > whole.Activations/3 {
		t.Errorf("%v of activations with keys and values kept, %v without", text.Activations, whole.Activations)
	}
}
