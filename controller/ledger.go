package controller

import (
	"github.com/disdel/disdel"
)

// The bounds of what a record keeps: CouchDB takes documents of 8 MB, and a running job's record is written again and
// again.
const (
	maxActivations = 4000
	maxBeatsInAll  = 8000 // heartbeats of activations that passed
	maxLinesInAll  = 4000 // lines of their logs
)

// ledger adds activations to a record and keeps it small. Failures stay with all their evidence. Of those that passed,
// the later ones of a long job keep their last heartbeat and no log, and every other one is left out when there are too
// many: what is left still spans the whole job.
type ledger struct {
	beats, lines int
	limit        int // of activations, before the next thinning
}

// add appends an activation without what only the manager needs.
func (l *ledger) add(r *disdel.Record, a disdel.Activation) {
	if !a.Outcome.Failed() {
		a.Span = nil
	}
	a.Params, a.Result = nil, nil
	if n := len(a.Beats); !a.Outcome.Failed() && n > 0 {
		if l.beats+n > maxBeatsInAll {
			a.Beats = a.Beats[n-1:]
		}
		l.beats += n
	}
	if n := len(a.Logs); !a.Outcome.Failed() && n > 0 {
		if l.lines += n; l.lines > maxLinesInAll {
			a.Logs, a.LogLines = nil, max(n, a.LogLines)
		}
	}
	r.Activations = append(r.Activations, a)
	if len(r.Activations) > max(l.limit, maxActivations) {
		l.thin(r)
		l.limit = 2 * len(r.Activations)
	}
}

// thin makes a new list: the one before may be being written.
func (l *ledger) thin(r *disdel.Record) {
	kept := make([]disdel.Activation, 0, len(r.Activations))
	passed := 0
	for _, a := range r.Activations {
		if !a.Outcome.Failed() {
			if passed++; passed%2 == 0 {
				r.Omitted++
				continue
			}
		}
		kept = append(kept, a)
	}
	r.Activations = kept
}
