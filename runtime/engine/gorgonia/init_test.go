package gorgonia

import (
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// All backends start from the same weights, those of engine.InitWeights.
func TestBackendsStartFromTheSameWeights(t *testing.T) {
	for _, name := range []string{"lenet5", "mlp", "resnet20-cifar", "digits-cnn"} {
		z, _ := model.Find(name)
		g, err := model.Build(disdel.Network{Name: name, Input: z.Input, Classes: 10})
		if err != nil {
			t.Fatal(err)
		}
		init := disdel.Init{Seed: 3, Scheme: "he"}
		want := engine.InitWeights(g, init)
		a := make1(t, g, engine.Spec{BatchSize: 2})
		if err := a.Init(init); err != nil {
			t.Fatal(err)
		}
		same(t, want, engine.Weights(a))
		b, err := native.New(enginetest.On(g, engine.Spec{BatchSize: 2}))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if err := b.Init(init); err != nil {
			t.Fatal(err)
		}
		same(t, want, engine.Weights(b))
	}
}
