package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// exact is by how much answers may differ, as a share of the largest one where that is above 1.
const exact = 1e-5

// errUnread marks a file that disdel does not read, with the reason.
var errUnread = errors.New("not read")

// builders imports every classification network of torchvision, and compares a drawn row's answer. Networks whose
// answer is further off than exact, but by at most twice as much as PyTorch's own in float32, are counted apart.
func builders(ctx context.Context, t *tools, only string) error {
	list, err := t.run(ctx, "torchvision_onnx.py", "--list")
	if err != nil {
		return err
	}
	all, agree, rounded, peer := 0, 0, 0, 0
	for name := range strings.FieldsSeq(list) {
		if !strings.Contains(name, only) {
			continue
		}
		all++
		var off, own float64
		err := rig.Folder(func(folder string) error {
			said, err := t.run(ctx, "torchvision_onnx.py", name, folder)
			if err == nil {
				own, err = strconv.ParseFloat(strings.TrimSpace(said), 64)
			}
			if err == nil {
				off, err = difference(folder, name, 1)
			}
			return err
		})
		if err == nil && own <= exact {
			peer++
		}
		if told(name, off, err) {
			agree++
		} else if err == nil && off <= 2*own {
			rounded++
			fmt.Fprintf(os.Stderr, "%s: PyTorch itself is off by %g in float32\n", name, own)
		}
	}
	rig.Figure("torchvision_all", float64(all), "networks")
	rig.Figure("torchvision_builders", float64(agree), "networks")
	rig.Figure("torchvision_rounded", float64(rounded), "networks")
	rig.Figure("torchvision_pytorch", float64(peer), "networks where PyTorch's float32 agrees with its float64")
	return nil
}

// zooSide is the side of the images that the zoo's networks are compared with: all of torchvision's take them.
const zooSide = 64

// singleExact is by how much the zoo's answers may differ: networks of many batch norms round more in float32.
const singleExact = 1e-4

// zooNetworks gives a network of each of the zoo's families the weights of torchvision's of the same name, and compares
// a drawn row's answer. With only, it takes all networks whose names have that text.
func zooNetworks(ctx context.Context, t *tools, only string) error {
	list, err := t.run(ctx, "torchvision_onnx.py", "--list")
	if err != nil {
		return err
	}
	all, agree := 0, 0
	for name := range strings.FieldsSeq(list) {
		e, ok := model.Find(name)
		if !ok || !strings.Contains(name, only) || only == "" && e.VariantOf != "" {
			continue
		}
		all++
		var off, own float64
		err := rig.Folder(func(folder string) error {
			said, err := t.run(ctx, "torchvision_onnx.py", name, folder, strconv.Itoa(zooSide))
			if err == nil {
				own, err = strconv.ParseFloat(strings.TrimSpace(said), 64)
			}
			if err == nil {
				off, err = withWeights(folder, &e)
			}
			return err
		})
		if err != nil {
			told(name, off, err)
			continue
		}
		fmt.Fprintf(os.Stderr, "%s is off by %.2g, PyTorch itself by %.2g in float32\n", name, off, own)
		if off <= singleExact {
			agree++
		}
	}
	rig.Figure("zoo_torchvision_all", float64(all), "networks")
	rig.Figure("zoo_torchvision_agree", float64(agree), "networks")
	return nil
}

// withWeights compares a network of the zoo, with the weights in NAME.weights of a folder, with NAME.values.
func withWeights(folder string, e *model.Entry) (off float64, err error) {
	g, err := model.Build(disdel.Network{Name: e.Name, Input: []int{3, zooSide, zooSide}, Classes: e.Classes})
	if err != nil {
		return 0, err
	}
	g.Nodes = g.Nodes[:len(g.Nodes)-1] // without the softmax: of 1,000 probabilities, all are small
	raw, err := floats(filepath.Join(folder, e.Name+".weights"))
	if err != nil {
		return 0, err
	}
	names, err := os.ReadFile(filepath.Join(folder, e.Name+".names"))
	if err != nil {
		return 0, err
	}
	theirs := map[string][]float32{}
	for line := range strings.Lines(string(names)) {
		var name string
		var n int
		if _, err := fmt.Sscan(line, &name, &n); err != nil || n > len(raw) {
			return 0, fmt.Errorf("%s.names says %q", e.Name, line)
		}
		theirs[name], raw = raw[:n], raw[n:]
	}
	var weights disdel.Weights
	for _, p := range g.Params() {
		data := theirs[p.Name]
		if len(data) != p.Len() {
			return 0, fmt.Errorf("%s has %d values in torchvision, and %d in the zoo", p.Name, len(data), p.Len())
		}
		weights = append(weights, disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: data})
	}
	if len(theirs) != len(weights) {
		return 0, fmt.Errorf("%d arrays in torchvision, and %d in the zoo", len(theirs), len(weights))
	}
	values, err := floats(filepath.Join(folder, e.Name+".values"))
	if err != nil {
		return 0, err
	}
	n := g.Input().Len()
	got, err := answers(g, weights, 1, values[:n])
	if err != nil {
		return 0, err
	}
	return farthest(got, values[n:])
}

