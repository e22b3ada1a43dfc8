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
	not(d.Missing.Policy == disdel.MissingProceed, "distribution.missing.policy", "write policy: retry",
		"all workers wait for the one that is missing")
	not(d.Policy != disdel.PolicyStatic, "distribution.policy", "write policy: static", "its workers are a gang")
	not(stop != nil && stop.Metric == disdel.MetricLoss, "training.earlyStop.metric", "write metric: valLoss",
		"each worker has a training loss of its own")
}
