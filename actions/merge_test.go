package actions

import (
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
)

// A trained model has W + alpha/rank B A in the place of W, and frozen arrays where the graph has them, however the
// trained ones come in blocks.
func TestAdaptersAreMerged(t *testing.T) {
	b := model.NewBuilder("three", model.Shape{3})
	b.Dense("out", b.Dense("head", b.Dense("fc", 0, 2), 1), 1)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	lora := disdel.LoRA{Rank: 2, Alpha: 1, Layers: "fc", Whole: "head"}
	if err := g.Adapt(disdel.Init{}, lora); err != nil {
		t.Fatal(err)
	}
	trained := []float32{
		1, 0, 2, 0, 1, 1, // A
		2, 4, 6, 8, // B
		9, 10, 11, // head
	}
	want := []float32{1 + 1, 2 + 2, 3 + 4, 4 + 3, 5 + 4, 6 + 10, 7, 8, 9, 10, 11, 12, 13}
	for size := 1; size <= len(trained); size++ {
		values := modelstore.Values(func(take func([]float32) error) error {
			for block := range slices.Chunk(trained, size) {
				if err := take(slices.Clone(block)); err != nil {
					return err
				}
			}
			return nil
		})
		m := merging{graph: g, trained: shapes(g), factor: lora.Factor(), frozen: map[string][]float32{
			"fc.weight": {1, 2, 3, 4, 5, 6}, "fc.bias": {7, 8}, "out.weight": {12}, "out.bias": {13},
		}}
		if err := m.readAdapters(values); err != nil {
			t.Fatal(err)
		}
		var got []float32
		err := m.values(values)(func(block []float32) error { got = append(got, block...); return nil })
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("blocks of %d: %v, want %v, %v", size, got, want, err)
		}
		if all := m.shapes(); len(all) != 6 || all[2].Name != "head.weight" {
			t.Fatal(all)
		}
	}
}
