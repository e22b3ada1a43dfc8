package jobfile

import (
	"cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// sparse fills in what a model of sparse rows means by what its file leaves out, and refuses what does not go with one.
func (r *reader) sparse(job *disdel.Job) {
	const rank, loss, backend = "model.rank", "training.loss", "training.backend"
	m, isSparse := model.FindSparse(job.Model.Name)
	if !m.Ratings && r.given(rank) && r.sound(rank, "model.name") {
		r.fault(r.places[rank], rank, "take it out, or write name: pmf", "only pmf has a rank")
	}
	if !isSparse {
		r.dense(job)
		return
	}
	switch {
	case !r.given(loss):
		job.Training.Loss = m.Loss
	case job.Training.Loss != m.Loss && r.sound(loss):
		r.fault(r.places[loss], loss, "leave it out", "%s is trained by %s", m.Name, m.Loss)
	}
	switch {
	case !r.given(backend):
		job.Training.Backend = disdel.BackendSparse
	case job.Training.Backend != disdel.BackendSparse && r.sound(backend):
		r.fault(r.places[backend], backend, "leave it out", "%s is trained by %s alone", m.Name, disdel.BackendSparse)
	}
	if m.Ratings && !r.given(rank) {
		job.Model.Rank = cmp.Or(job.Model.Rank, model.DefaultRank)
	}
}

// dense refuses of a network what only models of sparse rows have.
func (r *reader) dense(job *disdel.Job) {
	const loss, backend = "training.loss", "training.backend"
	if l := job.Training.Loss; (l == disdel.LossSquared || l == disdel.LossLogistic) && r.given(loss) && r.sound(loss) {
		r.fault(r.places[loss], loss, "write mse or binaryCrossEntropy", "%s is a loss of logistic, linear and pmf", l)
	}
	if job.Training.Backend == disdel.BackendSparse && r.given(backend) && r.sound(backend) {
		r.fault(r.places[backend], backend, "leave it out", "it is that of logistic, linear and pmf")
	}
}
