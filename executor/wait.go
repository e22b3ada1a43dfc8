package executor

import (
	"context"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

const (
	// recordWait is how long after an activation's end its record may come: about 12 s after a killed container, more
	// with a slow record store.
	recordWait = time.Minute
	// maxQueue is how long an activation may give no sign of life. On a shared cluster it can queue for hours.
	maxQueue = 2 * time.Hour
	// afterOutage is how long an activation that ran during an outage may give no sign of life afterwards.
	afterOutage = 5 * time.Second
	// beatsEvery is the time between two reads of the heartbeats of an activation with a late record.
	beatsEvery = time.Second
	// freshBeat is how long a heartbeat proves that an action runs.
	freshBeat = 10 * time.Second
)

// Wait returns the activation once its record exists. OpenWhisk has no record of an activation that runs, waits or was
// lost, and does not tell which. A late activation counts as running while it sends heartbeats. Otherwise Wait sends a
// probe: a request to the same action that ends at once. OpenWhisk serves an action's activations in order, so once the
// probe has a record, the earlier activation has started or is lost. Only then is it Lost. While the probe has no
// record, the activation is queued and Wait continues.
func (e *Executor) Wait(ctx context.Context, inv disdel.Invocation, id disdel.ActivationID) (disdel.Activation, error) {
	defer time.AfterFunc(ackAfter, e.quotas.leave)
	w := waiting{e: e, inv: inv, id: id, begun: time.Now()}
	pause := 10 * time.Millisecond
	for {
		a, found, err := e.fetchRecord(ctx, inv, id)
		if err != nil || found {
			return a, err
		}
		if a, over := w.giveUp(ctx); over {
			return a, nil
		}
		if !sleep(ctx, pause) {
			return a, &disdel.Error{
				Kind: disdel.Canceled, Op: "wait for " + describe(&inv), Activation: id, Err: context.Cause(ctx),
			}
		}
		pause = min(pause*11/10, e.cfg.PollEvery) // an end is noticed within a tenth of the duration
	}
}

// waiting is an activation without a record.
type waiting struct {
	e      *Executor
	inv    disdel.Invocation
	id     disdel.ActivationID
	begun  time.Time // when it was accepted
	looked time.Time // when its heartbeats were read last
	beat   int64     // the newest heartbeat's own time
	heard  time.Time // when a new heartbeat was read last
}

// giveUp decides whether the activation is lost. It returns true with the failed activation.
func (w *waiting) giveUp(ctx context.Context) (disdel.Activation, bool) {
	now, back := time.Now(), w.e.health.lastReturn()
	restarted := back.After(w.begun)
	due := w.begun.Add(time.Duration(w.inv.Queue) + time.Duration(w.inv.Limits.Timeout) + recordWait)
	since := w.begun
	if soon := back.Add(afterOutage); restarted && soon.Before(due) {
		due, since = soon, back
	}
	if now.Before(due) || w.sendsHeartbeats(ctx, now) {
		return disdel.Activation{}, false
	}
	p := w.e.probe(ctx, w.inv, since)
	switch {
	case p.gone:
		return w.failLost(ctx, "its action is gone: OpenWhisk was started again without what it had"), true
	case p.served.IsZero() && now.Sub(w.begun) > time.Duration(w.inv.Queue)+w.e.cfg.MaxQueue:
		return w.failNeverServed(ctx), true
	case p.served.IsZero():
		return disdel.Activation{}, false
	case since.Equal(back) && restarted:
		return w.failLost(ctx, "OpenWhisk did not answer for a while, and has served a later request to the same action "+
			"since"), true
	case now.After(p.served.Add(time.Duration(w.inv.Limits.Timeout) + recordWait)):
		return w.failLost(ctx, "OpenWhisk has served a later request to the same action, longer ago than this one may "+
			"take"), true
	default:
		return disdel.Activation{}, false
	}
}

// sendsHeartbeats tells whether recent heartbeats show that the action runs. It reads them every beatsEvery.
func (w *waiting) sendsHeartbeats(ctx context.Context, now time.Time) bool {
	if w.e.cfg.Heartbeats == nil {
		return false
	}
	if now.Sub(w.looked) >= beatsEvery {
		w.looked = now
		for _, p := range w.e.cfg.Heartbeats(ctx, w.inv) {
			if p.UnixMs > w.beat && time.UnixMilli(p.UnixMs).After(w.begun) {
				w.beat, w.heard = p.UnixMs, now
			}
		}
	}
	return !w.heard.IsZero() && now.Sub(w.heard) < freshBeat
}

func (w *waiting) failLost(ctx context.Context, why string) disdel.Activation {
	c := newClassifier(w.inv, Record{ID: w.id}, w.e.heartbeats(ctx, w.inv, w.begun))
	c.addEvidence("OpenWhisk has no record of activation %s after %v", w.id, time.Since(w.begun).Round(time.Second))
	c.addEvidence("%s", why)
	c.fail(disdel.OutcomeLost, disdel.Lost, "OpenWhisk accepted it and lost it: "+why,
		"submit the job again; an invoker may have been restarted")
	return c.close()
}

func (w *waiting) failNeverServed(ctx context.Context) disdel.Activation {
	c := newClassifier(w.inv, Record{ID: w.id}, w.e.heartbeats(ctx, w.inv, w.begun))
	c.addEvidence("OpenWhisk has no record of activation %s after %v, nor of a request that was sent after it", w.id,
		time.Since(w.begun).Round(time.Second))
	c.fail(disdel.OutcomeLost, disdel.Lost, "it waited in OpenWhisk's queue, which served nothing",
		"an action with more memory than the pool waits forever: --pool-memory SIZE sets the pool's memory; "+
			"otherwise submit the job again when the platform has room")
	c.a.Failure.Code = disdel.CodeNeverServed
	return c.close()
}

// probes has the newest probe of each action. Only one wait at a time sends or looks up probes; the others wait until
// their contexts end.
type probes struct {
	turn     chan struct{} // holds a value while a probe has its turn
	byAction map[disdel.ActionName]*probe
}

// probe is a request to an action that asks for nothing and ends at once.
type probe struct {
	sent   time.Time
	looked time.Time
	id     disdel.ActivationID // "": not accepted
	served time.Time           // when its record was found
	gone   bool                // the action does not exist
	// OpenWhisk may lose a probe too. Another one is sent at the time again, and wait later the next, up to a bound.
	again time.Time
	wait  time.Duration
	older []disdel.ActivationID // sent before id
}

const (
	// probeEvery is the time between probes that are not accepted.
	probeEvery = 5 * time.Second
	// probeAgain is the time until a second probe. Each later one takes twice as long, up to probeLast.
	probeAgain = 5 * time.Minute
	probeLast  = 20 * time.Minute
)

// probe returns the state of a probe of inv's action that was sent after since. The first caller sends it.
func (e *Executor) probe(ctx context.Context, inv disdel.Invocation, since time.Time) probe {
	select {
	case e.probes.turn <- struct{}{}:
	case <-ctx.Done():
		return probe{}
	}
	defer func() { <-e.probes.turn }()
	now := time.Now()
	p := e.probes.byAction[inv.Action]
	if p == nil || p.sent.Before(since) || p.id == "" && !p.gone && now.Sub(p.sent) > probeEvery {
		p = &probe{sent: now}
		e.probes.byAction[inv.Action] = p
		e.sendProbe(ctx, inv.Action, p)
	}
	if p.id != "" && p.served.IsZero() && now.After(p.again) {
		e.sendProbe(ctx, inv.Action, p)
	}
	if p.id != "" && p.served.IsZero() && now.Sub(p.looked) >= min(beatsEvery, e.cfg.PollEvery) {
		p.looked = now
		if e.hasRecord(ctx, p.id) || slices.ContainsFunc(p.older, func(id disdel.ActivationID) bool {
			return e.hasRecord(ctx, id)
		}) {
			p.served = now
		}
	}
	return *p
}

// sendProbe sends a probe, beside those that were sent before.
func (e *Executor) sendProbe(ctx context.Context, action disdel.ActionName, p *probe) {
	invocation := disdel.Invocation{Task: disdel.TaskProbe, Action: action}
	id, err := e.invokePaced(ctx, invocation, map[string]any{"probe": true})
	e.quotas.removeWaiting(waiterOf(&invocation)) // probes are not shown as waiting
	p.wait = min(max(2*p.wait, probeAgain), probeLast)
	p.again = time.Now().Add(p.wait)
	p.gone = disdel.KindOf(err) == disdel.NotFound
	if id == "" {
		return
	}
	if p.id != "" {
		p.older = append(p.older, p.id)
	}
	p.id = id
}

func (e *Executor) hasRecord(ctx context.Context, id disdel.ActivationID) bool {
	c := e.client(ctx)
	_, _, err := c.Activations.Get(string(id))
	return err == nil
}
