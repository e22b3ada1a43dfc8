package program

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// comparedSteps are the steps that both engines take if disdel's engine may train the job. Else it is as many as fit a
// second.
const comparedSteps = 20

// mostRows bounds the batch of these steps.
const mostRows = 16

// Files of the program's side of a comparison.
const (
	stepsFile   = "steps.safetensors"
	weightsFile = "weights.safetensors"
)

// translate is what disdel.describe is asked about a translation; nil if nobody wants to know.
func (d *description) translate() map[string]any {
	if d.Batch < 1 {
		return nil
	}
	steps := 0
	if d.Translated {
		steps = comparedSteps
	}
	return map[string]any{"folder": d.temp, "rows": max(2, min(d.Batch, mostRows)), "steps": steps, "seed": d.Seed}
}

// programSteps are the program's own steps, as disdel.describe tells them.
type programSteps struct {
	Rows int          `json:"rows"`
	Runs []programRun `json:"runs"` // each from the initial weights, on the same rows
}

// programRun is steps at a share of the learning rate.
type programRun struct {
	Factor       float64   `json:"factor"`
	Losses       []float64 `json:"losses"`
	Evaluated    float64   `json:"evaluated"`    // the loss of one more batch, after all steps
	Milliseconds []float64 `json:"milliseconds"` // of each step
}

// compare repeats the program's steps with disdel's engine and completes the translation. What speaks against the
// translation is part of it, and no error: Python can train the network all the same.
func (d *description) compare(n *disdel.CustomNetwork, own programSteps) {
	t := n.Python.Translation
	if t == nil || len(t.Layers) == 0 {
		return
	}
	loss := cmp.Or(t.Loss, d.Loss)
	if (loss == "" || loss == "crossEntropy") && t.Layers[len(t.Layers)-1].Kind != "softmax" {
		t.Layers = append(t.Layers, disdel.Layer{Kind: "softmax", Name: "output.softmax"}) // answers are probabilities
	}
	err := d.repeatAll(n, own)
	if err == nil && d.Weights != "" {
		err = os.Rename(filepath.Join(d.temp, weightsFile), d.Weights)
	}
	if err != nil {
		*t = disdel.PythonTranslation{Refused: err.Error()}
	}
}

// repeatAll repeats runs until the losses of one agree. The first run has the whole learning rate.
func (d *description) repeatAll(n *disdel.CustomNetwork, own programSteps) error {
	t := n.Python.Translation
	t.Rows, t.Difference = own.Rows, math.Inf(1)
	for _, run := range own.Runs {
		if len(run.Losses) < 2 || len(run.Milliseconds) != len(run.Losses) {
			break
		}
		difference, milliseconds, err := d.repeat(n, own.Rows, run)
		if err != nil {
			return err
		}
		t.Speedup = slices.Min(run.Milliseconds[1:]) / slices.Min(milliseconds[1:]) // other processes make some steps longer
		if difference < t.Difference {
			t.Steps, t.Difference, t.RateFactor = len(run.Losses), difference, run.Factor
		}
		if t.Difference <= disdel.MostDifference {
			return nil
		}
	}
	if t.Steps == 0 {
		return &disdel.Error{Kind: disdel.Internal, Op: d.op(), Msg: "its description lists no steps to compare"}
	}
	return nil
}

// repeat trains on the rows of a run, from the program's initial weights. It returns the largest difference of the
// losses, as a share of a loss above 1, and the time of each step.
func (d *description) repeat(n *disdel.CustomNetwork, rows int, run programRun) (float64, []float64, error) {
	e, err := d.nativeEngine(n, rows, run.Factor)
	if err != nil {
		return 0, nil, err
	}
	defer e.Close() //nolint:errcheck // nothing of it is kept
	steps, err := d.readArrays(stepsFile)
	if err != nil {
		return 0, nil, err
	}
	x, y := steps[0], steps[1] // by their names
	difference, milliseconds := 0.0, []float64(nil)
	differs := func(got disdel.Metrics, want float64) {
		difference = max(difference, math.Abs(got.Loss-want)/max(1, math.Abs(want)))
	}
	for i, want := range run.Losses {
		rows := batch(x, y, i)
		began := time.Now()
		got, err := e.Step(rows)
		if err != nil {
			return 0, nil, err
		}
		milliseconds = append(milliseconds, float64(time.Since(began))/1e6)
		differs(got, want)
	}
	got, err := e.Evaluate(batch(x, y, len(run.Losses)))
	differs(got, run.Evaluated)
	return difference, milliseconds, err
}

// nativeEngine is disdel's engine with the layers and the initial weights of a program. It drops nothing, as the
// program's steps did not.
func (d *description) nativeEngine(n *disdel.CustomNetwork, rows int, factor float64) (engine.Engine, error) {
	t := n.Python.Translation
	layers := slices.Clone(t.Layers)
	for i := range layers {
		layers[i].Rate = 0
	}
	g, err := model.Build(disdel.Network{Layers: layers, Input: n.Input, Classes: n.Classes})
	if err != nil {
		return nil, err
	}
	optimizer := *cmp.Or(t.Optimizer, &d.Optimizer)
	e, err := native.Backend{}.New(engine.Spec{
		Graph: g, BatchSize: rows, Loss: cmp.Or(t.Loss, d.Loss), Optimizer: optimizer.WithRate(factor * optimizer.Rate()),
		Threads: 1, Training: true,
	})
	if err != nil {
		return nil, err
	}
	weights, err := d.readArrays(weightsFile)
	if err == nil {
		err = setWeights(e, weights)
	}
	if err != nil {
		e.Close() //nolint:errcheck // the first error is the one to tell
		return nil, err
	}
	return e, nil
}

// setWeights gives an engine the arrays of a program: exactly those that its network has.
func setWeights(e engine.Engine, weights disdel.Weights) error {
	var ordered disdel.Weights
	for _, a := range engine.Of(e.State(), engine.Weight, engine.Statistic) {
		if i := slices.IndexFunc(weights, func(t disdel.Tensor) bool { return t.Name == a.Name }); i >= 0 {
			ordered = append(ordered, weights[i])
			weights = slices.Delete(weights, i, i+1)
		}
	}
	return engine.SetWeights(e, append(ordered, weights...))
}

// readArrays reads a file of the program's side of the comparison.
func (d *description) readArrays(name string) (disdel.Weights, error) {
	data, err := os.ReadFile(filepath.Join(d.temp, name))
	if err != nil {
		return nil, err
	}
	file, err := safetensors.Parse(data)
	if err != nil {
		return nil, err
	}
	return safetensors.ToWeights(file)
}

// batch is one of the batches of the program's steps, x [steps rows values] and y [steps rows].
func batch(x, y disdel.Tensor, step int) dataset.Batch {
	rows := y.Shape[1]
	columns := len(x.Data) / len(y.Data)
	out := dataset.NewBatch(rows, columns)
	out.Input.Rows, out.Input.Values = rows, x.Data[step*rows*columns:(step+1)*rows*columns]
	for _, class := range y.Data[step*rows : (step+1)*rows] {
		out.Target.Classes = append(out.Target.Classes, int32(class))
	}
	return out
}
