package controller

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// fitLoss checks the loss against the data, whether or not the network can be built.
func (r *resolver) fitLoss() {
	d, t := r.Resolved.Data, r.Job.Training
	if c := r.Network.Custom; r.Job.Model.Python != nil && (c == nil || c.Python == nil || c.Python.OwnLoss) {
		return // training.loss does not count, or nobody knows whether it does
	}
	switch {
	case len(d.Targets) > 0:
		r.targetLoss(d.Targets[0].Name)
	case d.NextToken && (t.Loss != disdel.LossCrossEntropy || t.LabelSmoothing != 0):
		r.fault("training.loss", "leave training.loss and training.labelSmoothing out",
			"a language model is trained with crossEntropy and without label smoothing")
	case !d.NextToken && d.Sparse == nil && (t.Loss == disdel.LossMAE || t.Loss == disdel.LossHuber):
		r.fault("training.loss", "write crossEntropy, or add the data set with --target COLUMN",
			"%s learns numbers, and the rows of %s have classes", t.Loss, d.Name)
	}
}

// targetLoss checks the loss of a job that predicts numbers or several labels, of which one is named, and sets it where
// the job file has none.
func (r *resolver) targetLoss(name string) {
	d, t := r.Resolved.Data, &r.Job.Training
	usual := t.Loss == disdel.LossCrossEntropy && !r.given("training", "loss") // the default of classes
	switch labels := d.MultiLabel(); {
	case usual && labels:
		t.Loss = disdel.LossBinaryCrossEntropy
		r.Notes = append(r.Notes,
			fmt.Sprintf("training.loss is %s: the rows of %s have several labels", t.Loss, d.Name))
	case usual:
		t.Loss = disdel.LossMSE
		r.Notes = append(r.Notes, fmt.Sprintf("training.loss is mse: %s of %s is a number to predict", name, d.Name))
	case labels && t.Loss != disdel.LossBinaryCrossEntropy:
		r.fault("training.loss", "write binaryCrossEntropy",
			"%s is no loss of several labels, which the rows of %s have",
			t.Loss, d.Name)
	case !labels && !slices.Contains([]string{disdel.LossMSE, disdel.LossMAE, disdel.LossHuber}, t.Loss):
		r.fault("training.loss", "write mse, mae or huber",
			"%s tells classes apart, and %s of %s is a number to predict",
			t.Loss, name, d.Name)
	}
}
