package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// runningInvocation is what is known of a running invocation.
type runningInvocation struct {
	inv       disdel.Invocation       // without its request, unless it is an aggregation
	stop      context.CancelCauseFunc // ends the wait for its record
	since     time.Time               // when OpenWhisk accepted it; before that, when it was ordered
	accepted  bool
	beats     []disdel.Beat
	last      int64           // the newest heartbeat's own time
	heard     time.Time       // when the newest heartbeat was read
	gaps      []time.Duration // between its newest heartbeats, at most keptGaps
	done, all int             // batches, by the newest heartbeat
	beaten    bool            // it has sent a heartbeat
	ended     bool            // it reported
	noticedAt time.Duration   // how long it had been silent at the last notice
	lookedUp  time.Time       // last search for its update
}

// keptGaps is how many intervals between heartbeats predict the next one. Older ones are forgotten, so that one stall
// does not hide a later one.
const keptGaps = 8

// maxBeats limits the heartbeats that a record has of one activation.
const maxBeats = 64

// watch adds the heartbeats of running invocations.
func (r *run) watch(list []disdel.Progress) {
	now := r.c.cfg.Now()
	r.seen = now
	for _, p := range list {
		w := r.invocations[disdel.Slot{Task: p.Task, Level: p.Level, Member: p.Member}]
		if w == nil || w.inv.Round != p.Round || p.UnixMs <= w.last {
			continue
		}
		w.last = p.UnixMs
		w.beats = append(thin(w.beats), p.Beat(disdel.Millis(now.Sub(w.since))))
		r.noteHeartbeat(w, now)
	}
}

// noteHeartbeat notes a heartbeat. The time before the first one does not count as an interval: it may be a wait in
// OpenWhisk's queue, or the start of the container.
func (r *run) noteHeartbeat(w *runningInvocation, now time.Time) {
	activation := disdel.Activation{Invocation: w.inv, Beats: w.beats[len(w.beats)-1:]}
	w.done, w.all = activation.Done()
	if w.beaten {
		w.gaps = append(w.gaps[max(0, len(w.gaps)-keptGaps+1):], now.Sub(w.heard))
	} else {
		w.noticedAt = 0
	}
	if w.noticedAt > 0 {
		w.noticedAt = 0
		r.tell(Waiting{
			Invocations: []disdel.Invocation{w.inv}, For: now.Sub(w.heard), Stopped: true, Over: true, Done: w.done, All: w.all,
		})
	}
	w.heard, w.beaten = now, true
}

// noteAccepted notes that OpenWhisk has accepted an invocation.
func (r *run) noteAccepted(inv disdel.Invocation) {
	if w := r.invocations[inv.Slot()]; w != nil && w.inv.ID == inv.ID {
		w.accepted, w.since, w.noticedAt = true, r.c.cfg.Now(), 0
	}
}

// thin drops every other heartbeat of a full list, so that the rest still spans the whole time.
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

// watchInvocation starts to watch an invocation. The store still has the last heartbeat of the slot's previous
// attempt, which does not count.
func (r *run) watchInvocation(inv disdel.Invocation, since time.Time, stop context.CancelCauseFunc) {
	if inv.Task != disdel.TaskAggregate {
		inv.Params = nil
	}
	w := &runningInvocation{inv: inv, since: since, stop: stop}
	if before := r.invocations[inv.Slot()]; before != nil {
		w.last = before.last
	}
	r.invocations[inv.Slot()] = w
}

// stopWatching notes that an invocation has reported.
func (r *run) stopWatching(inv disdel.Invocation) {
	if w := r.invocations[inv.Slot()]; w != nil && w.inv.ID == inv.ID {
		w.ended = true
	}
}

// takeBeats returns the heartbeats of an invocation: the observed ones, or else those that the executor found.
func (r *run) takeBeats(a disdel.Activation) []disdel.Beat {
	w := r.invocations[a.Slot()]
	if w == nil || w.inv.ID != a.Invocation.ID || len(w.beats) == 0 { // a later attempt's, or none
		return a.Beats
	}
	seen := w.beats
	w.beats = nil
	return seen
}

