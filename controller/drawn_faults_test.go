package controller

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/golden"
)

// drawnStore has a data set of each kind: images, rows of two classes, numbers and several labels to predict, and
// sparse rows of classes, numbers and ratings.
func drawnStore(t *testing.T) *dataset.Store {
	t.Helper()
	store := digitsStore(t)
	addTargets(t, store, dataset.DenseInput{Name: "twos", Classes: 2, ClassNames: []string{"no", "yes"}},
		func(i int) dataset.DenseRow {
			return dataset.DenseRow{Values: []float32{float32(i), 1}, Label: int32(i % 2)}
		})
	addTargets(t, store, dataset.DenseInput{
		Name: "homes", Classes: 1, Targets: []disdel.Target{{Name: "price", Mean: 10, Deviation: 2, Low: 1, High: 40}},
	}, func(i int) dataset.DenseRow {
		return dataset.DenseRow{Values: []float32{float32(i), 1}, Targets: []float32{float32(i)}}
	})
	label := func(name string) disdel.Target { return disdel.Target{Name: name, Deviation: 1, High: 1, Label: true} }
	addTargets(t, store, dataset.DenseInput{
		Name: "films", Classes: 2, Targets: []disdel.Target{label("funny"), label("sad")},
	}, func(i int) dataset.DenseRow {
		v := float32(i % 2)
		return dataset.DenseRow{Values: []float32{v, float32(i)}, Targets: []float32{v, 1 - v}}
	})
	for _, in := range []dataset.SparseInput{
		{Name: "clicks", Columns: 4, Classes: 2, Ones: true},
		{Name: "prices", Columns: 4, Classes: 1, Ones: true},
		{Name: "ratings", Columns: 4, Classes: 1, Users: 2, Items: 2, Ones: true},
	} {
		in.Each = func(yield func(dataset.SparseRow) error) error {
			for i := range 40 {
				row := dataset.SparseRow{Target: float32(i % 2), Index: []int32{int32(i % 2), 2 + int32(i/2%2)}}
				if in.Classes == 1 {
					row.Target = float32(i % 4)
				}
				if err := yield(row); err != nil {
					return err
				}
			}
			return nil
		}
		if _, err := store.AddSparse(t.Context(), in, false); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// drawnModel draws a network or a model of sparse rows, and says which.
func drawnModel(draw *rand.Rand, source string) (m disdel.Model, text string) {
	sparse := source == "clicks" || source == "prices" || source == "ratings"
	if sparse != (draw.IntN(8) == 0) {
		m.Name, m.Rank = of(draw, "logistic", "linear", "pmf"), 2
		return m, m.Name
	}
	switch draw.IntN(8) {
	case 0:
		m.Name = of(draw, "digits-cnn", "digits-cn", "lenet5")
		return m, m.Name
	case 1:
		m.Custom = "net"
		if d := of(draw, "", "net", "other"); d != "" {
			m.Description = &disdel.CustomNetwork{Name: d, Input: []int{1, 1, 2}, Classes: 2}
		}
		return m, fmt.Sprintf("custom, described %t", m.Description != nil)
	}
	right := map[string]int{"digits": 10, "twos": 2, "homes": 1, "films": 2}[source]
	head := disdel.Layer{Kind: "dense", Units: of(draw, right, right, right, 1, 3), Activation: of(draw,
		"", "", "softmax", "sigmoid", "relu")}
	m.Layers = []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: 4, Activation: "relu"}, head}
	m.Init.ReplaceHead = draw.IntN(5) == 0
	return m, fmt.Sprintf("dense %d %s, new head %t", head.Units, head.Activation, m.Init.ReplaceHead)
}

