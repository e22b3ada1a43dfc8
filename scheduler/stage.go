package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Apply is a job as it is planned under a setting, with batches of so many rows on every worker; 0: as they are.
func Apply(job disdel.Job, s disdel.Setting, batch int) disdel.Job {
	d := &job.Distribution
	d.Workers, d.Aggregation.FanIn, job.Resources.Memory = s.Workers, s.FanIn, s.Memory
	switch {
	case s.K > 0:
		d.Sync = disdel.SyncEvery(s.K)
	case d.Sync.Every() > 0:
		d.Sync = disdel.SyncEpoch
	}
	if batch > 0 {
		job.Training = job.Training.WithWorkerBatch(batch, s.Workers)
	}
	return job
}

// From is the plan of a job that begins a stage: its rounds are those before the stage too, and its forecast goes with
// them.
func From(plan disdel.Plan, stage disdel.Stage) disdel.Plan {
	rounds := stage.End()
	if f := plan.Forecast; f != nil && rounds != plan.Rounds && plan.Rounds > 0 {
		by := float64(rounds) / float64(plan.Rounds)
		scaled := *f
		d, c := f.Duration, f.Cost
		times := func(m disdel.Millis) disdel.Millis { return disdel.Millis(by * float64(m)) }
		scaled.Duration = disdel.Interval[disdel.Millis]{Low: times(d.Low), Likely: times(d.Likely), High: times(d.High)}
		scaled.Cost = disdel.Interval[float64]{Low: by * c.Low, Likely: by * c.Likely, High: by * c.High}
		u := f.Used
		scaled.Used = disdel.Interval[float64]{Low: by * u.Low, Likely: by * u.Likely, High: by * u.High}
		plan.Forecast = &scaled
	}
	plan.Rounds = rounds
	return plan
}

// Leaving says what a change costs those that come and go: what a worker carries from round to round is its own.
func Leaving(job disdel.Job, was, now int) []string {
	a := job.Distribution.Aggregation
	var out []string
	lossy := a.Wire != "" && a.Wire != disdel.WireFloat32
	own := a.Moments == disdel.StateKeep || a.Statistics == disdel.StateKeep
	switch {
	case now < was && lossy:
		out = append(out, fmt.Sprintf("%d of %d workers leave: what %s had rounded away of their last updates is lost",
			was-now, was, a.Wire))
	case now < was && own:
		out = append(out, fmt.Sprintf("%d of %d workers leave, and what they kept of their own goes with them", was-now, was))
	case now > was && own:
		out = append(out, fmt.Sprintf("%d workers come, and begin with nothing of their own: "+
			"moments are reset, statistics are the others' mean", now-was))
	}
	return out
}
