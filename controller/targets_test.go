package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
)

// addTargets adds a data set of 40 rows of two values.
func addTargets(t *testing.T, store *dataset.Store, in dataset.DenseInput, row func(i int) dataset.DenseRow) {
	t.Helper()
	in.Shape = []int{1, 1, 2}
	in.Each = func(yield func(dataset.DenseRow) error) error {
		for i := range 40 {
			if err := yield(row(i)); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := store.AddDense(t.Context(), in, false); err != nil {
		t.Fatal(err)
	}
}

// A job on several labels needs a probability for each: it ends in sigmoid, and its loss is binary cross-entropy, also
// where the job file names none. Its figure is F1.
func TestJobsOnSeveralLabels(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	label := func(name string) disdel.Target {
		return disdel.Target{Name: name, Deviation: 1, High: 1, Label: true}
	}
	addTargets(t, store, dataset.DenseInput{
		Name: "films", Classes: 2, Targets: []disdel.Target{label("funny"), label("sad")},
	}, func(i int) dataset.DenseRow {
		v := float32(i % 2)
		return dataset.DenseRow{Values: []float32{v, float32(i)}, Targets: []float32{v, 1 - v}}
	})
	for name, c := range map[string]struct {
		change func(*disdel.Job)
		want   string // what the fault says; "": there is none
	}{
		"as it should be": {func(*disdel.Job) {}, ""},
		"F1": {
			func(j *disdel.Job) {
				j.Training.EarlyStop = &disdel.EarlyStop{Metric: disdel.MetricF1, Target: new(0.9)}
			}, "",
		},
		"accuracy":      {func(j *disdel.Job) { j.Training.Goal = &disdel.Goal{Accuracy: 0.9} }, ""},
		"no activation": {func(j *disdel.Job) { j.Model.Layers[1].Activation = "" }, "a probability of its own"},
		"softmax":       {func(j *disdel.Job) { j.Model.Layers[1].Activation = "softmax" }, "the network ends in softmax"},
		"three outputs": {
			func(j *disdel.Job) { j.Model.Layers[1].Units = 3 }, "3 outputs, and films has 2 labels to predict: funny, sad",
		},
		"mse":           {func(j *disdel.Job) { j.Training.Loss = disdel.LossMSE }, "mse is no loss of several labels"},
		"class weights": {func(j *disdel.Job) { j.Training.ClassWeights = disdel.BalancedWeights }, "no classes to weigh"},
		"smoothing":     {func(j *disdel.Job) { j.Training.LabelSmoothing = 0.1 }, "several labels are not smoothed"},
		"other backend": {func(j *disdel.Job) { j.Training.Backend = disdel.BackendGorgonia }, "native backend"},
		"RMSE": {
			func(j *disdel.Job) { j.Training.Goal = &disdel.Goal{RMSE: 1} }, "evaluations on films have no rmse",
		},
		"top 5": {
			func(j *disdel.Job) {
				j.Training.EarlyStop = &disdel.EarlyStop{Metric: disdel.MetricTop5, Target: new(0.9)}
			},
			"top5 is for rows of one of more than 5 classes",
		},
		"goal of top 5": {
			func(j *disdel.Job) { j.Training.Goal = &disdel.Goal{Top5: 0.9} }, "top5 is for rows of one of more than 5 classes",
		},
		"goal of perplexity": {
			func(j *disdel.Job) { j.Training.Goal = &disdel.Goal{Perplexity: 9} }, "have no perplexity",
		},
	} {
		job := disdel.Job{}
		job.Data = disdel.Data{Source: "dataset://films", Split: disdel.Split{Train: 0.8, Validation: 0.2}}
		job.Training.BatchSize, job.Training.Loss = 4, disdel.LossCrossEntropy
		job.Model.Layers = []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: 2, Activation: "sigmoid"}}
		c.change(&job)
		r, err := Resolve(ctx, job, store, "job.yaml", func(string) (int, int) { return 0, 1 }, nil)
		var faults *disdel.Faults
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == "":
			if r.Job.Training.Loss != disdel.LossBinaryCrossEntropy || !r.Network.MultiLabel() || r.Network.Numbers() ||
				r.Data.Metric(r.Job.Training.Loss).Name != disdel.MetricF1 {
				t.Errorf("%s: loss %s, targets %v", name, r.Job.Training.Loss, r.Network.Targets)
			}
		case !errors.As(err, &faults) || len(faults.Faults) != 1 || !strings.Contains(faults.Faults[0].Msg, c.want):
			t.Errorf("%s: %v, want a fault that says %q", name, err, c.want)
		}
	}
}

