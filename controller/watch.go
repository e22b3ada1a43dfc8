package controller

import (
	"github.com/disdel/disdel"
)

// watch is what the manager sees of the round that runs, for its policy.
type watch struct {
	now     disdel.Millis // since the controller took the job up
	since   disdel.Millis // the round's start
	took    disdel.Millis // until the next reference stood; 0: it does not yet
	failed  int
	cold    disdel.Millis
	peak    disdel.Bytes
	workers map[int]*part         // of each worker, its legs together
	reduce  map[int]disdel.Millis // the slowest aggregation of each level
}

// part is what one worker's round took.
type part struct {
	fetch, compute, push, wait disdel.Millis
	exchange                   disdel.Millis // part of compute
	rows                       int
}

func (w *watch) begin() {
	*w = watch{now: w.now, since: w.now, workers: map[int]*part{}, reduce: map[int]disdel.Millis{}}
}

func (w *watch) done() { w.took = w.now - w.since }

// ended takes an activation that the round waited for.
func (w *watch) ended(a disdel.Activation) {
	if a.Task == disdel.TaskEvaluate {
		return
	}
	if a.Cold {
		w.cold = max(w.cold, a.InitTime, 1)
	}
	w.peak = max(w.peak, a.Peak)
	if a.Task == disdel.TaskAggregate {
		w.reduce[a.Level] = max(w.reduce[a.Level], a.Duration)
		return
	}
	p := w.of(a.Member)
	p.fetch += a.Phases["load"] + a.Phases["fetch"]
	p.compute += a.Phases["compute"]
	p.push += a.Phases["push"]
	p.exchange += a.Phases["exchange"]
	p.wait += a.WaitTime
}

// trained adds the rows of an activation.
func (w *watch) trained(worker int, r disdel.TrainResult) {
	rows := r.Rows
	if rows == 0 && !r.Paused {
		rows = r.Samples * max(1, r.Epochs) // an earlier activation of the same work had trained them
	}
	w.of(worker).rows += rows
}

func (w *watch) of(worker int) *part {
	p, ok := w.workers[worker]
	if !ok {
		p = &part{}
		w.workers[worker] = p
	}
	return p
}

// observed is the round as a policy sees it.
func (m *Manager) observed(r disdel.Round) *disdel.Observation {
	w := &m.watch
	o := disdel.Observation{
		Round: m.round, Setting: m.setting(), Duration: w.took, Loss: r.TrainLoss, Peak: w.peak, Cold: w.cold,
		Cost: max(0, m.budget.spent-m.budget.began), Retried: w.failed, Missing: len(r.Missing),
		Left:  len(r.Left),
		Epoch: m.spec.Stage.Until(m.round),
	}
	if train, ok := m.spec.Plan.Action(disdel.TaskTrain); ok {
		o.Limit = train.Limits.Memory
	}
	var slowest disdel.Millis
	for worker := range m.spec.Plan.Workers {
		p := w.of(worker)
		o.Rows += p.rows
		if all := p.fetch + p.compute + p.push + p.wait; all >= slowest {
			slowest = all
			o.Fetch, o.Compute, o.Push, o.Wait = p.fetch, p.compute, p.push, p.wait
			o.Exchange = p.exchange
		}
	}
	for _, d := range w.reduce {
		o.Reduce += d
	}
	return &o
}