// pollProgress reads the actions' progress until stop is called, beside the loop, which never waits for the store. If
// the store does not answer, only notices are missing.
func (r *run) pollProgress(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	r.running.Go(func() {
		for wait(ctx, r.c.cfg.Tick) {
			p, err := r.readProgress(ctx)
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

func (r *run) readProgress(ctx context.Context) ([]disdel.Progress, error) {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	return r.c.cfg.Store.Progress(ctx, r.spec.ID)
}

const (
	// quietAfter is the silence that is reported while no heartbeat is due: before the second heartbeat and after the last
	// batch. It is reported again whenever it has doubled.
	quietAfter = 10 * time.Second
	// overdueAfter is how late a heartbeat is when that is reported.
	overdueAfter = 2 * time.Second
	// storeFresh is the age of the newest read of heartbeats beyond which a missing one means nothing.
	storeFresh = time.Second
)

// Waiting reports invocations that are silent after OpenWhisk accepted them. Those that never sent a heartbeat may
// wait behind others or be starting. OpenWhisk has no record of either.
type Waiting struct {
	Invocations []disdel.Invocation
	For         time.Duration // of the one that is silent longest
	// Pool is the memory that the largest of them needs; 0: the pool is certainly large enough.
	Pool disdel.Bytes
	// Found is the size of the pool that the doctor found at FoundAt; 0: it found none, or the size is stated.
	Found   disdel.Bytes
	FoundAt time.Time
	// Stopped says that their heartbeats came and then stopped.
	Stopped   bool
	Done, All int  // batches of the action that is silent longest; 0: unknown
	Over      bool // heartbeats arrive again
}

// checkSilence reports actions that were accepted some time ago and have sent no heartbeat, and actions whose
// heartbeats are missing.
func (r *run) checkSilence() {
	if r.outages.now != nil {
		return
	}
	now := r.c.cfg.Now()
	var unseen, stopped Waiting
	for _, w := range r.invocations {
		switch {
		case w.ended || !w.accepted:
		case w.beaten:
			r.checkHeartbeats(w, &stopped, now)
		default:
			after := quietAfter
			if w.inv.Task == disdel.TaskAggregate { // with a slow store its first heartbeat is late
				after = max(after, r.aggregated)
			}
			if quiet := now.Sub(w.since) - time.Duration(w.inv.Queue); w.isDue(quiet, after) {
				unseen.add(w.inv, quiet)
				r.suspectPool(&unseen, w.inv.Limits.Memory)
			}
		}
	}
	r.tell(unseen)
	r.tell(stopped)
}

// suspectPool names the pool as a possible cause: it may be too small for an action of so much memory. It is no cause
// if an action was served, or if the user or the platform states its size. A size that the doctor found is not
// certain: the pool may have shrunk since.
func (r *run) suspectPool(t *Waiting, memory disdel.Bytes) {
	at := r.rec.Plan.Platform
	if r.served || at.Pool > 0 && at.PoolFrom != disdel.PoolFound {
		return
	}
	t.Pool = max(t.Pool, memory)
	t.Found, t.FoundAt = at.Pool, at.PoolAt
}

// checkHeartbeats adds an action to stopped if its heartbeats are missing, and looks for its update in the store.
func (r *run) checkHeartbeats(w *runningInvocation, stopped *Waiting, now time.Time) {
	if now.Sub(r.seen) > storeFresh {
		return // the store does not answer, so a missing heartbeat says nothing about the action
	}
	quiet := now.Sub(w.heard)
	after := w.overdue()
	if quiet >= overdueAfter && now.Sub(w.lookedUp) >= overdueAfter {
		w.lookedUp = now
		r.lookUp(w)
	}
	if w.isDue(quiet, after) {
		stopped.Stopped = true
		if quiet > stopped.For {
			stopped.Done, stopped.All = w.done, w.all
		}
		stopped.add(w.inv, quiet)
	}
}

// overdue is how long an action may be silent after its newest heartbeat before the next one is missing.
func (w *runningInvocation) overdue() time.Duration {
	if len(w.gaps) == 0 {
		return quietAfter
	}
	gap := slices.Max(w.gaps)
	after := gap + max(overdueAfter, gap/2)
	if w.all > 0 && w.done >= w.all {
		return max(after, quietAfter) // it writes its update, without heartbeats
	}
	return after
}

// isDue tells whether to report a silence: once it reaches after, and whenever it has doubled since.
func (w *runningInvocation) isDue(quiet, after time.Duration) bool {
	if quiet < max(after, 2*w.noticedAt) {
		return false
	}
	w.noticedAt = quiet
	return true
}

func (t *Waiting) add(inv disdel.Invocation, quiet time.Duration) {
	t.For = max(t.For, quiet)
	t.Invocations = append(t.Invocations, inv)
}

func (r *run) tell(t Waiting) {
	if len(t.Invocations) == 0 {
		return
	}
	sortInvocations(t.Invocations)
	r.observe(Notice{Waiting: &t})
}

func sortInvocations(list []disdel.Invocation) {
	slices.SortFunc(list, func(a, b disdel.Invocation) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Level, b.Level), cmp.Compare(a.Member, b.Member))
	})
}
