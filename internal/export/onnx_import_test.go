package export_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// answers are what the native engine computes for rows.
func answers(t testing.TB, g *model.Graph, weights disdel.Weights, rows int, x []float32) []float32 {
	t.Helper()
	e, err := native.Backend{}.New(engine.Spec{Graph: g, BatchSize: rows, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := engine.SetWeights(e, weights); err != nil {
		t.Fatal(err)
	}
	y, err := e.Predict(dataset.Dense(rows, x, nil))
	if err != nil {
		t.Fatal(err)
	}
	return append([]float32(nil), y.Values...)
}

func drawnRows(n int) []float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = rng.Float32()*2 - 1
	}
	return x
}

// drawnWeights are weights as a training leaves them, with variances above 0.
func drawnWeights(g *model.Graph) disdel.Weights {
	out := engine.InitWeights(g, disdel.Init{Seed: 1})
	rng := rand.New(rand.NewPCG(3, 4))
	for _, v := range out {
		if strings.HasSuffix(v.Name, ".running_var") || strings.HasSuffix(v.Name, ".running_mean") {
			for i := range v.Data {
				v.Data[i] += (rng.Float32() - 0.5) / 4
			}
		}
	}
	return out
}

func wantClose(t testing.TB, name string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d answers, not %d", name, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= exact*max(1, math.Abs(float64(want[i])))) {
			t.Fatalf("%s: answer %d is %g, not %g", name, i, got[i], want[i])
		}
	}
}

// imported reads a file and builds its network.
func imported(t testing.TB, file []byte, keepOutput bool) (*model.Graph, export.Imported) {
	t.Helper()
	in, err := export.ImportONNX(file, nil, export.ONNXOptions{KeepOutput: keepOutput})
	if err != nil {
		t.Fatal(err)
	}
	g, err := model.Build(in.Network)
	if err != nil {
		t.Fatal(err)
	}
	return g, in
}

// What disdel writes as ONNX comes back and answers the same. DISDEL_TEST_ZOO=1 tries all of the zoo.
func TestNetworksComeBackFromONNX(t *testing.T) {
	list := map[string]*model.Graph{
		"odd": built(t, model.Shape{3, 13, 19}, func(b *model.Builder) {
			x := b.Same("clamped", b.Norm("n", b.Conv("a", 0, 6, model.Square(3, 2, 1), 1, true), model.Norm{Eps: 1e-3}),
				model.OpReLU6)
			x = b.Add("sum", x, b.Conv("depthwise", x, 6, model.Square(3, 1, 1), 6, false))
			x = b.Concat("joined", b.Downsample("down", x, 9, 2), b.Pool("pool", x, model.OpMaxPool, model.Square(3, 2, 1)))
			x = b.PReLU("one", b.PReLU("each", b.Pad("pad", x, model.Padding{Top: 1, Left: 2}), 15), 1)
			x = b.Multiply("square", x, b.Multiply("gated", x, b.Same("open", b.GlobalPool("mean", x), model.OpSigmoid)))
			x = b.Concat("again", b.Channels("shuffled", x, 0, 0, 3), b.Channels("some", x, 4, 2, 1))
			x = b.LayerNorm("each pixel", b.Upsample("up", x, model.Sides{H: 2, W: 3}), model.OpLayerNorm, 1e-3)
			x = b.GroupNorm("groups", b.GroupNorm("one group", x, 1, 0), b.Out(x)[0], 1e-4)
			x = b.Same("silu", b.Same("gelu", b.AdaptivePool("adaptive", x, 3), model.OpGELU), model.OpSiLU)
			x = b.Same("soft", b.Same("elu", b.LeakyReLU("leaky", b.Flatten("flat", x), 0.2), model.OpELU), model.OpSoftplus)
			x = b.Same("swish", b.Same("gate", b.Dense("first", x, 11), model.OpHardSigmoid), model.OpHardSwish)
			x = b.LayerNorm("all", b.Same("t", x, model.OpTanh), model.OpLayerNorm, 0)
			b.Same("softmax", b.Dense("last", x, 5), model.OpSoftmax)
		}),
	}
	for _, e := range model.Zoo() {
		small := e.Input.Len() < 2000 || e.Name == "resnet20-cifar" && !testing.Short()
		if !small && os.Getenv("DISDEL_TEST_ZOO") == "" {
			continue
		}
		input := e.Input
		g, err := model.Build(disdel.Network{Name: e.Name, Input: input, Classes: e.Classes})
		if err != nil {
			t.Fatal(err)
		}
		list[e.Name] = g
	}
	for name, g := range list {
		weights := drawnWeights(g)
		var file bytes.Buffer
		if err := export.WriteONNX(&file, g, weights, nil); err != nil {
			if disdel.KindOf(err) != disdel.Invalid {
				t.Errorf("%s: %v", name, err)
			}
			continue // a network that is not exported
		}
		if g.HasTokens() {
			continue // disdel reads sequences as PyTorch writes them
		}
		back, in := imported(t, file.Bytes(), false)
		x := drawnRows(2 * g.Input().Len())
		wantClose(t, name, answers(t, back, in.Weights, 2, x), answers(t, g, weights, 2, x))
		t.Logf("%s: %d layers", name, len(in.Network.Layers))
	}
}

