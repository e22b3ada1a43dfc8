package service

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/platform"
)

// tight is a Service whose containers have the limits of the plan, without a least one that would give them more.
func tight(t *testing.T) *Service {
	t.Helper()
	s, err := Open(t.Context(), Config{
		Program: testProgram, Home: t.TempDir(),
		Tune: func(c *platform.Config) { c.Limits.Memory.Min, c.Limits.Memory.Default = 16*disdel.MB, 32*disdel.MB },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// denseLayers is a job of dense layers with so many values each, whose weights are most of its memory.
func denseLayers(t *testing.T, layers, units int, sets ...string) disdel.Job {
	t.Helper()
	job := small(t, append([]string{
		"distribution.workers=1", "training.epochs=1", "training.batchSize=64",
		"data.split={train: 0.1, validation: 0.9, seed: 1}",
		"training.optimizer={sgd: {learningRate: 0.01}}",
	}, sets...)...)
	job.Model = disdel.Model{Layers: []disdel.Layer{{Kind: "flatten"}}}
	for range layers {
		job.Model.Layers = append(job.Model.Layers, disdel.Layer{Kind: "dense", Units: units, Activation: "relu"})
	}
	job.Model.Layers = append(job.Model.Layers, disdel.Layer{Kind: "dense", Units: 10, Activation: "softmax"})
	return job
}

// trained waits until a job has succeeded, and checks that no action was killed for memory.
func trained(t *testing.T, s *Service, job disdel.Job) disdel.Record {
	t.Helper()
	rec, err := submit(t, s, job).Wait(t.Context())
	if err != nil || rec.Status != disdel.StatusSucceeded {
		t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
	}
	for _, a := range rec.Activations {
		if a.Outcome == disdel.OutcomeOutOfMemory || a.Peak > a.Limits.Memory {
			t.Errorf("%v %d took %v of %v: %v", a.Task, a.Member, a.Peak, a.Limits.Memory, a.Outcome)
		}
	}
	return rec
}

// A limit below every plan is refused before anything starts. The refusal names the least limit that would do, no
// smaller one does, and the job trains with it. Its evaluation computes one part of the network after the other and
// keeps exactly the limit that was estimated.
func TestTheLeastLimitThatIsNamedTrains(t *testing.T) {
	race.SkipMemory(t)
	s := tight(t)
	job := denseLayers(t, 8, 800)
	job.Resources.MaxMemory = 20 * disdel.MB
	_, err := s.Submit(t.Context(), Request{Job: job})
	named := regexp.MustCompile(`([0-9]+) MB by [0-9] stages`).FindStringSubmatch(disdel.AsError(err).Hint)
	if !errors.Is(err, disdel.OverLimit) || named == nil {
		t.Fatalf("a limit of 20 MB: %v", err)
	}
	least, err := strconv.Atoi(named[1])
	if err != nil {
		t.Fatal(err)
	}
	job.Resources.MaxMemory = disdel.Bytes(least-1) * disdel.MB
	if _, err := s.Submit(t.Context(), Request{Job: job}); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("a limit of %v: %v", job.Resources.MaxMemory, err)
	}
	job.Resources.MaxMemory = disdel.Bytes(least) * disdel.MB
	rec := trained(t, s, job)
	evaluate, _ := rec.Plan.Action(disdel.TaskEvaluate)
	if e := evaluate.Estimate; !e.ByLayers || evaluate.Limits.Memory >= e.Total+disdel.MB {
		t.Errorf("evaluated by layers: %v; estimated %v, limit %v", e.ByLayers, e.Total, evaluate.Limits.Memory)
	}
}

// A network with several outputs comes to the same weights in stages as in one action.
func TestSeveralOutputsTrainInStages(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir())
	var rows strings.Builder
	rows.WriteString("a,b,c,price,rent\n")
	for i := range 300 {
		fmt.Fprintf(&rows, "%d,%d,%d,%d,%d\n", i%17, i%5, i%7, i%17*3+i%5, i%7*2)
	}
	in, err := dense.CSV{
		Source: dataset.TextSource("homes.csv", rows.String()), Targets: []string{"price", "rent"},
	}.Input("homes")
	if err != nil {
		t.Fatal(err)
	}
	sets, err := s.Datasets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sets.AddDense(t.Context(), in, false); err != nil {
		t.Fatal(err)
	}
	var rounds [2][]float64
	for i := range rounds {
		job := small(t, "data.source=dataset://homes", "distribution.workers=1", fmt.Sprintf("distribution.stages=%d", i+1),
			"training.microBatch=16", "training.loss=mse", fmt.Sprintf("metadata.name=homes%d", i))
		job.Model = disdel.Model{Layers: []disdel.Layer{
			{Kind: "flatten"},
			{Kind: "dense", Units: 24, Activation: "relu"},
			{Kind: "dense", Units: 12, Activation: "relu"},
			{Kind: "dense", Units: 2},
		}}
		rec := trained(t, s, job)
		if n := len(rec.Plan.Stages); n != 2*i {
			t.Errorf("%d stages", n)
		}
		for _, r := range rec.Rounds {
			rounds[i] = append(rounds[i], r.TrainLoss, *r.Loss, r.RMSE, r.MAE)
		}
	}
	if len(rounds[0]) != 8 || !slices.Equal(rounds[0], rounds[1]) {
		t.Errorf("one action comes to %v, two stages to %v", rounds[0], rounds[1])
	}
}
