package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/internal/test/onnxtest"
	"github.com/disdel/disdel/model"
)

// built makes a graph of an input.
func built(t testing.TB, input model.Shape, add func(b *model.Builder)) *model.Graph {
	t.Helper()
	b := model.NewBuilder("test", input)
	add(b)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// odd has every operation, at sizes that fit nothing.
func odd(b *model.Builder) {
	square := func(kernel, stride, pad int) model.Window { return model.Square(kernel, stride, pad) }
	counted := square(3, 2, 1)
	counted.CountPad = true
	x := b.Conv("a", 0, 6, model.Window{
		Kernel: model.Sides{H: 3, W: 2}, Stride: model.Sides{H: 1, W: 2}, Dilation: model.Sides{H: 2, W: 1},
		Pad: model.Padding{Top: 1, Left: 1, Right: 2},
	}, 1, true)
	x = b.Same("clamped", b.Norm("n", x, model.Norm{Eps: 1e-3, NoScale: true, NoCenter: true}), model.OpReLU6)
	y := b.Conv("depthwise", x, 6, square(3, 1, 1), 6, false)
	z := b.Conv("grouped", b.Dropout("drop", y, 0.5), 6, square(1, 1, 0), 2, true)
	x = b.Add("sum", x, y, z)
	x = b.Downsample("down", x, 9, 2)
	x = b.Concat("joined", b.Pool("largest", x, model.OpMaxPool, square(3, 2, 1)),
		b.Pool("mean", x, model.OpAvgPool, square(3, 2, 1)), b.Pool("all", x, model.OpAvgPool, counted))
	x = b.PReLU("one", b.PReLU("each", b.Pad("pad", x, model.Padding{Top: 1, Left: 2}), b.Out(x)[0]), 1)
	x = b.AdaptivePool("adaptive", b.BatchNorm("whole", b.Upsample("up", x, model.Sides{H: 2, W: 3})), 4)
	x = b.Same("swish", b.Same("t", b.Flatten("flat", b.Same("s", x, model.OpSigmoid)), model.OpTanh), model.OpHardSwish)
	x = b.BatchNorm("vector", b.Same("r", b.Dense("first", x, 11), model.OpReLU))
	x = b.Same("soft", b.Same("elu", b.LeakyReLU("leaky", x, 0.2), model.OpELU), model.OpSoftplus)
	x = b.Same("gate", x, model.OpHardSigmoid)
	b.Same("softmax", b.Dense("last", x, 5), model.OpSoftmax)
}

// windows has attention within windows, at sizes that are no multiples.
func windows(b *model.Builder) {
	x := b.Conv("a", 0, 6, model.Square(2, 2, 0), 1, true)
	x = b.WindowAttention("shifted", x, model.WindowAttention{
		Heads: 2, Window: model.Sides{H: 4, W: 3}, Shift: model.Sides{H: 2, W: 1},
	})
	x = b.SpaceToDepth("merged", b.Pad("even", x, model.Padding{Right: 1}), model.Sides{H: 2, W: 2})
	x = b.WindowAttention("grid", x, model.WindowAttention{Heads: 3, Window: model.Sides{H: 3, W: 5}, Grid: true})
	x = b.WindowAttention("cosine", x, model.WindowAttention{
		Heads: 4, Window: model.Sides{H: 2, W: 3}, Shift: model.Sides{W: 2}, Cosine: true,
	})
	b.Same("softmax", b.Dense("last", b.Flatten("flat", x), 5), model.OpSoftmax)
}

// exact is by how much the outputs of two programs may differ.
const exact = 1e-5

// onnxruntime computes what the engine does: every operation, and networks of the zoo that have few weights. make
// bench-daily does it with all of the zoo.
func TestOnnxruntimeAnswersAlike(t *testing.T) {
	python := os.Getenv("DISDEL_TEST_ONNXRUNTIME")
	if python == "" {
		t.Skip("DISDEL_TEST_ONNXRUNTIME names no Python with onnxruntime")
	}
	folder := t.TempDir()
	list := map[string]*model.Graph{
		"windows": built(t, model.Shape{3, 13, 19}, windows),
		"odd":     built(t, model.Shape{3, 13, 19}, odd),
		"upwards": built(t, model.Shape{2, 3, 5}, func(b *model.Builder) {
			b.Dense("fc", b.Flatten("flat", b.AdaptivePool("more", 0, 7)), 3)
		}),
		"normed": built(t, model.Shape{3, 5, 4}, func(b *model.Builder) {
			x := b.LayerNorm("pixels", b.Conv("a", 0, 8, model.Square(3, 1, 0), 1, true), model.OpLayerNorm, 1e-3)
			b.Dense("fc", b.LayerNorm("all", b.Dense("wide", b.Flatten("flat", x), 9), model.OpLayerNorm, 0), 3)
		}),
		"groups": built(t, model.Shape{3, 5, 4}, func(b *model.Builder) {
			x := b.GroupNorm("g", b.Conv("a", 0, 6, model.Square(3, 1, 0), 1, true), 3, 1e-3)
			b.Dense("fc", b.Flatten("flat", b.GroupNorm("each", x, 6, 0)), 3)
		}),
		"attending": built(t, model.Shape{9}, func(b *model.Builder) {
			x := b.Positions("at", b.Embedding("words", 0, 7, 8, false), false)
			causal, shared := model.Attention{Heads: 2, Causal: true}, model.Attention{Heads: 4, KVHeads: 2, Theta: 50}
			x = b.Add("one", x, b.MultiHeadAttention("a", b.LayerNorm("n", x, model.OpLayerNorm, 0), causal))
			x = b.MultiHeadAttention("b", b.LayerNorm("m", x, model.OpRMSNorm, 0), shared)
			x = b.Same("tanh", b.Dense("wide", b.Positions("sines", x, true), 12), model.OpGELUTanh)
			b.Dense("fc", b.TakePosition("last", x, model.TakeLast), 3)
		}),
		"patches": built(t, model.Shape{3, 6, 4}, func(b *model.Builder) {
			x := b.ClassToken("class", b.Sequence("row", b.Conv("patch", 0, 8, model.Square(2, 2, 0), 1, true)))
			x = b.MultiHeadAttention("a", x, model.Attention{Heads: 2})
			b.Same("softmax", b.Dense("fc", b.TakePosition("first", x, model.TakeFirst), 3), model.OpSoftmax)
		}),
		"recurrent": built(t, model.Shape{11}, func(b *model.Builder) {
			x := b.Bidirectional("l", b.Embedding("words", 0, 9, 6, false), model.OpLSTM, 5)
			window := model.Square(1, 1, 0)
			window.Kernel.H, window.Pad = 3, model.Padding{Top: 1, Bottom: 1}
			x = b.Recurrent("g", b.Conv1D("c", x, 7, window, 1, true), model.OpGRU, 4)
			ends := b.TakePosition("ends", b.Bidirectional("h", x, model.OpGRU, 3), model.TakeEnds)
			b.Add("sum", b.Dense("fc", ends, 2), b.Dense("other", b.TakePosition("mean", x, model.TakeMean), 2))
		}),
		"vector": built(t, model.Shape{7}, func(b *model.Builder) { b.Dropout("last", b.Dense("fc", 0, 2), 0.5) }),
	}
	for _, name := range []string{
		"softmax-regression", "mlp", "digits-cnn", "lenet5", "lenet-kubeml", "resnet20-cifar", "resnet20-cifar-b",
	} {
		e, _ := model.Find(name)
		g, err := model.Build(disdel.Network{Name: name, Input: e.Input, Classes: e.Classes})
		if err != nil {
			t.Fatal(err)
		}
		list[name] = g
	}
	for name, g := range list {
		if err := onnxtest.Write(folder, name, g, 3); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	got, err := onnxtest.Compare(t.Context(), python, "testdata/compare.py", folder)
	if err != nil {
		t.Fatal(err)
	}
	for name := range list {
		if off, there := got[name]; !there || !(off <= exact) {
			t.Errorf("%s is off by %g", name, off)
		}
	}
}

// What ONNX cannot say is refused, and weights that are not the network's own.
func TestWhatIsRefused(t *testing.T) {
	small := built(t, model.Shape{2}, func(b *model.Builder) { b.Dense("fc", 0, 1) })
	own := disdel.Weights{
		{Name: "fc.weight", Shape: []int{1, 2}, Data: []float32{1, 2}},
		{Name: "fc.bias", Shape: []int{1}, Data: []float32{3}},
	}
	other := disdel.Weights{own[0], {Name: "fc.bias", Shape: []int{2}, Data: []float32{3, 4}}}
	sparse, err := model.Build(disdel.Network{
		Name: "logistic", Input: []int{9}, Classes: 2, Sparse: &disdel.SparseNetwork{Mean: 2, Most: 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	var unused disdel.Weights
	for _, p := range sparse.Params() {
		unused = append(unused, disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, p.Len())})
	}
	for name, c := range map[string]struct {
		g       *model.Graph
		weights disdel.Weights
		kind    disdel.Kind
	}{
		"its own":       {small, own, disdel.UnknownKind},
		"too few":       {small, own[:1], disdel.Corrupt},
		"another shape": {small, other, disdel.Corrupt},
		"sparse rows":   {sparse, unused, disdel.Invalid},
	} {
		if err := export.WriteONNX(&bytes.Buffer{}, c.g, c.weights, nil); disdel.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	mlp := disdel.Network{Name: "mlp", Input: []int{1, 2, 2}, Classes: 2}
	if err := export.ConvertONNX(&bytes.Buffer{}, mlp, []byte("no"),
		nil); !errors.Is(err, disdel.Corrupt) {
		t.Error(err)
	}
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

// The same model gives the same bytes, and what cannot be written is said.
func TestWriting(t *testing.T) {
	var files [2]bytes.Buffer
	for i := range files {
		g := built(t, model.Shape{3, 13, 19}, odd)
		weights := disdel.Weights{}
		for _, p := range g.Params() {
			weights = append(weights, disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, p.Len())})
		}
		if err := export.WriteONNX(&files[i], g, weights, map[string]string{"b": "2", "a": "1"}); err != nil {
			t.Fatal(err)
		}
		if err := export.WriteONNX(full{}, g, weights, nil); !errors.Is(err, errFull) {
			t.Error(err)
		}
	}
	if !bytes.Equal(files[0].Bytes(), files[1].Bytes()) {
		t.Error("the same model was written in two ways")
	}
}

func ExampleConvertONNX() {
	network := disdel.Network{Name: "softmax-regression", Input: []int{1, 2, 2}, Classes: 2}
	var weights, file bytes.Buffer
	err := safetensors.Write(&weights, safetensors.FromWeights(disdel.Weights{
		{Name: "fc.weight", Shape: []int{2, 4}, Data: make([]float32, 8)},
		{Name: "fc.bias", Shape: []int{2}, Data: make([]float32, 2)},
	}, nil))
	if err == nil {
		err = export.ConvertONNX(&file, network, weights.Bytes(), map[string]string{"model": "small:v1"})
	}
	fmt.Println(strings.Contains(file.String(), "Softmax"), err)
	// Output: true <nil>
}
