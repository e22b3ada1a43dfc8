package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// What a curve is of: the digits that disdel brings, in batches, for some epochs.
const (
	curveBatch  = 32
	curveEpochs = 6
	curveApart  = 0.05 // of the last epochs' mean losses
)

// curves trains a network on real images on both engines, and holds the curves of their losses against each other: what
// is apart a little at each step has to come to the same.
func curves(out io.Writer, b [2]engine.Backend) error {
	fmt.Fprintf(out, "\n## Mean losses of %d epochs of the digits, batch %d: processor, GPU\n\n", curveEpochs, curveBatch)
	shard, err := digits()
	if err != nil {
		return err
	}
	g, err := model.Build(disdel.Network{Name: "digits-cnn", Input: []int{1, 8, 8}, Classes: 10})
	if err != nil {
		return err
	}
	s := engine.Spec{
		Graph: g, BatchSize: curveBatch, Training: true, Threads: runtime.NumCPU(), Seed: 1,
		Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.002}},
	}
	var all [2][]float64
	for i, backend := range b {
		if all[i], err = curve(backend, s, shard); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "- %.4f\n- %.4f\n", all[0], all[1])
	want, got := all[0][curveEpochs-1], all[1][curveEpochs-1]
	if !(math.Abs(got-want) <= curveApart*(1+want)) || got > all[1][0]/2 {
		return &disdel.Error{Kind: disdel.Internal, Op: "check", Msg: "the curves are apart, or nothing is learned"}
	}
	return nil
}

// digits are the training rows of the data set that disdel brings.
func digits() (*dataset.Shard, error) {
	folder, err := os.MkdirTemp("", "digits")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is in the system's temporary folder
	ctx := context.Background()
	store, err := dataset.OpenStore(ctx, "file://"+folder)
	if err != nil {
		return nil, err
	}
	defer store.Close() //nolint:errcheck // it is only read
	in, err := dataset.Digits()
	if err != nil {
		return nil, err
	}
	m, err := store.Add(ctx, in, false)
	if err != nil {
		return nil, err
	}
	ref := disdel.DataRef{
		URL: "file://" + folder, Name: "digits", Checksum: m.Checksum(),
		Split: disdel.Split{Train: 0.8, Validation: 0.2, Seed: 1},
	}
	return store.ReadTrain(ctx, ref, disdel.RowRange{End: m.Info(ref.Split).Train})
}

// curve is the mean losses of an engine's epochs.
func curve(b engine.Backend, s engine.Spec, shard *dataset.Shard) (out []float64, err error) {
	e, err := b.New(s)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := e.Close(); err == nil {
			err = closed
		}
	}()
	if err := e.Init(disdel.Init{Seed: 1}); err != nil {
		return nil, err
	}
	batch, order := shard.NewBatch(curveBatch), []int32(nil)
	for epoch := range curveEpochs {
		order = dataset.Order(order, 1, epoch, 0, shard.Len())
		sum, rows := 0.0, 0
		for from := 0; from < shard.Len(); from += curveBatch {
			shard.Fill(&batch, order[from:min(from+curveBatch, shard.Len())])
			m, err := e.Step(batch)
			if err != nil {
				return nil, err
			}
			sum, rows = sum+m.Loss*float64(m.Rows), rows+m.Rows
		}
		out = append(out, sum/float64(rows))
	}
	return out, nil
}
