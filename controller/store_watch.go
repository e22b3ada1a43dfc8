package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

// How a store that is away is told from one that starts again: it is asked every storeEvery, and each answer may take
// storeAnswer. A store that does not answer for storePatience is gone. One that answers with a refusal, such as of a
// password, is given storeRefusals tries.
const (
	storeEvery    = 2 * time.Second
	storeAnswer   = 5 * time.Second
	storePatience = 20 * time.Second
	storeRefusals = 3
)

// watchStore asks the store whether it is there, again and again until the stop that it returns is called. Where it is
// gone, actions would be tried again for minutes, and each would fail with an error of its own: the cause is said
// once.
func (r *run) watchStore(ctx context.Context) (gone <-chan *disdel.Error, stop func()) {
	out := make(chan *disdel.Error, 1)
	ctx, stop = context.WithCancel(ctx)
	if r.spec.Job.Distribution.Missing.Policy == disdel.MissingWait { // it waits for as long as it takes
		return out, stop
	}
	r.running.Go(func() {
		var first time.Time // of the checks that failed in a row
		failed, refused := 0, 0
		for wait(ctx, storeEvery) {
			begun := r.c.cfg.Now()
			err := r.checkStore(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err == nil:
				failed, refused = 0, 0
				continue
			case failed == 0:
				first = begun
				r.log.WithError(err).Warnf("the store does not work; the job is given up if it does not for %v", storePatience)
			}
			failed++
			if errors.Is(err, disdel.Denied) {
				refused++
			}
			if away := r.c.cfg.Now().Sub(first); away >= storePatience || refused >= storeRefusals {
				out <- r.storeGone(err, failed, away)
				return
			}
		}
	})
	return out, stop
}

func (r *run) checkStore(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, storeAnswer)
	defer stop()
	return r.c.cfg.Board.Check(ctx, r.spec.ID)
}

// storeGone is the failure of a job whose store is gone.
func (r *run) storeGone(why error, tries int, away time.Duration) *disdel.Error {
	e := disdel.AsError(why)
	hint := e.Hint
	if e.Kind != disdel.Denied {
		hint = "start it again, or name another one with --redis"
	}
	return &disdel.Error{
		Kind: e.Kind, Code: disdel.CodeStoreGone, Op: "use store", Job: r.spec.ID, Err: e.Err,
		Msg: fmt.Sprintf("%s did not work in %d checks over %v, and the job cannot go on without it", e.Msg, tries,
			away.Round(time.Second)),
		Hint: fmt.Sprintf("%s; then disdel resume %s", hint, r.spec.ID),
	}
}

// storeIsGone tells whether the job has ended for its store. What lies there expires by itself.
func (r *run) storeIsGone() bool {
	return r.rec.Failure != nil && r.rec.Failure.Code == disdel.CodeStoreGone
}
