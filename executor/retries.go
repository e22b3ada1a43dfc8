package executor

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/disdel/disdel"
)

// Pauses between the tries of one call. A request that OpenWhisk refused for a quota counts against the quota, so its
// pause is longer.
const (
	firstPause   = 50 * time.Millisecond
	firstRefused = time.Second
	longestPause = 10 * time.Second
	outagePause  = time.Second // longest pause during an outage, so that its end is noticed soon
)

// withRetries repeats a call while its error is Unavailable, with growing pauses. It retries an outage as long as the
// executor's patience, and other failures for busy. If the minute's quota is used up it waits for the next minute of
// the wall clock.
func withRetries[T any](ctx context.Context, e *Executor, busy time.Duration, call func() (T, error)) (T, error) {
	return repeat(ctx, e, e.cfg.Patience, busy, call)
}

func repeat[T any](ctx context.Context, e *Executor, patience, busy time.Duration, call func() (T, error)) (T, error) {
	var begun time.Time // the time of the first failure, because a call may first wait for a quota
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
			pause = firstPause // invoke has noted the refusal, so the next try waits for the quota
		case failure.Code == disdel.CodeQuotaConcurrent:
			pause = min(max(2*pause, firstRefused), longestPause)
		default:
			pause = min(max(2*pause, firstPause), longestPause)
		}
		next := time.Now().Add(pause/2 + e.cfg.Jitter(pause/2))
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
	// silence is how long OpenWhisk may take for an answer before that counts as an outage. A refused connection counts
	// only then too, because a restarting server is back earlier.
	silence = 1500 * time.Millisecond
	// patience is how long a job waits during an outage, and how long a call is retried while OpenWhisk is busy.
	patience = 3 * time.Minute
	// firstPatience is patience for a command's first call: nothing is lost yet, and the address may be wrong.
	firstPatience = 3 * time.Second
)

// health tracks whether OpenWhisk answers. All calls of an executor share it, so one outage counts once.
type health struct {
	mu       sync.Mutex
	asked    time.Time // the first unanswered call; zero: all were answered
	cause    string    // error of the last failed call
	answered time.Time // the last answer
	returned time.Time // end of the newest outage
}

// requestSent notes a request.
func (h *health) requestSent() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked.IsZero() {
		h.asked, h.cause = time.Now(), "no answer"
	}
}

// answerReceived notes an answer of any status.
func (h *health) answerReceived() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if !h.asked.IsZero() && h.cause != "no answer" || !h.asked.IsZero() && now.Sub(h.asked) > silence {
		h.returned = now
	}
	h.asked, h.answered = time.Time{}, now
}

// requestFailed notes a request without an answer.
func (h *health) requestFailed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked.IsZero() {
		h.asked = time.Now()
	}
	h.cause = networkText(err)
}

// outage returns the start and the cause of the current outage; false if there is none.
func (h *health) outage() (since time.Time, why string, down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked.IsZero() || time.Since(h.asked) < silence {
		return since, "", false
	}
	return h.asked, h.cause, true
}

// lastReturn is the end of the newest outage; zero: there was none.
func (h *health) lastReturn() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.returned
}

// networkText says why there was no answer, without addresses, which may contain secrets.
func networkText(err error) string {
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

// Outage returns the current outage, and until when calls are retried; false if there is none.
func (e *Executor) Outage() (disdel.Outage, bool) {
	since, why, down := e.health.outage()
	if !down {
		return disdel.Outage{}, false
	}
	return disdel.Outage{Host: e.cfg.APIHost, Since: since, Until: since.Add(e.cfg.Patience), Why: why}, true
}

// unreachable is the error of a call that was given up during an outage.
func (e *Executor) unreachable(op string) *disdel.Error {
	since, why, _ := e.health.outage()
	waited := time.Duration(0)
	if !since.IsZero() {
		waited = time.Since(since).Round(time.Second)
	}
	return &disdel.Error{
		Kind: disdel.Unavailable, Code: disdel.CodeUnreachable, Op: op,
		Msg: "OpenWhisk at " + e.cfg.APIHost + " does not answer (" + cmp.Or(why, "no answer") + "), for " +
			waited.String() + " by now",
		Hint: "check that OpenWhisk runs at " + e.cfg.APIHost + ", and --apihost",
	}
}