// The loss is the usual one of the data set where the job file has none. The place of a field that the file does not
// have is that of the object around it.
func TestTheDefaultLossIsThatOfTheData(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	for name, c := range map[string]struct {
		target     disdel.Target
		activation string
		want       string
	}{
		"price": {disdel.Target{Name: "price", Mean: 3, Deviation: 2}, "", disdel.LossMSE},
		"funny": {
			disdel.Target{Name: "funny", Deviation: 1, High: 1, Label: true}, "sigmoid", disdel.LossBinaryCrossEntropy,
		},
	} {
		addTargets(t, store, dataset.DenseInput{Name: name, Classes: 1, Targets: []disdel.Target{c.target}},
			func(i int) dataset.DenseRow {
				return dataset.DenseRow{Values: []float32{float32(i), 1}, Targets: []float32{float32(i % 2)}}
			})
		for _, given := range []bool{false, true} {
			job := disdel.Job{}
			job.Data = disdel.Data{Source: "dataset://" + name, Split: disdel.Split{Train: 0.8, Validation: 0.2}}
			job.Training.BatchSize, job.Training.Loss = 4, disdel.LossCrossEntropy
			job.Model.Layers = []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: 1, Activation: c.activation}}
			r, err := Resolve(ctx, job, store, "job.yaml", func(path string) (line, column int) {
				if given && path == "training.loss" {
					return 8, 9
				}
				return 7, 1
			}, nil)
			if !given && (err != nil || r.Job.Training.Loss != c.want) {
				t.Errorf("%s: loss %s, %v", name, r.Job.Training.Loss, err)
			}
			if given && !strings.Contains(fmt.Sprint(err), "crossEntropy") {
				t.Errorf("%s: %v, want a fault that names crossEntropy", name, err)
			}
		}
	}
}

// A job on numbers to predict needs an output for each and a loss of numbers. Its metrics are those of numbers.
func TestJobsOnTargets(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	addTargets(t, store, dataset.DenseInput{
		Name: "homes", Classes: 1, Targets: []disdel.Target{{Name: "price", Mean: 3, Deviation: 2}},
	}, func(i int) dataset.DenseRow {
		return dataset.DenseRow{Values: []float32{float32(i), 1}, Targets: []float32{float32(i)}}
	})
	for name, c := range map[string]struct {
		change func(*disdel.Job)
		want   string // what the fault says; "": there is none
	}{
		"as it should be": {func(*disdel.Job) {}, ""},
		"huber":           {func(j *disdel.Job) { j.Training.Loss = disdel.LossHuber }, ""},
		"two outputs": {
			func(j *disdel.Job) { j.Model.Layers[1].Units = 2 }, "2 outputs, and homes has 1 number to predict: price",
		},
		"softmax": {func(j *disdel.Job) { j.Model.Layers[1].Activation = "softmax" }, "ends in softmax"},
		"binary": {
			func(j *disdel.Job) { j.Training.Loss = disdel.LossBinaryCrossEntropy }, "price of homes is a number to predict",
		},
		"cross-entropy in the file": {
			func(j *disdel.Job) { j.Training.Loss, j.Metadata.Name = disdel.LossCrossEntropy, "given" },
			"crossEntropy tells classes apart",
		},
		"other backend": {func(j *disdel.Job) { j.Training.Backend = disdel.BackendGorgonia }, "native backend"},
		"accuracy": {
			func(j *disdel.Job) {
				j.Training.EarlyStop = &disdel.EarlyStop{Metric: disdel.MetricAccuracy, Target: new(0.9)}
			},
			"numbers have no accuracy",
		},
		"R2": {func(j *disdel.Job) {
			j.Training.EarlyStop = &disdel.EarlyStop{Metric: disdel.MetricR2, Target: new(0.9)}
		}, ""},
		"RMSE of classes": {
			func(j *disdel.Job) {
				j.Data.Source, j.Model.Layers[1].Units = "dataset://digits", 10
				j.Training.Goal = &disdel.Goal{RMSE: 1}
			}, "evaluations on digits have no rmse",
		},
		"mae of classes": {
			func(j *disdel.Job) {
				j.Data.Source, j.Model.Layers[1].Units, j.Training.Loss = "dataset://digits", 10, disdel.LossMAE
			}, "mae learns numbers",
		},
	} {
		job := disdel.Job{}
		job.Data = disdel.Data{Source: "dataset://homes", Split: disdel.Split{Train: 0.8, Validation: 0.2}}
		job.Training.BatchSize, job.Training.Loss = 4, disdel.LossCrossEntropy
		job.Model.Layers = []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: 1}}
		c.change(&job)
		line := 0
		if job.Metadata.Name == "given" {
			line = 7
		}
		r, err := Resolve(ctx, job, store, "job.yaml", func(path string) (int, int) {
			if path == "training.loss" {
				return line, 1
			}
			return 0, 1
		}, nil)
		var faults *disdel.Faults
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == "":
			if r.Job.Training.Loss == disdel.LossCrossEntropy || len(r.Network.Targets) != 1 {
				t.Errorf("%s: loss %s, targets %v", name, r.Job.Training.Loss, r.Network.Targets)
			}
		case !errors.As(err, &faults) || len(faults.Faults) != 1 || !strings.Contains(faults.Faults[0].Msg, c.want):
			t.Errorf("%s: %v, want a fault that says %q", name, err, c.want)
		}
	}
}