// floats reads a file of float32.
func floats(path string) ([]float32, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := make([]float32, len(raw)/4)
	return values, binary.Read(bytes.NewReader(raw), binary.LittleEndian, values)
}

// told prints how a network came in, and tells whether it agrees.
func told(name string, off float64, err error) bool {
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %.400s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	case !(off <= exact):
		fmt.Fprintf(os.Stderr, "%s is off by %g\n", name, off)
	default:
		fmt.Fprintf(os.Stderr, "%s agrees, off by %.1g\n", name, off)
		return true
	}
	return false
}

// graphs imports a network of each of the zoo's families as disdel writes it, and ONNX's own cases of one input and one
// output.
func graphs(ctx context.Context, t *tools) error {
	read, agree, refused := 0, 0, 0
	take := func(name string, off float64, err error) {
		if errors.Is(err, errUnread) {
			refused++
			return
		}
		read++
		if told(name, off, err) {
			agree++
		}
	}
	for _, e := range model.Zoo() {
		if e.VariantOf != "" {
			continue
		}
		off, err := returned(&e)
		take(e.Name, off, err)
	}
	err := rig.Folder(func(folder string) error {
		list, err := t.run(ctx, "onnx_cases.py", folder)
		for line := range strings.Lines(list) {
			var name string
			var rows int
			if _, err := fmt.Sscan(line, &name, &rows); err != nil {
				return fmt.Errorf("onnx_cases.py says %q", line)
			}
			off, err := difference(folder, name, rows)
			take(name, off, err)
		}
		return err
	})
	rig.Figure("onnx_read", float64(read), "graphs")
	rig.Figure("onnx_agree", float64(agree), "graphs")
	rig.Figure("onnx_refused", float64(refused), "graphs")
	return err
}

// returned writes a network of the zoo as ONNX, reads that, and returns by how much the answers differ.
func returned(e *model.Entry) (float64, error) {
	g, err := model.Build(disdel.Network{Name: e.Name, Input: e.Input, Classes: e.Classes})
	if err != nil {
		return 0, err
	}
	weights := engine.InitWeights(g, disdel.Init{Seed: 1})
	var file bytes.Buffer
	if err := export.WriteONNX(&file, g, weights, nil); err != nil {
		return 0, fmt.Errorf("%w: %w", errUnread, err)
	}
	x := make([]float32, g.Input().Len())
	for i := range x {
		if x[i] = float32(math.Sin(float64(i))); g.HasTokens() {
			x[i] = float32(7 * i % 100)
		}
	}
	want, err := answers(g, weights, 1, x)
	if err != nil {
		return 0, err
	}
	in, err := export.ImportONNX(file.Bytes(), nil, export.ONNXOptions{})
	if err != nil {
		return 0, err // disdel reads what it writes
	}
	return apart(in, 1, x, want)
}

// difference imports NAME.onnx of a folder, and compares its answers with those in NAME.values.
func difference(folder, name string, rows int) (off float64, err error) {
	file, err := os.ReadFile(filepath.Join(folder, name+".onnx"))
	if err != nil {
		return 0, err
	}
	values, err := floats(filepath.Join(folder, name+".values"))
	if err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	in, err := export.ImportONNX(file, root, export.ONNXOptions{KeepOutput: true})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errUnread, err)
	}
	n := rows * model.Shape(in.Network.Input).Len()
	return apart(in, rows, values[:n], values[n:])
}

// apart is the largest difference of a network's answers from those wanted.
func apart(in export.Imported, rows int, x, want []float32) (float64, error) {
	g, err := model.Build(in.Network)
	if err != nil {
		return 0, err
	}
	got, err := answers(g, in.Weights, rows, x)
	if err != nil {
		return 0, err
	}
	return farthest(got, want)
}

// farthest is the largest difference of answers from those wanted, as a share of the largest one where that is above 1.
func farthest(got, want []float32) (float64, error) {
	if len(got) != len(want) {
		return 0, fmt.Errorf("%d answers, not %d", len(got), len(want))
	}
	off, largest := 0.0, 1.0
	for i, v := range want {
		d := math.Abs(float64(v) - float64(got[i]))
		if math.IsNaN(d) {
			return d, nil
		}
		off, largest = max(off, d), max(largest, math.Abs(float64(v)))
	}
	return off / largest, nil
}

// answers are what the native engine computes for rows.
func answers(g *model.Graph, weights disdel.Weights, rows int, x []float32) (out []float32, err error) {
	e, err := native.Backend{}.New(engine.Spec{Graph: g, BatchSize: rows, Threads: 2})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := engine.SetWeights(e, weights); err != nil {
		return nil, err
	}
	y, err := e.Predict(dataset.Dense(rows, x, nil))
	if err != nil {
		return nil, err
	}
	return append(out, y.Values...), nil
}

// run runs a program of bench/peer and returns what it prints.
func (t *tools) run(ctx context.Context, program string, arguments ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, t.python, append([]string{filepath.Join("bench", "peer", program)}, arguments...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		said := strings.TrimSpace(stderr.String())
		err = fmt.Errorf("%s %v: %w: %s", program, arguments, err, said[strings.LastIndexByte(said, '\n')+1:])
	}
	return string(out), err
}