// ofPyTorch runs a program of testdata with PyTorch, and returns the folder it writes to and what it prints.
func ofPyTorch(t *testing.T, program string, more ...string) (folder, said string) {
	t.Helper()
	const python = "/usr/bin/python3"
	folder = t.TempDir()
	if err := exec.CommandContext(t.Context(), python, "-c", "import torch").Run(); err != nil {
		t.Skip("there is no Python with PyTorch")
	}
	args := append([]string{"testdata/" + program, folder}, more...)
	out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return folder, string(out)
}

// exported reads NAME.onnx and the float32 of NAME.values.
func exported(t *testing.T, folder, name string) (file []byte, values []float32) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(folder, name+".onnx"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, name+".values"))
	if err != nil {
		t.Fatal(err)
	}
	values, err = safetensors.Float32s(safetensors.Tensor{
		Name: name, DType: safetensors.F32, Shape: []int{len(raw) / 4}, Data: raw,
	})
	if err != nil {
		t.Fatal(err)
	}
	return file, values
}

// PyTorch's own exporter writes these files, and PyTorch computes the answers.
func TestFilesOfPyTorchAnswerAlike(t *testing.T) {
	folder, said := ofPyTorch(t, "torch_onnx.py")
	for name := range strings.FieldsSeq(said) {
		file, values := exported(t, folder, name)
		g, in := imported(t, file, true)
		n := 2 * g.Input().Len()
		wantClose(t, name, answers(t, g, in.Weights, 2, values[:n]), values[n:])
		t.Logf("%s: %d layers, %q", name, len(in.Network.Layers), in.Network.Layers[1].Name)
	}
}

// Blocks of EfficientNet and RegNetY that come from PyTorch train to PyTorch's losses. The losses after the first show
// that the gradients through squeeze and excitation are right.
func TestFilesOfPyTorchTrainAlike(t *testing.T) {
	folder, said := ofPyTorch(t, "torch_trained.py")
	for line := range strings.Lines(said) {
		var name string
		var rows int
		var want [3]float64
		if _, err := fmt.Sscan(line, &name, &rows, &want[0], &want[1], &want[2]); err != nil {
			t.Fatalf("torch_trained.py says %q", line)
		}
		file, x := exported(t, folder, name)
		g, in := imported(t, file, false)
		got, _ := trained(t, g, in.Weights, rows, x, 0.1, len(want))
		for i, loss := range want {
			if d := math.Abs(got[i] - loss); !(d <= 1e-4) {
				t.Errorf("%s: the loss of step %d is %g, not %g", name, i+1, got[i], loss)
			}
		}
		t.Logf("%s: %d layers, losses %.7g of %.7g", name, len(in.Network.Layers), got, want)
	}
}

// All operators that are missing are told at once, with the names of their nodes.
func TestAllMissingOperatorsAreTold(t *testing.T) {
	g := built(t, model.Shape{1, 4, 4}, func(b *model.Builder) {
		x := b.Same("first", 0, model.OpReLU)
		b.Dense("fc", b.Flatten("flat", b.Same("second", x, model.OpTanh)), 2)
	})
	var file bytes.Buffer
	if err := export.WriteONNX(&file, g, drawnWeights(g), nil); err != nil {
		t.Fatal(err)
	}
	data := bytes.Replace(file.Bytes(), []byte("Relu"), []byte("Rolu"), 1)
	data = bytes.Replace(data, []byte("Tanh"), []byte("Tonh"), 1)
	_, err := export.ImportONNX(data, nil, export.ONNXOptions{})
	for _, want := range []string{`"first" (Rolu)`, `"second" (Tonh)`} {
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, disdel.Invalid) {
			t.Errorf("%q is not told: %v", want, err)
		}
	}
}

