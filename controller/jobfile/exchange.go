package jobfile

import "github.com/disdel/disdel"

// exchange refuses what does not go with workers that exchange updates inside a round: whatever would have one of them
// end before the others, who wait for it.
func (r *reader) exchange(job *disdel.Job) {
	const path = "distribution.exchange"
	if job.Distribution.Exchange == nil || !r.sound(path) {
		return
	}
	not := func(wrong bool, at, hint, why string) {
		if wrong && r.sound(at) {
			r.fault(r.places[at], at, hint, "does not go with distribution.exchange: %s", why)
		}
	}
	d, stop := job.Distribution, job.Training.EarlyStop
	not(d.Aggregation.Wire != disdel.WireFloat32, "distribution.aggregation.wire", "write wire: float32",
		"what is exchanged has its own threshold")
	not(stop != nil && stop.Metric == disdel.MetricLoss, "training.earlyStop.metric", "write metric: valLoss",
		"each worker has a training loss of its own")
	queue := path + ".batches"
	if !d.Exchange.Queued() || !r.sound(queue) {
		return
	}
	if d.Exchange.Order != disdel.OrderEager {
		r.fault(r.places[queue], queue, "write order: eager beside it",
			"a queue takes order: eager, since who is there first takes the next batch")
	}
	if d.Sync != disdel.SyncEpoch {
		r.fault(r.places[queue], queue, "write distribution.sync: epoch", "a queue has the batches of one epoch, "+
			"and sync is %v", d.Sync)
	}
}
