package export_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
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

// drawnLayers draws layers of a job file from a seed: of images, of rows of tokens, or of tables.
func drawnLayers(rng *rand.Rand, rows string) []disdel.Layer {
	one := func(list ...disdel.Layer) disdel.Layer { return list[rng.IntN(len(list))] }
	maybe := func() *bool { return new(rng.IntN(2) == 0) }
	heads := 1 + rng.IntN(3)
	width := 2 * heads * (1 + rng.IntN(3))
	act := func() disdel.Layer {
		kinds := []string{
			"relu", "relu6", "gelu", "silu", "hardSwish", "hardSigmoid", "elu", "softplus", "tanh", "sigmoid",
			"geluTanh",
		}
		return disdel.Layer{Kind: kinds[rng.IntN(len(kinds))]}
	}
	sides := [2]int{1 + rng.IntN(3), 1 + rng.IntN(3)}
	var list []disdel.Layer
	repeat := func(kind string, layers ...disdel.Layer) { // joins them with the layer before them
		before := len(list) - 1
		if list[before].Name == "" {
			list[before].Name = fmt.Sprint("n", before)
		}
		list = append(list, layers...)
		list[len(list)-1].Name = fmt.Sprint("m", before)
		joined := disdel.Layer{Kind: kind, From: []string{list[before].Name, fmt.Sprint("m", before)}}
		if list = append(list, joined); kind == "concat" {
			list = append(list, disdel.Layer{Kind: "channels", First: width / 2, Filters: width, Groups: 2})
		}
	}
	join := []string{"add", "multiply", "concat"}[rng.IntN(3)]
	switch rows {
	case "images":
		list = append(list, disdel.Layer{Kind: "conv", Filters: width, Kernel: 1 + rng.IntN(3), Bias: maybe()})
		for range 1 + rng.IntN(4) {
			if rng.IntN(4) == 0 {
				repeat(join, act(), disdel.Layer{
					Kind: "conv", Filters: width, Kernel: 3, Dilation: 2, Padding: 2, Groups: heads, Activation: "silu",
				})
			}
			list = append(list, one(
				disdel.Layer{Kind: "batchNorm", Scale: maybe(), Center: maybe(), Eps: 1e-3}, act(),
				disdel.Layer{Kind: "depthwiseConv", KernelHW: sides, PaddingAt: [4]int{1, 0, 0, 2}, Bias: maybe()},
				disdel.Layer{Kind: "conv", Filters: width, Kernel: 3, StrideHW: sides, SamePad: true},
				disdel.Layer{Kind: "avgPool", Kernel: 2, Stride: 1, SamePad: true},
				disdel.Layer{Kind: "channels", Filters: width, Groups: heads}, disdel.Layer{Kind: "rmsNorm"},
				disdel.Layer{Kind: "dropout2d", Rate: 0.3}, disdel.Layer{Kind: "dropPath", Rate: 0.3},
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
			disdel.Layer{Kind: "leakyRelu", Slope: 0.2}), disdel.Layer{Kind: "adaptiveAvgPool", Size: 4})
		if rng.IntN(3) == 0 {
			list = append(list, disdel.Layer{Kind: "sequence"}, one(disdel.Layer{Kind: "classToken"}, act()),
				disdel.Layer{Kind: "transformer", Heads: heads, NormFirst: maybe()},
				disdel.Layer{Kind: "takePosition", Take: model.TakeFirst})
		} else {
			list = append(list, disdel.Layer{Kind: "spaceToDepth", Size: 2}, one(disdel.Layer{Kind: "globalAvgPool"},
				disdel.Layer{Kind: "globalMaxPool"}, act()), disdel.Layer{Kind: "flatten"})
		}
	case "tables":
		list = append(list, disdel.Layer{Kind: "dense", Units: width, Bias: maybe()})
		for range 1 + rng.IntN(3) {
			repeat([]string{"add", "multiply"}[rng.IntN(2)], act(), disdel.Layer{Kind: "dense", Units: width})
			list = append(list, one(
				disdel.Layer{Kind: "batchNorm", Scale: maybe()}, disdel.Layer{Kind: "layerNorm"}, act(),
				disdel.Layer{Kind: "rmsNorm", Eps: 1e-6}, disdel.Layer{Kind: "dropout", Rate: 0.1},
				disdel.Layer{Kind: "prelu", Groups: 1}, disdel.Layer{Kind: "dense", Units: width, Activation: "relu"},
			))
		}
	default:
		list = append(list, disdel.Layer{Kind: "embedding", Vocabulary: 9, Width: width},
			disdel.Layer{Kind: "positions", Learned: maybe()})
		for range 1 + rng.IntN(3) {
			if rng.IntN(4) == 0 && join != "concat" {
				repeat(join, disdel.Layer{Kind: "dense", Units: width}, act())
			}
			list = append(list, one(
				disdel.Layer{
					Kind: "multiHeadAttention", Heads: heads, KVHeads: 1, Rotary: maybe(), Theta: 500, Causal: maybe(),
				},
				disdel.Layer{Kind: "transformer", Heads: heads, NormFirst: maybe(), Activation: "geluTanh", Hidden: 5},
				disdel.Layer{Kind: "transformer", Heads: heads, KVHeads: heads, Rotary: maybe(), Causal: maybe()},
				disdel.Layer{Kind: "conv1d", Filters: width, Kernel: 2, Stride: 2, Groups: heads, Bias: maybe()},
				disdel.Layer{Kind: "conv1d", Filters: width, Kernel: 2, PaddingAt: [4]int{2, 0}, Dilation: 2},
				disdel.Layer{Kind: "gru", Units: width, Bidirectional: maybe()},
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
		takes := []string{model.TakeMean, model.TakeFirst, model.TakeLast, model.TakeEnds}
		list = append(list, disdel.Layer{Kind: "takePosition", Take: takes[rng.IntN(len(takes))]})
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
		rows := []string{"images", "tokens", "images", "tokens", "tables"}[i%5]
		n := disdel.Network{Layers: drawnLayers(rng, rows), Input: []int{2 + rng.IntN(7)}, Classes: 3}
		if rows == "images" {
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
			if rows == "tokens" {
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
		in, err = export.ImportONNX(other, nil, export.ONNXOptions{KeepOutput: true})
		windows := slices.ContainsFunc(n.Layers, func(l disdel.Layer) bool { return l.Kind == "windowAttention" })
		if err == nil {
			back, err := model.Build(in.Network)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("seed %d, network %d without its note", seed, i)
			wantClose(t, name, answers(t, back, in.Weights, 2, x), want)
			read++
		} else if !windows {
			t.Errorf("seed %d, network %d without its note: %v", seed, i, err)
		}
	}
	if tries < drawn*3/4 {
		t.Errorf("seed %d: of %d networks, %d were built", seed, drawn, tries)
	}
	t.Logf("%d kinds of layers, %d networks; %d are read without the note", len(kinds), tries, read)
}

// Networks of the zoo come back from ONNX with all their weights, and answer the same to the bit. Without its note a
// file answers the same, too. Where disdel has no ONNX for a layer, it says so.
//
// Networks of many weights are tried where DISDEL_TEST_DRAWN is above 40.
func TestTheZooComesBackFromItsOwnONNX(t *testing.T) {
	drawn, _ := faults.Drawn()
	largest, refused := 9_000_000, 0
	if drawn > 40 {
		largest = 30_000_000
	}
	for _, e := range model.Zoo() {
		n, g := small(t, e)
		params := weightsOf(g)
		if params > largest {
			continue
		}
		weights := drawnWeights(g)
		var bare, file, plain bytes.Buffer
		if err := safetensors.Write(&bare, safetensors.FromWeights(weights, nil)); err != nil {
			t.Fatal(err)
		}
		if err := export.ConvertONNX(&file, n, bare.Bytes(), nil); err != nil {
			if !errors.Is(err, disdel.Invalid) || !g.HasPadding() {
				t.Errorf("%s: %v", e.Name, err)
			}
			refused++
			continue
		}
		x := drawnRows(2 * g.Input().Len())
		for k := range x {
			if g.HasTokens() {
				x[k] = float32(7 * k % 100)
			}
		}
		want := answers(t, g, weights, 2, x)
		back, in := imported(t, file.Bytes(), false)
		if got := answers(t, back, in.Weights, 2, x); !slices.Equal(got, want) || weightsOf(back) != params {
			t.Errorf("%s: %v with %d weights, not %v with %d", e.Name, got, weightsOf(back), want, params)
		}
		if err := export.WriteONNX(&plain, g, weights, nil); err != nil {
			t.Fatal(err)
		}
		back, in = imported(t, plain.Bytes(), true)
		wantClose(t, e.Name+" without its note", answers(t, back, in.Weights, 2, x), want)
	}
	t.Logf("%d networks have layers that disdel writes as no ONNX", refused)
}

// small is a network of the zoo with small rows.
func small(t *testing.T, e model.Entry) (n disdel.Network, g *model.Graph) {
	t.Helper()
	input := e.Input
	for _, side := range []int{16, 32, 64, 96, 0} {
		n = disdel.Network{Name: e.Name, Input: slices.Clone(input), Classes: e.Classes}
		if side > 0 && len(input) == 3 {
			if n.Input[2] = side; input[1] > 1 {
				n.Input[1] = side
			}
		}
		var err error
		if g, err = model.Build(n); err == nil {
			return n, g
		} else if side == 0 {
			t.Fatalf("%s: %v", e.Name, err)
		}
	}
	return n, g
}

// weightsOf is how many weights a network has.
func weightsOf(g *model.Graph) (count int) {
	for _, p := range g.Params() {
		count += p.Len()
	}
	return count
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

// A later disdel writes some layers as other nodes. A file that an earlier one wrote has its checksum, and its note is
// believed.
func TestFilesOfEarlierWritersKeepTheirNetworks(t *testing.T) {
	n := disdel.Network{Input: []int{2, 6, 6}, Classes: 2, Layers: []disdel.Layer{
		{Kind: "conv", Filters: 4, Kernel: 1},
		{Kind: "windowAttention", Heads: 2, Size: 3},
		{Kind: "flatten"},
		{Kind: "dense", Units: 2},
	}}
	g, err := model.Build(n)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	weights := drawnWeights(g)
	if err := export.WriteONNX(&file, g, weights, nil); err != nil {
		t.Fatal(err)
	}
	earlier := bytes.Replace(file.Bytes(), []byte("/scores"), []byte("/stores"), -1)
	if bytes.Equal(earlier, file.Bytes()) {
		t.Fatal("no node has this name")
	}
	layers, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	var notes bytes.Buffer
	if err := export.AppendNotes(&notes, map[string]string{
		"disdel.network": string(layers), "disdel.checksum": fmt.Sprintf("%d %x", len(earlier), sha256.Sum256(earlier)),
	}); err != nil {
		t.Fatal(err)
	}
	back, in := imported(t, slices.Concat(earlier, notes.Bytes()), false)
	x := drawnRows(g.Input().Len())
	if got, want := answers(t, back, in.Weights, 1, x), answers(t, g, weights, 1, x); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	other := bytes.Replace(earlier, []byte("/stores"), []byte("/shores"), 1)
	if _, err := export.ImportONNX(append(other, notes.Bytes()...), nil, export.ONNXOptions{}); err == nil {
		t.Error("the note of a changed file is believed")
	}
}