// What disdel lacks runs as the user's own code, and the end of every message says so.
func TestRefusalsEndWithOwnCode(t *testing.T) {
	hub := func(key string, value any) error {
		dir := hubFolder(t, "llama")
		change(t, dir, func(config map[string]any) { config[key] = value })
		_, err := readHub(t, dir, export.HubOptions{})
		return err
	}
	of := func(nodes ...[]byte) error {
		_, err := export.ImportONNX(fileOf(nodes...), nil, export.ONNXOptions{KeepOutput: true})
		return err
	}
	for name, err := range map[string]error{
		"operator":     of(node("Celu", []string{"x"}, []string{"y"})),
		"two":          of(node("Celu", []string{"x"}, []string{"a"}), node("Erf", []string{"a"}, []string{"y"})),
		"option":       of(node("LogSoftmax", []string{"x"}, []string{"y"})),
		"no output":    of(node("Relu", []string{"x"}, []string{"a"})),
		"architecture": hub("model_type", "t5"),
		"activation":   hub("hidden_act", "snake"),
		"bias":         hub("attention_bias", true),
		"heads":        hub("head_dim", 6),
	} {
		hint := disdel.AsError(err).Hint
		if faults := (*disdel.Faults)(nil); errors.As(err, &faults) {
			hint = faults.Faults[len(faults.Faults)-1].Hint
		}
		if !errors.Is(err, disdel.Invalid) || !strings.HasSuffix(hint, model.OwnCode) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// field is a length-delimited field of a protocol buffer.
func field(number byte, parts ...[]byte) []byte {
	data := bytes.Join(parts, nil)
	return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(data))), data...)
}

// node is an ONNX node of a graph.
func node(kind string, in, out []string) []byte {
	var parts [][]byte
	for _, name := range in {
		parts = append(parts, field(1, []byte(name)))
	}
	for _, name := range out {
		parts = append(parts, field(2, []byte(name)))
	}
	return field(1, append(parts, field(4, []byte(kind)))...)
}

// fileOf is an ONNX file of opset 13 that computes "y" from "x". Both have one row of 4 numbers.
func fileOf(nodes ...[]byte) []byte { return fileOfSides([]int{1, 4}, nodes...) }

// fileOfSides is the same of another shape.
func fileOfSides(sides []int, nodes ...[]byte) []byte {
	tensor := func(number byte, name string) []byte {
		var list []byte
		for _, n := range sides {
			list = append(list, field(1, binary.AppendUvarint([]byte{1 << 3}, uint64(n)))...)
		}
		return field(number, field(1, []byte(name)), field(2, field(1, []byte{1 << 3, 1}, field(2, list))))
	}
	graph := field(7, append(nodes, tensor(11, "x"), tensor(12, "y"))...)
	return slices.Concat([]byte{1 << 3, 8}, graph, field(8, []byte{2 << 3, 13}))
}

// A network that must answer what the file does cannot end with softmax where the file has its logarithm.
func TestLogarithmsOfProbabilitiesAreNotKept(t *testing.T) {
	file := fileOf(node("LogSoftmax", []string{"x"}, []string{"y"}))
	if _, err := export.ImportONNX(file, nil, export.ONNXOptions{KeepOutput: true}); !errors.Is(err, disdel.Invalid) ||
		!strings.Contains(err.Error(), "--keep-output") {
		t.Errorf("logarithms are kept: %v", err)
	}
	if in, err := export.ImportONNX(file, nil, export.ONNXOptions{}); err != nil || len(in.Notes) != 1 {
		t.Errorf("the notes are %q, the error is %v", in.Notes, err)
	}
}

// Nodes without outputs, which only hostile files have, are no part of a layer.
func TestNodesThatGiveNothingAreRefused(t *testing.T) {
	for kind, next := range map[string][]string{"Sigmoid": {"Mul", "a", "x"}, "ReduceMean": {"Sub", "x", "a"}} {
		file := fileOf(node(kind, []string{"x"}, []string{"a", "b"}), node(next[0], next[1:], nil),
			node("Relu", []string{"b"}, []string{"y"}))
		if _, err := export.ImportONNX(file, nil, export.ONNXOptions{}); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v", kind, err)
		} else {
			t.Log(err)
		}
	}
}

// A damaged or hostile file is an error, and never a panic.
func FuzzImportONNX(f *testing.F) {
	for _, name := range []string{"mlp", "digits-cnn"} {
		g, err := model.Build(disdel.Network{Name: name, Input: []int{1, 4, 4}, Classes: 2})
		if err != nil {
			f.Fatal(err)
		}
		weights := disdel.Weights{}
		for _, p := range g.Params() {
			weights = append(weights, disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, p.Len())})
		}
		var file bytes.Buffer
		if err := export.WriteONNX(&file, g, weights, nil); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes())
		f.Add(file.Bytes()[:file.Len()/2])
	}
	f.Add([]byte{0x3a, 0x06, 0x2a, 0x04, 0x08, 0x7f, 0x08, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := export.ImportONNX(data, nil, export.ONNXOptions{})
		if err == nil {
			if _, err := model.Build(in.Network); err != nil {
				t.Errorf("the network of a file that was read does not build: %v", err)
			}
		}
	})
}

