package gorgonia

import (
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native"
)

// All backends start from the same weights, those of native.InitWeights.
func TestBackendsStartFromTheSameWeights(t *testing.T) {
	for _, name := range []string{"lenet5", "mlp", "resnet20-cifar", "digits-cnn"} {
		z, _ := model.Find(name)
		g, err := model.Build(disdel.Network{Name: name, Input: z.Input, Classes: 10})
		if err != nil {
			t.Fatal(err)
		}
		init := disdel.Init{Seed: 3, Scheme: "he"}
		want := native.InitWeights(g, init)
		a := make1(t, g, native.Config{Batch: 2})
		a.Init(init)
		same(t, want, a.Weights())
		b, err := native.New(g, native.Config{Batch: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		b.Init(init)
		same(t, want, b.Weights())
	}
}
