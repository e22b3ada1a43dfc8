package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

const (
	// quietAfter is how long an action may give no sign before the onlooker hears of it, while no heartbeat is due:
	// before the second heartbeat and after the last batch. The onlooker hears of it again whenever that time has doubled.
	quietAfter = 10 * time.Second
	// overdueAfter is how late a heartbeat may be before the onlooker hears of it.
	overdueAfter = 2 * time.Second
	// storeFresh is how long ago heartbeats may have been read: after older reads, a missing one means nothing.
	storeFresh = time.Second
)

// Waiting tells an onlooker which invocations give no sign after OpenWhisk accepted them. Those that never sent a
// heartbeat may wait behind others or be starting. OpenWhisk has no record of either.
type Waiting struct {
	Invocations []disdel.Invocation
	For         time.Duration // how long the first of them has waited
	// Pool is the memory that the largest of them needs from the pool; 0: the pool is certainly large enough.
	Pool disdel.Bytes
	// Found is the size of the pool that the doctor found at FoundAt; 0: it found none, or the size is stated.
	Found   disdel.Bytes
	FoundAt time.Time
	// Stopped says that their heartbeats came and then stopped.
	Stopped   bool
	Done, All int  // batches of the action that is silent longest, by its last heartbeat; 0: unknown
	Over      bool // heartbeats come again
}

// lookAtQuiet tells the onlooker of actions that were accepted a while ago and never gave a sign, and of actions whose
// heartbeats are missing.
func (r *run) lookAtQuiet() {
	if r.outages.now != nil {
		return
	}
	now := r.c.cfg.Now()
	var unseen, stopped Waiting
	for _, w := range r.watched {
		switch {
		case w.ended || !w.accepted:
		case w.beaten:
			r.lookAtHeartbeats(w, &stopped, now)
		default:
			after := quietAfter
			if w.inv.Task == disdel.TaskAggregate { // where its store is slow its first heartbeat is late
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

// suspectPool names the pool as a possible cause: it may be too small for an action of so much memory.
// The pool is no cause if an action was served, or if the user or the platform states its size.
// A size that the doctor found is not certain: the pool may have shrunk since.
func (r *run) suspectPool(t *Waiting, memory disdel.Bytes) {
	at := r.rec.Plan.Platform
	if r.served || at.Pool > 0 && at.PoolFrom != disdel.PoolFound {
		return
	}
	t.Pool = max(t.Pool, memory)
	t.Found, t.FoundAt = at.Pool, at.PoolAt
}

// lookAtHeartbeats adds an action to stopped if its heartbeats are missing, and looks for its update in the store.
func (r *run) lookAtHeartbeats(w *watched, stopped *Waiting, now time.Time) {
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
func (w *watched) overdue() time.Duration {
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

// isDue tells whether the onlooker should hear of a silence: once it reaches after, and whenever it has doubled since.
func (w *watched) isDue(quiet, after time.Duration) bool {
	if quiet < max(after, 2*w.told) {
		return false
	}
	w.told = quiet
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
