// Package onnxtest holds what internal/export writes against what the engine computes: files for a program that runs
// ONNX, which testdata/compare.py is. A test and bench/daily share it.
package onnxtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// Write writes a network with random weights into NAME.onnx of a folder, and rows of random samples into
// NAME.input.npy. It writes the native engine's outputs for them into NAME.output.npy.
func Write(folder, name string, g *model.Graph, rows int) (err error) {
	weights := drawn(g)
	e, err := native.Backend{}.New(engine.Spec{Graph: g, BatchSize: rows, Threads: 2})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := engine.SetWeights(e, weights); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, rows*g.Input().Len())
	for i := range x {
		if x[i] = rng.Float32()*2 - 1; g.HasTokens() {
			x[i] = float32(rng.IntN(g.Vocabulary()))
		}
	}
	y, err := e.Predict(dataset.Dense(rows, x, nil))
	if err != nil {
		return err
	}
	var file bytes.Buffer
	if err := export.WriteONNX(&file, g, weights, map[string]string{"network": name}); err != nil {
		return err
	}
	path := filepath.Join(folder, name)
	return errors.Join(os.WriteFile(path+".onnx", file.Bytes(), 0o600),
		os.WriteFile(path+".input.npy", npy(append([]int{rows}, g.Input()...), x), 0o600),
		os.WriteFile(path+".output.npy", npy(append([]int{rows}, g.Output()...), y.Values), 0o600))
}

// drawn are weights as a training begins with them, and statistics of batch norms as one might leave them.
func drawn(g *model.Graph) disdel.Weights {
	out := engine.InitWeights(g, disdel.Init{Seed: 1})
	rng := rand.New(rand.NewPCG(3, 4))
	for _, p := range g.Params() {
		if g.Nodes[p.Node].Op != model.OpBatchNorm {
			continue
		}
		for _, t := range out {
			if t.Name != p.Name {
				continue
			}
			for i := range t.Data {
				t.Data[i] += (rng.Float32() - 0.5) / 4
			}
		}
	}
	return out
}

// npy is values as NumPy writes them.
func npy(shape []int, values []float32) []byte {
	sides := make([]string, len(shape))
	for i, v := range shape {
		sides[i] = strconv.Itoa(v)
	}
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }", strings.Join(sides, ", "))
	for (10+len(head)+1)%64 != 0 {
		head += " "
	}
	head += "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	out, err := binary.Append(append(out, head...), binary.LittleEndian, values)
	if err != nil {
		panic(err) // numbers have a size
	}
	return out
}

// Compare runs the networks of a folder with onnxruntime in a Python interpreter. It returns the largest difference of
// its outputs from the engine's, by the networks' names. script is testdata/compare.py.
func Compare(ctx context.Context, python, script, folder string) (map[string]float64, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, script, folder)
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", python, script, err, &stderr)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, difference, _ := strings.Cut(strings.TrimSpace(line), " ")
		if out[name], err = strconv.ParseFloat(difference, 64); err != nil {
			return nil, fmt.Errorf("%s says %q", script, line)
		}
	}
	return out, nil
}
