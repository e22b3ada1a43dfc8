package executor

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/disdel/disdel"
)

// The pauses between the tries of one call. One that OpenWhisk refused for a quota counted against it all the same, so
// that these are longer.
const (
	firstPause   = 50 * time.Millisecond
	firstRefused = time.Second
	longestPause = 10 * time.Second
	outagePause  = time.Second // at most, while it does not answer: it is to be noticed soon that it is back
)

// withRetries repeats a call while its error is Unavailable, with growing pauses: while OpenWhisk does not answer for
// as long as the executor's patience says; while it asks to come later for busy; when the minute's quota is used up,
// until the minute has turned (OpenWhisk counts by the wall clock).
func withRetries[T any](ctx context.Context, e *Executor, busy time.Duration, call func() (T, error)) (T, error) {
	return repeat(ctx, e, e.cfg.Patience, busy, call)
}

func repeat[T any](ctx context.Context, e *Executor, patience, busy time.Duration, call func() (T, error)) (T, error) {
	var begun time.Time // the first failure: a call may wait for a quota of ours before it asks
	pause := time.Duration(0)
	for {
		v, err := call()
		if disdel.KindOf(err) != disdel.Unavailable {
			return v, err
		}
		if begun.IsZero() {
			begun = time.Now()
		}
		failure := disdel.AsError(err)
		switch since, _, down := e.health.outage(); {
		case failure.Code == disdel.CodeUnreachable:
			pause = min(max(2*pause, firstPause), outagePause)
			if down && time.Since(since) >= patience {
				return v, e.unreachable(failure.Op)
			}
		case time.Since(begun) >= busy:
			return v, err
		case failure.Code == disdel.CodeQuotaMinute:
			pause = firstPause // the next try waits until the quota may have room: invoke has noted the refusal
		case failure.Code == disdel.CodeQuotaConcurrent:
			pause = min(max(2*pause, firstRefused), longestPause)
		default:
			pause = min(max(2*pause, firstPause), longestPause)
		}
		next := time.Now().Add(pause/2 + rand.N(pause/2+1))
		if !sleep(ctx, time.Until(next)) {
			return v, &disdel.Error{Kind: disdel.Canceled, Op: failure.Op, Err: context.Cause(ctx)}
		}
	}
}

func untilNextMinute(now time.Time) time.Duration {
	return now.Truncate(time.Minute).Add(time.Minute).Sub(now)
}

// sleep returns false if ctx ends before d has passed.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(max(0, d))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

const (
	// silence is how long OpenWhisk may take for an answer before it counts as not answering. A refused connection counts
	// as soon, since a server that is being restarted is back within it.
	silence = 1500 * time.Millisecond
	// patience is how long a job waits for an OpenWhisk that does not answer, and how long a call is repeated while it
	// asks to come later.
	patience = 3 * time.Minute
	// firstPatience is that of a command's first call: nothing is under way that would be lost, and the address may be
	// wrong.
	firstPatience = 3 * time.Second
)

// health is whether OpenWhisk answers, as all calls of an executor find it together: one outage is one outage, whoever
// asks.
type health struct {
	mu       sync.Mutex
	asked    time.Time // the first call since the last answer; zero: every call was answered
	why      string    // what the last call that failed met
	answered time.Time // the last answer
	returned time.Time // when the newest outage was over
}

// ask notes that a call is on its way.
func (h *health) ask() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked.IsZero() {
		h.asked, h.why = time.Now(), "no answer"
	}
}

// heard notes that an answer came, whatever it says.
func (h *health) heard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if !h.asked.IsZero() && h.why != "no answer" || !h.asked.IsZero() && now.Sub(h.asked) > silence {
		h.returned = now
	}
	h.asked, h.answered = time.Time{}, now
}

// missed notes that no answer came.
func (h *health) missed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked.IsZero() {
		h.asked = time.Now()
	}
	h.why = plainly(err)
}

// outage is since when OpenWhisk does not answer, and why; false where it does.
func (h *health) outage() (since time.Time, why string, down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked.IsZero() || time.Since(h.asked) < silence {
		return since, "", false
	}
	return h.asked, h.why, true
}

// back is when the newest outage was over; zero: there was none.
func (h *health) back() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.returned
}

// plainly says why there was no answer, without addresses, which may hold more than they should.
func plainly(err error) string {
	var dns *net.DNSError
	var network net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset"
	case errors.As(err, &dns):
		return "there is no host of this name"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) &&
		network.Timeout():
		return "no answer"
	default:
		return "the connection broke off"
	}
}

// Outage says since when OpenWhisk does not answer and why; false where it does. Until is when it is given up.
func (e *Executor) Outage() (disdel.Outage, bool) {
	since, why, down := e.health.outage()
	if !down {
		return disdel.Outage{}, false
	}
	return disdel.Outage{Host: e.cfg.APIHost, Since: since, Until: since.Add(e.cfg.Patience), Why: why}, true
}

// unreachable is the error of a call that was given up.
func (e *Executor) unreachable(op string) *disdel.Error {
	since, why, _ := e.health.outage()
	waited := time.Duration(0)
	if !since.IsZero() {
		waited = time.Since(since).Round(time.Second)
	}
	return &disdel.Error{
		Kind: disdel.Unavailable, Code: disdel.CodeUnreachable, Op: op,
		Msg: "OpenWhisk at " + e.cfg.APIHost + " does not answer (" + orElse(why, "no answer") + "), for " +
			waited.String() + " by now",
		Hint: "check that OpenWhisk runs at " + e.cfg.APIHost + ", and --apihost",
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
