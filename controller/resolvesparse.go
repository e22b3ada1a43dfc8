package controller

import (
	"cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// sparse builds the graph of a model of sparse rows, all of whose sizes come from the data set.
func (r *resolver) sparse(m model.SparseModel) {
	if !r.found {
		return // it has been said that there is no data set
	}
	d := r.Resolved.Data
	switch {
	case d.Sparse == nil:
		r.fault("model.name", "add the data set with --libsvm, --csv or --ratings, or name a network",
			"%s learns from sparse rows, and those of %s are dense", m.Name, d.Name)
		return
	case m.Ratings && !d.Sparse.Ratings():
		r.fault("model.name", "write name: logistic or linear", "%s learns from ratings, and %s has none", m.Name, d.Name)
		return
	case m.Classes != d.Classes && m.Classes == 2:
		r.fault("model.name", "write name: linear, or pmf for ratings",
			"%s learns targets of 0 and 1, and those of %s are numbers", m.Name, d.Name)
		return
	case m.Classes != d.Classes:
		r.fault("model.name", "write name: logistic", "%s learns numbers, and the targets of %s are 0 and 1", m.Name, d.Name)
		return
	}
	r.Network = m.Describe(d, r.Job.Model.Rank, r.Job.Model.Init)
	g, err := model.Build(r.Network)
	if err != nil {
		e := disdel.AsError(err)
		r.fault("model", e.Hint, "the model cannot be built: %s", cmp.Or(e.Msg, e.Error()))
		return
	}
	r.Graph = g
}

// fitSparse checks a job's goal against what its data allow: a loss that one guess for all rows has is none.
func (r *resolver) fitSparse() {
	d, e, loss := r.Resolved.Data, r.Job.Training.EarlyStop, r.Job.Training.Loss
	if g := r.Job.Training.Goal; d.Sparse != nil && g != nil {
		r.sparseGoal(*g)
		return
	}
	if d.Sparse == nil || e == nil {
		return
	}
	switch guess := d.Sparse.Guess(loss); {
	case e.Metric == disdel.MetricAccuracy && d.Classes < 2:
		r.fault("training.earlyStop.metric", "write valLoss", "numbers have no accuracy")
	case e.Metric != disdel.MetricAccuracy && e.Target >= guess:
		r.fault("training.earlyStop.target", "", "one guess for all rows of %s has a loss of %.4g: a target is below it",
			d.Name, guess)
	}
}

// sparseGoal is fitSparse of a goal.
func (r *resolver) sparseGoal(g disdel.Goal) {
	d, guess := r.Resolved.Data, r.Resolved.Data.Sparse.Guess(r.Job.Training.Loss)
	switch gap, enough := g.Gap(guess, 0); {
	case g.Accuracy > 0 && d.Classes < 2:
		r.fault("training.goal.accuracy", "write rmse or loss", "numbers have no accuracy")
	case g.Accuracy == 0 && enough >= gap:
		r.fault("training.goal", "", "one guess for all rows of %s has a %s: a goal is below it", d.Name, g.Text(gap))
	}
}
