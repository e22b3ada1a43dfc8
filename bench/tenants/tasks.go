package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// task is a job of a batch.
type task struct {
	name    string
	network string
	input   []int // [channels height width]
	rows    int   // to train on
	batch   int
	epochs  int
}

// held is the rows that are evaluated after every round.
const held = 64

// mixed are eight jobs of eight users, of about twelve seconds of a core each. As in the paper, most of their time is
// computing and not moving weights, and no gang is more than about a third of the pool. Their rows are divided by
// shrink.
func mixed(shrink int) []task {
	colour, grey := []int{3, 32, 32}, []int{1, 32, 32}
	list := []task{
		{"mobilenet-colour", "mobilenetv1", colour, 1600, 64, 2},
		{"mobilenet-grey", "mobilenetv1", grey, 1600, 64, 2},
		{"resnet20", "resnet20-cifar", colour, 768, 64, 3},
		{"resnet32", "resnet32-cifar", colour, 448, 64, 3},
		{"resnet34", "resnet34", colour, 800, 32, 1},
		{"resnet18", "resnet18", colour, 1344, 64, 1},
		{"lenet5", "lenet5", []int{1, 28, 28}, 18_000, 64, 5},
		{"lenet5-large", "lenet5", []int{1, 28, 28}, 24_000, 256, 4},
	}
	for i := range list {
		list[i].rows = max(2*list[i].batch, list[i].rows/shrink)
	}
	return list
}

// digits are eight small jobs, of four containers of the platform's least memory each.
func digits() (out []task) {
	for i := range 8 {
		out = append(out, task{fmt.Sprintf("small-%d", i), "digits-cnn", []int{1, 8, 8}, 1400, 64, 12})
	}
	return out
}

const digitsGang = 4 * 128 * disdel.MB

// file is the job file of a task.
func (t task) file() string {
	return fmt.Sprintf(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: %s}
model: {name: %s}
data: {source: "dataset://%s"}
training: {epochs: %d, batchSize: %d, optimizer: {adam: {learningRate: 0.001}}}
`, t.name, t.network, t.source(), t.epochs, t.batch)
}

func (t task) source() string { return fmt.Sprintf("d%dx%d-%d", t.input[0], t.input[1], t.rows) }

const classes = 10

// data is rows around ten prototypes, the same at any time.
func (t task) data() dataset.Input {
	lot := rand.New(rand.NewPCG(7, uint64(t.rows)))
	values := t.input[0] * t.input[1] * t.input[2]
	prototypes := make([]byte, classes*values)
	for i := range prototypes {
		prototypes[i] = byte(lot.Uint32())
	}
	draw := func(rows int) dataset.Samples {
		s := dataset.Samples{Shape: t.input, U8: make([]byte, rows*values), Labels: make([]int32, rows)}
		for i := range s.Labels {
			label := lot.IntN(classes)
			s.Labels[i] = int32(label)
			for j := range values {
				s.U8[i*values+j] = prototypes[label*values+j]/2 + byte(lot.Uint32()>>25)
			}
		}
		return s
	}
	test := draw(held)
	return dataset.Input{
		Name: t.source(), Title: "prototypes and noise", Classes: classes, Scale: 1.0 / 255, Train: draw(t.rows), Test: &test,
	}
}
