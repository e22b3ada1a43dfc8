package controller

import (
	"context"
	"time"

	"github.com/disdel/disdel"
)

// watched is what was seen of a running invocation.
type watched struct {
	inv       disdel.Invocation       // without its request, but for an aggregation's
	stop      context.CancelCauseFunc // ends the wait for its record
	since     time.Time               // when OpenWhisk accepted it; before that, when it was ordered
	accepted  bool
	beats     []disdel.Beat
	last      int64           // the newest heartbeat's own time
	heard     time.Time       // when the newest heartbeat was seen
	gaps      []time.Duration // between its newest heartbeats, at most keptGaps
	done, all int             // batches, by the newest heartbeat
	beaten    bool            // a heartbeat of it was seen
	ended     bool            // it reported
	told      time.Duration   // how long it had given no sign when the onlooker was told last
	lookedUp  time.Time       // when its update was looked for last
}

// keptGaps is how many times between heartbeats tell when the next one is due. Older ones are forgotten, so that one
// stall does not hide a later one.
const keptGaps = 8

// maxBeats bounds what a record keeps of one activation: enough for a curve.
const maxBeats = 64

// watch keeps the heartbeats of invocations that run.
func (r *run) watch(list []disdel.Progress) {
	now := r.c.cfg.Now()
	r.seen = now
	for _, p := range list {
		w := r.watched[disdel.Slot{Task: p.Task, Level: p.Level, Member: p.Member}]
		if w == nil || w.inv.Round != p.Round || p.UnixMs <= w.last {
			continue
		}
		w.last = p.UnixMs
		w.beats = append(thin(w.beats), p.Beat(disdel.Millis(now.Sub(w.since))))
		r.heard(w, now)
	}
}

// heard notes a heartbeat. The first one does not tell when the next is due: the time before it may be a wait in
// OpenWhisk's queue, or the start of the container.
func (r *run) heard(w *watched, now time.Time) {
	of := disdel.Activation{Invocation: w.inv, Beats: w.beats[len(w.beats)-1:]}
	w.done, w.all = of.Done()
	if w.beaten {
		w.gaps = append(w.gaps[max(0, len(w.gaps)-keptGaps+1):], now.Sub(w.heard))
	} else {
		w.told = 0
	}
	if w.told > 0 {
		w.told = 0
		r.tell(Waiting{
			Invocations: []disdel.Invocation{w.inv}, For: now.Sub(w.heard), Stopped: true, Over: true, Done: w.done, All: w.all,
		})
	}
	w.heard, w.beaten = now, true
}

// acceptance notes that OpenWhisk has accepted an invocation: from then on it gives signs.
func (r *run) acceptance(inv disdel.Invocation) {
	if w := r.watched[inv.Slot()]; w != nil && w.inv.ID == inv.ID {
		w.accepted, w.since, w.told = true, r.c.cfg.Now(), 0
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

// invoked begins to watch an invocation. The store still shows the last heartbeat of the slot's attempt before it,
// which is none of this one's.
func (r *run) invoked(inv disdel.Invocation, since time.Time, stop context.CancelCauseFunc) {
	if inv.Task != disdel.TaskAggregate {
		inv.Params = nil
	}
	w := &watched{inv: inv, since: since, stop: stop}
	if before := r.watched[inv.Slot()]; before != nil {
		w.last = before.last
	}
	r.watched[inv.Slot()] = w
}

// closed notes that an invocation has reported.
func (r *run) closed(inv disdel.Invocation) {
	if w := r.watched[inv.Slot()]; w != nil && w.inv.ID == inv.ID {
		w.ended = true
	}
}

// beats takes what was seen of an invocation. Where nobody looked in time, what the executor found has to do.
func (r *run) beats(a disdel.Activation) []disdel.Beat {
	w := r.watched[a.Slot()]
	if w == nil || w.inv.ID != a.Invocation.ID || len(w.beats) == 0 { // a later attempt's, or none
		return a.Beats
	}
	seen := w.beats
	w.beats = nil
	return seen
}

// lookOn reads how far the actions are, again and again until the stop that it returns is called, beside the loop,
// which never waits for the store. One that does not answer costs the onlooker the picture, not the job.
func (r *run) lookOn(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	r.running.Go(func() {
		for wait(ctx, r.c.cfg.Tick) {
			p, err := r.look(ctx)
			if err != nil {
				r.log.WithError(err).Debug("no progress to be had")
				continue
			}
			select {
			case r.progress <- p:
			case <-ctx.Done():
			}
		}
	})
	return stop
}

func (r *run) look(ctx context.Context) ([]disdel.Progress, error) {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	return r.c.cfg.Board.Progress(ctx, r.spec.ID)
}
