package export_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/internal/test/faults"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// drawnLayers draws layers of a job file from a seed: of images, or of rows of tokens.
func drawnLayers(rng *rand.Rand, images bool) []disdel.Layer {
	one := func(list ...disdel.Layer) disdel.Layer { return list[rng.IntN(len(list))] }
	maybe := func() *bool { return new(rng.IntN(2) == 0) }
	heads := 1 + rng.IntN(3)
	width := 2 * heads * (1 + rng.IntN(3))
	act := func() disdel.Layer {
		kinds := []string{"relu", "relu6", "gelu", "silu", "hardSwish", "hardSigmoid", "elu", "softplus", "tanh"}
		return disdel.Layer{Kind: kinds[rng.IntN(len(kinds))]}
	}
	sides := [2]int{1 + rng.IntN(3), 1 + rng.IntN(3)}
	var list []disdel.Layer
	if images {
		list = append(list, disdel.Layer{Kind: "conv", Filters: width, Kernel: 1 + rng.IntN(3), Bias: maybe()})
		for range 1 + rng.IntN(4) {
			list = append(list, one(
				disdel.Layer{Kind: "windowAttention", Heads: heads, SizeHW: sides, Cosine: maybe()},
				disdel.Layer{Kind: "windowAttention", Heads: heads, Size: 3, Shift: rng.IntN(3), Bias: maybe()},
				disdel.Layer{Kind: "windowAttention", Heads: heads, Size: 2, Grid: new(true)},
				disdel.Layer{Kind: "batchNorm"}, disdel.Layer{Kind: "layerNorm"}, disdel.Layer{Kind: "prelu"},
				disdel.Layer{Kind: "groupNorm", Groups: heads}, disdel.Layer{Kind: "dropout", Rate: 0.3},
				disdel.Layer{Kind: "maxPool", Kernel: 3, Stride: 1, Padding: 1},
				disdel.Layer{Kind: "avgPool", Kernel: 3, Stride: 1, Padding: 1},
				disdel.Layer{Kind: "convTranspose", Filters: width, Kernel: 3, Stride: 1 + rng.IntN(2), Padding: 1},
				disdel.Layer{Kind: "pad", Padding: 1}, disdel.Layer{Kind: "upsample", SizeHW: [2]int{1, 2}},
				disdel.Layer{Kind: "adaptiveAvgPool", Size: 4}, act(),
			))
		}
		list = append(list, one(disdel.Layer{Kind: "pad", Padding: 1}, disdel.Layer{Kind: "upsample", Size: 2},
			disdel.Layer{Kind: "leakyRelu", Slope: 0.2}), disdel.Layer{Kind: "adaptiveAvgPool", Size: 4},
			disdel.Layer{Kind: "spaceToDepth", Size: 2}, one(disdel.Layer{Kind: "globalAvgPool"}, act()),
			disdel.Layer{Kind: "flatten"})
	} else {
		list = append(list, disdel.Layer{Kind: "embedding", Vocabulary: 9, Width: width},
			disdel.Layer{Kind: "positions"})
		for range 1 + rng.IntN(3) {
			list = append(list, one(
				disdel.Layer{Kind: "multiHeadAttention", Heads: heads, Causal: maybe(), Bias: maybe()},
				disdel.Layer{Kind: "lstm", Units: width, Bidirectional: maybe()},
				disdel.Layer{Kind: "gru", Units: width},
				disdel.Layer{Kind: "conv1d", Filters: width, Kernel: 3, Padding: 1}, disdel.Layer{Kind: "layerNorm"},
				disdel.Layer{Kind: "rmsNorm"}, disdel.Layer{Kind: "dense", Units: width, Bias: maybe()}, act(),
			))
			if list[len(list)-1].Bidirectional != nil && *list[len(list)-1].Bidirectional {
				list = append(list, disdel.Layer{Kind: "dense", Units: width})
			}
		}
		list = append(list, one(disdel.Layer{Kind: "takePosition", Take: model.TakeMean},
			disdel.Layer{Kind: "takePosition", Take: model.TakeLast}))
	}
	list = append(list, disdel.Layer{Kind: "dense", Units: 3, Bias: maybe()})
	if rng.IntN(2) == 0 {
		list = append(list, disdel.Layer{Kind: "softmax"})
	}
	return list
}