func ExampleImportONNX() {
	network := disdel.Network{Input: []int{1, 2, 2}, Classes: 2, Layers: []disdel.Layer{
		{Kind: "flatten"}, {Kind: "dense", Name: "fc", Units: 2}, {Kind: "softmax"},
	}}
	var weights, file bytes.Buffer
	err := safetensors.Write(&weights, safetensors.FromWeights(disdel.Weights{
		{Name: "fc.weight", Shape: []int{2, 4}, Data: make([]float32, 8)},
		{Name: "fc.bias", Shape: []int{2}, Data: make([]float32, 2)},
	}, nil))
	if err == nil {
		err = export.ConvertONNX(&file, network, weights.Bytes(), nil)
	}
	in, wrong := export.ImportONNX(file.Bytes(), nil, export.ONNXOptions{})
	for _, l := range in.Network.Layers {
		fmt.Print(l.Kind, " ")
	}
	fmt.Println(errors.Join(err, wrong))
	// Output: flatten dense softmax <nil>
}

// Recurrences that compute something else than disdel's layers are refused, with the node's name and what is different.
func TestOtherRecurrencesAreRefused(t *testing.T) {
	folder, said := ofPyTorch(t, "torch_recurrent.py")
	want := map[string]string{
		"state": "of zeros", "lengths": "length for each row", "cells": "third output", "middle": "position 3 of 7",
		"plain": "(RNN): disdel has no layer", "order": "directions of one layer",
	}
	for name := range strings.FieldsSeq(said) {
		file, _ := exported(t, folder, name)
		_, err := export.ImportONNX(file, nil, export.ONNXOptions{KeepOutput: true})
		if want[name] == "" || err == nil || !strings.Contains(err.Error(), want[name]) || !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not tried: %v", want)
	}
}

// outside is an ONNX file of a dense layer whose weight, of 4 values for each output, is in another file.
func outside(location string, outputs int) []byte {
	entry := func(key, value string) []byte { return field(13, field(1, []byte(key)), field(2, []byte(value))) }
	side := func(n int) []byte { return binary.AppendUvarint([]byte{1 << 3}, uint64(n)) }
	weight := field(5, side(4), side(outputs), []byte{2 << 3, 1}, field(8, []byte("w")), entry("location", location),
		entry("offset", "8"), entry("length", strconv.Itoa(16*outputs)), []byte{14 << 3, 1})
	return fileOf(node("MatMul", []string{"x", "w"}, []string{"y"}), weight)
}

// Weights in a file of the ONNX file's folder are read. Files outside of it are refused, also through a link, and so is
// a file that is too short.
func TestWeightsInOtherFilesAreReadFromTheFolder(t *testing.T) {
	parent := t.TempDir()
	folder := filepath.Join(parent, "model")
	data := make([]byte, 8+64)
	for i := range 4 {
		binary.LittleEndian.PutUint32(data[8+4*(5*i):], math.Float32bits(float32(i+1)))
	}
	err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "w.bin"), data, 0o600),
		os.WriteFile(filepath.Join(parent, "w.bin"), data, 0o600),
		os.WriteFile(filepath.Join(folder, "short.bin"), data[:70], 0o600),
		os.Symlink("../w.bin", filepath.Join(folder, "link.bin")))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	in, err := export.ImportONNX(outside("w.bin", 4), root, export.ONNXOptions{KeepOutput: true})
	if err != nil {
		t.Fatal(err)
	}
	g, err := model.Build(in.Network)
	if err != nil {
		t.Fatal(err)
	}
	wantClose(t, "inside", answers(t, g, in.Weights, 1, []float32{1, 1, 1, 1}), []float32{1, 2, 3, 4})
	for _, location := range []string{
		"../w.bin", "/etc/passwd", "link.bin", "short.bin", "absent.bin", ".", "",
	} {
		_, err := export.ImportONNX(outside(location, 4), root, export.ONNXOptions{KeepOutput: true})
		if !errors.Is(err, disdel.Invalid) ||
			!strings.Contains(err.Error(), "\"w\"") {
			t.Errorf("%q: %v", location, err)
		}
	}
	_, err = export.ImportONNX(outside("w.bin", 4), nil, export.ONNXOptions{KeepOutput: true})
	if !errors.Is(err, disdel.Invalid) {
		t.Errorf("without a folder: %v", err)
	}
}

// The values of other files count where the values that are made of them are bounded: large models have such files.
func TestLargeWeightsInOtherFilesAreTurned(t *testing.T) {
	const outputs = 1_100_000 // more values than a file may make that has none
	folder := t.TempDir()
	file := filepath.Join(folder, "w.bin")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 8+16*outputs)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	in, err := export.ImportONNX(outside("w.bin", outputs), root, export.ONNXOptions{KeepOutput: true})
	if err != nil || in.Network.Classes != outputs {
		t.Errorf("%d outputs: %v", in.Network.Classes, err)
	}
}