// drawnJob draws a job on one of the data sets of drawnStore, and says what it is.
func drawnJob(draw *rand.Rand) (job disdel.Job, text string) {
	source := of(draw, "digits", "twos", "homes", "films", "clicks", "prices", "ratings", "twoz")
	job.Data.Source, job.Data.Split.Seed = "dataset://"+source, 1
	job.Model, text = drawnModel(draw, source)
	d, t := &job.Data, &job.Training
	d.Split.Validation = of(draw, 0.2, 0.2, 0)
	d.Split.Train = 1 - d.Split.Validation
	job.Distribution.Workers = of(draw, 0, 1, 2, 2, 32, 33)
	t.BatchSize = of(draw, 1, 1, 16, 17, 32, 33)
	t.Loss = of(draw, disdel.LossCrossEntropy, disdel.LossCrossEntropy, disdel.LossBinaryCrossEntropy, disdel.LossMSE,
		disdel.LossMAE, disdel.LossLogistic, disdel.LossSquared)
	text = fmt.Sprintf("%s, held out %g, %d workers, batch %d, %s: %s", source, d.Split.Validation,
		job.Distribution.Workers, t.BatchSize, t.Loss, text)
	metric := of(draw, disdel.MetricLoss, disdel.MetricAccuracy, disdel.MetricTop5, disdel.MetricF1, disdel.MetricRMSE,
		disdel.MetricMAE, disdel.MetricPerplexity, disdel.MetricR2)
	switch draw.IntN(8) {
	case 0:
		t.EarlyStop = &disdel.EarlyStop{Metric: metric, Target: new(of(draw, 0.1, 0.69, 0.7, 1.2, 2))}
		text += fmt.Sprintf(", stops by %s %g", metric, *t.EarlyStop.Target)
	case 1:
		t.Goal = of(draw, &disdel.Goal{Accuracy: 0.9}, &disdel.Goal{Loss: of(draw, 0.6, 0.7, 2)}, &disdel.Goal{Top5: 0.9},
			&disdel.Goal{RMSE: of(draw, 1.0, 1.2)}, &disdel.Goal{F1: 0.5}, &disdel.Goal{Perplexity: 3})
		text += fmt.Sprintf(", goal %v", t.Goal)
	case 2:
		d.Keep = disdel.KeepDisk
		text += ", on disk"
	case 3:
		d.Resize = of(draw, 8, 16)
		text += fmt.Sprintf(", resized to %d", d.Resize)
	case 4:
		d.Augment = of(draw, disdel.Augment{Crop: 1}, disdel.Augment{Crop: 20}, disdel.Augment{Flip: true})
		text += fmt.Sprintf(", augmented %+v", d.Augment)
	case 5:
		t.Backend = of(draw, disdel.BackendNative, disdel.BackendCUDA, disdel.BackendGorgonia)
		t.LabelSmoothing = of(draw, 0, 0.1)
		text += fmt.Sprintf(", by %s, smoothing %g", t.Backend, t.LabelSmoothing)
	case 6:
		t.ClassWeights = disdel.BalancedWeights
		text += ", balanced"
	}
	return job, text
}

// Of 400 drawn jobs on data sets of all kinds, each has the faults, notes and outputs that it had in earlier versions.
func TestDrawnJobsHaveTheSameFaults(t *testing.T) {
	const file = "testdata/drawn-faults.txt"
	draw, store := rand.New(rand.NewPCG(3, 20261129)), drawnStore(t)
	var lines []string
	for n := range 400 {
		job, text := drawnJob(draw)
		lines = append(lines, fmt.Sprintf("%d %s", n, text))
		r, err := Resolve(t.Context(), job, store, "job.yaml", func(string) (int, int) { return 0, 0 }, nil)
		var faults *disdel.Faults
		switch {
		case errors.As(err, &faults):
			for _, f := range faults.Faults {
				lines = append(lines, fmt.Sprintf("  %s: %s; %s", f.Path, f.Msg, f.Hint))
			}
		case err != nil:
			lines = append(lines, "  error: "+err.Error())
		default:
			text := fmt.Sprintf("  fits, loss %s", r.Job.Training.Loss)
			if r.Graph != nil {
				text += fmt.Sprintf(", %d outputs", r.Graph.Output().Len())
			}
			if x := r.Job.Model.Init.Except; x != "" {
				text += ", draws " + x
			}
			lines = append(lines, text)
		}
		for _, note := range r.Notes {
			lines = append(lines, "  note: "+note)
		}
	}
	got := strings.Join(lines, "\n") + "\n"
	golden.Same(t, file, got, *update)
}
