package controller

import (
	"time"

	"github.com/disdel/disdel"
)

// watched is what was seen of a running invocation.
type watched struct {
	id    string
	round int
	since time.Time
	beats []disdel.Beat
	last  int64 // the newest heartbeat's own time
}

// maxBeats bounds what a record keeps of one activation: enough for a curve.
const maxBeats = 64

func slotOf(i disdel.Invocation) slot { return slot{i.Task, i.Level, i.Member} }

// watch keeps the heartbeats of invocations that run.
func (r *run) watch(list []disdel.Progress) {
	for _, p := range list {
		w := r.seen[slot{p.Task, p.Level, p.Member}]
		if w == nil || w.round != p.Round || p.UnixMs <= w.last {
			continue
		}
		w.last = p.UnixMs
		w.beats = append(thin(w.beats), disdel.Beat{
			At: disdel.Millis(r.c.cfg.Now().Sub(w.since)), Resident: p.Resident, Peak: p.Peak,
			Epoch: p.Epoch, Batch: p.Batch, Batches: p.Batches, Loss: p.Loss,
		})
	}
}

// thin drops every other heartbeat of a full list, so that what is left still spans the whole time.
func thin(beats []disdel.Beat) []disdel.Beat {
	if len(beats) < maxBeats {
		return beats
	}
	half := beats[:0:0]
	for i := 1; i < len(beats); i += 2 {
		half = append(half, beats[i])
	}
	return half
}

// beats takes what was seen of an invocation.
func (r *run) beats(inv disdel.Invocation) []disdel.Beat {
	s := slotOf(inv)
	w := r.seen[s]
	if w == nil || w.id != inv.ID { // a later attempt's
		return nil
	}
	delete(r.seen, s)
	return w.beats
}