// Classes are learnt with crossEntropy, and answers are probabilities: a network without softmax gets one, and the
// record of its layers says so. The job's own layers stay as they were written.
func TestClassifiersEndInSoftmax(t *testing.T) {
	store := digitsStore(t)
	for name, c := range map[string]struct {
		layers []disdel.Layer
		loss   string
		want   bool // a softmax is appended
	}{
		"outputs":      {[]disdel.Layer{{Kind: "dense", Units: 10}}, disdel.LossCrossEntropy, true},
		"relu":         {[]disdel.Layer{{Kind: "dense", Units: 10, Activation: "relu"}}, disdel.LossCrossEntropy, true},
		"activation":   {[]disdel.Layer{{Kind: "dense", Units: 10, Activation: "softmax"}}, disdel.LossCrossEntropy, false},
		"layer":        {[]disdel.Layer{{Kind: "dense", Units: 10}, {Kind: "softmax"}}, disdel.LossCrossEntropy, false},
		"squared loss": {[]disdel.Layer{{Kind: "dense", Units: 10}}, disdel.LossMSE, false},
	} {
		job := disdel.Job{}
		job.Data = disdel.Data{Source: "dataset://digits", Split: disdel.Split{Train: 0.8, Validation: 0.2}}
		job.Training.BatchSize, job.Training.Loss = 4, c.loss
		job.Model.Layers = append([]disdel.Layer{{Kind: "flatten"}}, c.layers...)
		r, err := Resolve(t.Context(), job, store, "job.yaml", func(string) (int, int) { return 0, 1 }, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ends := r.Graph.Nodes[len(r.Graph.Nodes)-1].Op == model.OpSoftmax
		if appended := len(r.Network.Layers) > len(job.Model.Layers); appended != c.want || appended != (len(r.Notes) > 0) {
			t.Errorf("%s: %d layers of %d, notes %v", name, len(r.Network.Layers), len(job.Model.Layers), r.Notes)
		} else if c.want && !ends || len(r.Job.Model.Layers) != len(job.Model.Layers) {
			t.Errorf("%s: ends in softmax: %v; the job has %d layers", name, ends, len(r.Job.Model.Layers))
		}
	}
}

// A language model has one loss; another one and label smoothing are refused, each on its own.
func TestLossesOfALanguageModel(t *testing.T) {
	for name, c := range map[string]struct {
		loss      string
		smoothing float64
		refused   bool
	}{
		"crossEntropy": {disdel.LossCrossEntropy, 0, false}, "mse": {disdel.LossMSE, 0, true},
		"smoothing": {disdel.LossCrossEntropy, 0.1, true},
	} {
		r := resolver{locate: func(string) (int, int) { return 0, 0 }, found: true}
		r.Resolved.Data = disdel.DataInfo{Name: "texts", Classes: 8, Train: 40, HeldOut: 8, NextToken: true}
		r.Graph, r.Job.Training.BatchSize = &model.Graph{}, 4
		r.Job.Training.Loss, r.Job.Training.LabelSmoothing = c.loss, c.smoothing
		r.fit()
		if got := len(r.faults) == 1 && r.faults[0].Path == "training.loss"; got != c.refused || len(r.faults) > 1 {
			t.Errorf("%s: %v, want refused: %v", name, r.faults, c.refused)
		}
	}
}

// listed is a store without the data set that is asked for.
type listed struct {
	Datasets
	names []string
}

func (listed) Manifest(context.Context, string) (dataset.Manifest, error) {
	return dataset.Manifest{}, &disdel.Error{Kind: disdel.NotFound, Hint: "add it first"}
}

func (l listed) List(context.Context) (out []dataset.Manifest, err error) {
	for _, name := range l.names {
		out = append(out, dataset.Manifest{Name: name})
	}
	return out, nil
}

// A data set that is not there is told with the one that was probably meant, or else with how to add it.
func TestAMissingDataSetIsToldWithTheNearest(t *testing.T) {
	for want, names := range map[string][]string{
		`did you mean "digits"?`: {"iris", "digits"}, "add it first": {"iris"},
	} {
		r := resolver{locate: func(string) (int, int) { return 0, 0 }}
		r.Job.Data.Source = "dataset://digts"
		if err := r.data(t.Context(), listed{names: names}); err != nil || len(r.faults) != 1 || r.faults[0].Hint != want {
			t.Errorf("among %q: %+v, %v; want the hint %s", names, r.faults, err, want)
		}
	}
}

// A program that nobody has described is a fault of a job whose data set is there and that has no other fault.
func TestAnUndescribedProgramIsToldAlone(t *testing.T) {
	for _, c := range []struct {
		found bool
		other int
		want  int
	}{{true, 0, 1}, {false, 0, 0}, {true, 1, 1}, {false, 1, 1}} {
		r := resolver{locate: func(string) (int, int) { return 0, 0 }, found: c.found}
		for range c.other {
			r.fault("training.epochs", "", "none are given")
		}
		if r.python(&disdel.Python{}) || len(r.faults) != c.want {
			t.Errorf("%+v: %v", c, r.faults)
		}
	}
}

// One check names all faults of a language model: its outputs, its vocabulary, each layer that reads later tokens, and
// its loss.
func TestAllFaultsOfALanguageModelAreNamedAtOnce(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	addTargets(t, store, dataset.DenseInput{Name: "texts", Classes: 9, LabelClasses: true, NextToken: true},
		func(i int) dataset.DenseRow { return dataset.DenseRow{Values: []float32{float32(i % 9), 1}} })
	job := disdel.Job{}
	job.Data = disdel.Data{Source: "dataset://texts", Split: disdel.Split{Train: 0.8, Validation: 0.2}}
	job.Training.BatchSize, job.Training.Loss = 4, disdel.LossMAE
	job.Model.Layers = []disdel.Layer{
		{Kind: "embedding", Vocabulary: 7, Width: 4},
		{Kind: "transformer", Heads: 2},
		{Kind: "transformer", Heads: 2},
		{Kind: "dense", Units: 8},
	}
	_, err := Resolve(ctx, job, store, "job.yaml", func(string) (int, int) { return 0, 1 }, nil)
	var faults *disdel.Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range faults.Faults {
		all.WriteString(f.Msg + "\n")
	}
	for _, want := range []string{
		"layer 3: the output is [8 2]", "layer 0: it knows 7 tokens, and the data has 9", "write causal: true",
		"layer 1.attention", "2.attention", "a language model is trained with crossEntropy",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no fault says %q:\n%s", want, all.String())
		}
	}
}
