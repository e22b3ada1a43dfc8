package actions

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// speaker is a worker's request for a language model whose last layer has the weight of the embedding. Its tokens are
// the grey values of the digits.
func (b *bench) speaker() disdel.TrainRequest {
	sets, err := dataset.OpenStore(b.t.Context(), b.data.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	defer sets.Close()
	in, err := dataset.Digits()
	if err != nil {
		b.t.Fatal(err)
	}
	in.Name, in.Scale = "greys", 1
	m, err := sets.Add(b.t.Context(), in, true)
	if err != nil {
		b.t.Fatal(err)
	}
	b.data.Name, b.data.Checksum = "greys", m.Checksum()
	block := func() disdel.Layer { return disdel.Layer{Kind: "transformer", Heads: 2, Causal: new(true)} }
	b.net = disdel.Network{
		Input: []int{1, 8, 8}, Classes: 17, NextToken: true, Init: disdel.Init{Seed: 3},
		Layers: []disdel.Layer{
			{Kind: "flatten"},
			{Kind: "embedding", Vocabulary: 17, Width: 8},
			{Kind: "positions"},
			block(), block(),
			{Kind: "layerNorm"},
			{Kind: "tiedDense"},
		},
	}
	req := b.train(0)
	req.MicroBatch = 5
	return req
}

// Stages of a language model come to the bits of one action, though the first and the last one share a weight: whether
// one of them is killed, or all pause. They clip gradients.
func TestStagesShareTheWeightOfAnEmbedding(t *testing.T) {
	b := setUp(t)
	req := b.speaker()
	req.ClipNorm = 0.5
	want := b.whole(req)
	for n := 2; n <= 3; n++ {
		if got := b.through(b.staged(req, n), unharmed, nil); !equal(got, want) {
			t.Errorf("%d stages come to other weights", n)
		}
		b.forget()
	}
	for killed := range 2 {
		kills := atomic.Int32{}
		got := b.through(b.staged(req, 2), func(stage int) time.Duration {
			if stage == killed && kills.Add(1) < 3 {
				return time.Duration(killed+1) * 200 * time.Millisecond
			}
			return 0
		}, nil)
		if !equal(got, want) {
			t.Errorf("stage %d, killed, comes to other weights", killed)
		}
		b.forget()
	}
	got := b.through(b.staged(req, 2), unharmed, nearlyOver())
	if !equal(got, want) {
		t.Error("the legs come to other weights")
	}
}
