package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/service"
)

// vggJob trains VGG-16 for 20 steps, with all of its weights. Its images have 32 pixels a side, not 224: the network
// brings them to 7 x 7 pixels before its dense layers. So only its convolutions compute less.
const vggJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: vgg}
model: {name: vgg16}
data: {source: dataset://drawn, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 1, batchSize: 16, optimizer: {adam: {learningRate: 0.00001}}}
distribution: {workers: 1}
resources: {maxMemory: 512MB}
`

// vgg trains VGG-16 in actions of at most 512 MB, in containers that are killed above their limits.
func vgg(program string) error {
	const rows = 400
	home, err := os.MkdirTemp("", "bench-vgg-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home) //nolint:errcheck // a folder for temporary files
	ctx := context.Background()
	s, err := service.Open(ctx, service.Config{
		Program: program, Home: home, ActionTimeout: 30 * time.Minute,
	})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // the figures are printed
	if err := drawnImages(ctx, s, rows); err != nil {
		return err
	}
	file, err := jobfile.Parse("vgg.yaml", []byte(vggJob), nil)
	if err != nil {
		return err
	}
	run, err := s.Submit(ctx, service.Request{Job: file.Job})
	if err != nil {
		return err
	}
	rec, err := run.Wait(ctx)
	if err == nil && rec.Status != disdel.StatusSucceeded {
		err = fmt.Errorf("the job %v: %w", rec.Status, rec.Failure)
	}
	if err != nil {
		return err
	}
	fmt.Printf("VGG-16 trains by %s\n", rec.Plan.SavedBy())
	kills, peaks := 0, map[disdel.Task]disdel.Bytes{}
	for _, a := range rec.Activations {
		if a.Outcome == disdel.OutcomeOutOfMemory {
			kills++
		}
		peaks[a.Task] = max(peaks[a.Task], a.Peak)
		fmt.Printf("%v %d: peak %v of %v\n", a.Task, a.Member, a.Peak, a.Limits.Memory)
	}
	rig.Figure("vgg16_512_steps", rows*4/5/16, "steps of 16 rows")
	rig.Figure("vgg16_512_kills", float64(kills), "actions that were killed for memory")
	for _, of := range []struct {
		task disdel.Task
		name string
	}{
		{disdel.TaskTrain, "train"}, {disdel.TaskAggregate, "aggregate"}, {disdel.TaskEvaluate, "evaluate"},
	} {
		rig.Figure("vgg16_512_"+of.name+"_mb", float64(peaks[of.task])/float64(disdel.MB),
			"MB, the largest peak of these actions")
	}
	rig.Figure("vgg16_512_s", rec.Ended.Sub(rec.Created).Seconds(), "s, the whole job")
	return nil
}

// drawnImages adds the data set drawn: images of 32 x 32 pixels of ten classes.
func drawnImages(ctx context.Context, s *service.Service, rows int) error {
	sets, err := s.Datasets(ctx)
	if err != nil {
		return err
	}
	in := dataset.DenseInput{Name: "drawn", Shape: []int{3, 32, 32}, Classes: 10, Bytes: true}
	in.Each = func(yield func(dataset.DenseRow) error) error {
		draw := rand.New(rand.NewPCG(1, 2))
		var errs error
		for i := range rows {
			row := dataset.DenseRow{Label: int32(i % 10), Bytes: make([]byte, 3*32*32)}
			for k := range row.Bytes {
				row.Bytes[k] = byte(draw.UintN(256))
			}
			errs = errors.Join(errs, yield(row))
		}
		return errs
	}
	_, err = sets.AddDense(ctx, in, false)
	return err
}
