package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/internal/test/onnxtest"
	"github.com/disdel/disdel/model"
)

// exact is by how much outputs may differ.
const exact = 1e-5

// exports holds a network of each family of the zoo, at its own size, against what onnxruntime makes of its export.
func exports(ctx context.Context, t *tools) error {
	mismatches, worst := 0, 0.0
	for _, e := range model.Zoo() {
		if e.VariantOf != "" {
			continue
		}
		off, err := export(ctx, t, &e)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if worst = max(worst, off); !(off <= exact) {
			mismatches++
			fmt.Fprintf(os.Stderr, "%s is off by %g\n", e.Name, off)
		}
	}
	rig.Figure("onnx_mismatch", float64(mismatches), "networks")
	rig.Figure("onnx_worst", worst, "of a probability")
	return nil
}

func export(ctx context.Context, t *tools, e *model.Entry) (off float64, err error) {
	folder, err := os.MkdirTemp("", "bench-daily-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	g, err := model.Build(disdel.Network{Name: e.Name, Input: e.Input, Classes: e.Classes})
	if err != nil {
		return 0, err
	}
	if err := onnxtest.Write(folder, e.Name, g, 2); err != nil {
		return 0, err
	}
	all, err := onnxtest.Compare(ctx, t.python, "internal/export/testdata/compare.py", folder)
	return all[e.Name], err
}