// Drawn networks that disdel writes as ONNX come back with all their layers, and answer the same to the bit. With its
// note changed, a file still answers the same, or is refused: the note is not believed.
//
// DISDEL_TEST_DRAWN is how many are drawn, from DISDEL_TEST_SEED.
func TestDrawnNetworksComeBackFromTheirOwnONNX(t *testing.T) {
	drawn, seed := faults.Drawn()
	kinds, read, tries := map[string]bool{}, 0, 0
	for i := range uint64(drawn) {
		rng := rand.New(rand.NewPCG(seed, i))
		images := i%2 == 0
		n := disdel.Network{Layers: drawnLayers(rng, images), Input: []int{2 + rng.IntN(7)}, Classes: 3}
		if images {
			n.Input = []int{1 + rng.IntN(3), 5 + rng.IntN(6), 5 + rng.IntN(6)}
		}
		g, err := model.Build(n)
		if err != nil {
			t.Logf("seed %d, network %d: %v", seed, i, err)
			continue
		}
		tries++
		weights := drawnWeights(g)
		var bare, file bytes.Buffer
		if err := safetensors.Write(&bare, safetensors.FromWeights(weights, nil)); err != nil {
			t.Fatal(err)
		}
		if err := export.ConvertONNX(&file, n, bare.Bytes(), nil); err != nil {
			t.Errorf("seed %d, network %d: %v", seed, i, err)
			continue
		}
		x := drawnRows(2 * g.Input().Len())
		for k := range x {
			if !images {
				x[k] = float32(rng.IntN(9))
			}
		}
		back, in := imported(t, file.Bytes(), false)
		want := answers(t, g, weights, 2, x)
		got := answers(t, back, in.Weights, 2, x)
		if !slices.Equal(got, want) || len(back.Nodes) != len(g.Nodes) {
			t.Errorf("seed %d, network %d of %v: %v, not %v", seed, i, n.Layers, got, want)
		}
		for _, l := range n.Layers {
			kinds[l.Kind] = true
		}
		other := bytes.Replace(file.Bytes(), []byte(`"input":[`), []byte(`"inbut":[`), 1)
		if in, err := export.ImportONNX(other, nil, export.ONNXOptions{KeepOutput: true}); err == nil {
			back, err := model.Build(in.Network)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("seed %d, network %d without its note", seed, i)
			wantClose(t, name, answers(t, back, in.Weights, 2, x), want)
			read++
		} else {
			t.Logf("seed %d, network %d without its note: %v", seed, i, err)
		}
	}
	if tries < drawn*3/4 {
		t.Errorf("seed %d: of %d networks, %d were built", seed, drawn, tries)
	}
	t.Logf("%d kinds of layers, %d networks; %d are read without the note", len(kinds), tries, read)
}

// A file whose graph another program changed is read as it is, whatever its note says.
func TestNotesOfChangedGraphsAreNotBelieved(t *testing.T) {
	n := disdel.Network{Input: []int{4}, Classes: 2, Layers: []disdel.Layer{
		{Kind: "relu"}, {Kind: "dense", Units: 2, Bias: new(false)},
	}}
	g, err := model.Build(n)
	if err != nil {
		t.Fatal(err)
	}
	var bare, file bytes.Buffer
	weights := engine.InitWeights(g, disdel.Init{Seed: 1})
	if err := safetensors.Write(&bare, safetensors.FromWeights(weights, nil)); err != nil {
		t.Fatal(err)
	}
	if err := export.ConvertONNX(&file, n, bare.Bytes(), nil); err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(file.Bytes(), []byte("\x04Relu"), []byte("\x04Tanh"), 1)
	_, in := imported(t, changed, true)
	if l := in.Network.Layers; len(l) != 3 || l[1].Kind != "tanh" {
		t.Errorf("the layers are %v", l)
	}
}
