package actions

import (
	"fmt"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// benchRows is the rows of a benchmark's shard.
const benchRows = 2048

// benchShard is a shard of images of 8-bit values.
func benchShard(b *testing.B, shape []int, how disdel.Augment) *dataset.Shard {
	b.Helper()
	ref := disdel.DataRef{URL: "file://" + b.TempDir(), Name: "some", Augment: how}
	store, err := dataset.OpenStore(b.Context(), ref.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	in := dataset.Input{Name: ref.Name, Scale: 1.0 / 255, Train: dataset.Samples{
		Shape: shape, U8: make([]byte, benchRows*shape[0]*shape[1]*shape[2]), Labels: make([]int32, benchRows),
	}}
	for i := range in.Train.U8 {
		in.Train.U8[i] = byte(i * 7919 >> 3)
	}
	for i := range in.Train.Labels {
		in.Train.Labels[i] = int32(i % 10)
	}
	m, err := store.Add(b.Context(), in, false)
	if err != nil {
		b.Fatal(err)
	}
	ref.Checksum = m.Checksum()
	s, err := store.ReadTrain(b.Context(), ref, disdel.RowRange{End: benchRows})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkFeed says what a step on two threads takes with its batch: filled by one goroutine, by two, and by one
// beside the step before, as on devices.
func BenchmarkFeed(b *testing.B) {
	for _, c := range []struct {
		network string
		input   []int
		rows    int
		how     disdel.Augment
	}{
		{"lenet5", []int{1, 28, 28}, 64, disdel.Augment{}},
		{"lenet5", []int{1, 28, 28}, 512, disdel.Augment{}},
		{"resnet20-cifar", []int{3, 32, 32}, 128, disdel.Augment{Crop: 4, Flip: true}},
	} {
		g, err := model.Build(disdel.Network{Name: c.network, Input: c.input, Classes: 10})
		if err != nil {
			b.Fatal(err)
		}
		s := benchShard(b, c.input, c.how)
		for _, how := range []string{"one", "two", "beside"} {
			b.Run(fmt.Sprintf("%s/%d/%s", c.network, c.rows, how), func(b *testing.B) {
				e, err := native.New(engine.Spec{
					Graph: g, BatchSize: c.rows, Threads: 2, Training: true,
					Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1e-4}},
				})
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close()
				if err := e.Init(disdel.Init{Scheme: "he"}); err != nil {
					b.Fatal(err)
				}
				f := newFeed(onDevice(e), s, c.rows, map[string]int{"one": 1, "two": 2, "beside": 1}[how])
				if f.concurrent = how == "beside"; f.concurrent {
					f.next = s.NewBatch(c.rows)
				}
				order := dataset.Order(nil, 1, 1, 0, benchRows)
				f.fill = func(to *dataset.Batch, number int) {
					from := number * c.rows % benchRows
					f.filler.FillAugmented(to, order[from:from+c.rows], 1, 1)
				}
				defer f.wait()
				number := 0
				for b.Loop() {
					if _, err := e.Step(f.take(number, number+1)); err != nil {
						b.Fatal(err)
					}
					number++
				}
			})
		}
	}
}
