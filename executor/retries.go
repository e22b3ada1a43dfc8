package executor

import (
	"context"
	"math/rand/v2"
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
