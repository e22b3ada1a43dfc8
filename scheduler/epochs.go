package scheduler

import "github.com/disdel/disdel"

// epoch is what was seen of an epoch, in however many rounds.
type epoch struct {
	workers   int
	memory    disdel.Bytes // of a train action, that was chosen; 0: it is by the estimate
	limit     disdel.Bytes // of a train action; 0: not known
	until     float64      // epochs that were trained when it had ended
	duration  disdel.Millis
	rows      int
	compute   disdel.Millis // of the slowest workers of its rounds
	exchange  disdel.Millis // part of compute: with the other workers, after every step
	reduce    disdel.Millis // of their aggregations
	rounds    int
	cost      float64  // GB-s
	losses    float64  // of its rounds, each times its rows
	heldOut   *float64 // loss of held-out rows when it had ended; nil: it was not evaluated
	disturbed bool     // a container started cold, or a worker failed or left, so that its time says little
	left      int      // workers that were let go while it ran
	failed    bool     // a worker did
	cold      disdel.Millis
}

// started is the time of 1,000 rows without that of the containers that started cold in it.
func (e epoch) started() disdel.Millis {
	return disdel.Observation{Duration: max(0, e.duration-e.cold), Rows: e.rows}.PerThousand()
}

// each is the time of 1,000 rows.
func (e epoch) each() disdel.Millis {
	return disdel.Observation{Duration: e.duration, Rows: e.rows}.PerThousand()
}

// meanLoss is the training loss over the epoch's rows.
func (e epoch) meanLoss() float64 { return e.losses / float64(max(1, e.rows)) }

// epochs adds rounds up to the epochs that they ended: what most policies go by.
func epochs(seen []disdel.Observation) []epoch {
	var out []epoch
	var e epoch
	for _, o := range seen {
		e.workers, e.memory, e.limit = o.Setting.Workers, o.Setting.Memory, o.Limit
		e.duration, e.rows = e.duration+o.Duration, e.rows+o.Rows
		e.compute, e.cost = e.compute+o.Compute, e.cost+o.Cost
		e.reduce, e.rounds, e.exchange = e.reduce+o.Reduce, e.rounds+1, e.exchange+o.Exchange
		e.losses += o.Loss * float64(o.Rows)
		e.failed = e.failed || o.Retried > 0 || o.Missing > 0
		e.left += o.Left
		e.disturbed, e.cold = e.disturbed || e.failed || o.Cold > 0 || o.Left > 0, e.cold+o.Cold
		if o.Epoch != float64(int(o.Epoch)) {
			continue // in the middle of one
		}
		e.heldOut = o.HeldOut
		if e.until = o.Epoch; e.duration > 0 {
			out = append(out, e)
		}
		e = epoch{}
	}
	return out
}
