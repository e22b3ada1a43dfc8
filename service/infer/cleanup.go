package infer

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/service/lease"
)

// waiting is the content of a file beside the models: the process that waits for the files that actions read and write
// there under the name of a query. If that process is killed, the next query of another process removes those files.
type waiting struct {
	Owner   history.Owner `json:"owner"`
	History string        `json:"history"` // identity of the history with the owner's session; "": there is no session
}

// The folders of a query beside the models: what its actions read, and what they write.
const (
	inputsFolder  = "inputs"
	answersFolder = "answers"
)

// waits notes beside the models that this process waits for the files of a query, and removes what killed processes
// left there. The caller calls over at the end, even if ctx has ended: with gone if it removed the files of the query,
// else the next query removes them.
func (s *Predictor) waits(ctx context.Context, q *query) (
	over func(ctx context.Context, gone bool) error, err error,
) {
	where, err := s.cfg.Session(ctx)
	if err != nil { // others then go by the process only
		s.cfg.Log.WithError(err).Debug("this process cannot be seen by others")
	}
	s.sweep(ctx, q, where)
	text, err := json.Marshal(waiting{s.cfg.Owner, where})
	if err != nil {
		return nil, err
	}
	end := s.cfg.UnderWay.Begin(q.pkg)
	if err := q.shelf.AddQuestion(ctx, q.pkg, text); err != nil {
		end()
		return nil, err
	}
	return func(ctx context.Context, gone bool) error {
		defer end()
		if !gone {
			return nil
		}
		return q.shelf.RemoveQuestion(ctx, q.pkg)
	}, nil
}

// UnderWay is the names of the queries of a process that have not ended. All Predictors of a process share it. The zero
// value is empty.
type UnderWay struct {
	mu    sync.Mutex
	names map[string]bool // guarded by mu
}

// Begin adds a name until end is called.
func (u *UnderWay) Begin(name string) (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil {
		u.names = map[string]bool{}
	}
	u.names[name] = true
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.names, name)
	}
}

func (u *UnderWay) has(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.names[name]
}

// sweep removes the inputs, answers and actions that killed processes left, and those that could not be removed when a
// query of this process ended. What cannot be removed now stays until the next time. Of several queries at once only
// one sweeps.
func (s *Predictor) sweep(ctx context.Context, q *query, where string) {
	if !s.sweeping.TryLock() {
		return
	}
	defer s.sweeping.Unlock()
	all, err := q.shelf.PendingQuestions(ctx, s.cfg.UnderWay.has)
	for _, w := range all {
		if s.abandoned(ctx, w, where) {
			err = errors.Join(err, q.remove(ctx, w.Name))
		}
	}
	if err != nil {
		s.cfg.Log.WithError(err).Debug("what killed processes left beside the models stays for now")
	}
}

// remove removes the files and actions of a query by its name, and last the note of the waiting process.
func (q *query) remove(ctx context.Context, name string) error {
	if err := q.shelf.DiscardAnswers(ctx, path.Join(answersFolder, name)); err != nil {
		return err
	}
	if err := q.shelf.Discard(ctx, path.Join(inputsFolder, name)); err != nil {
		return err
	}
	err := q.executor.Remove(ctx, name)
	if err != nil && disdel.KindOf(err) != disdel.NotFound { // actions of an embedded platform are gone
		return err
	}
	return q.shelf.RemoveQuestion(ctx, name)
}

// abandoned reports whether nobody waits for a query any more: it was of this process and is not under way, its process
// has ended, or its session, in this process's own history, ended a while ago. A session that was not renewed for a
// short time is no proof. Queries of unknown processes are kept for lease.Patience.
func (s *Predictor) abandoned(ctx context.Context, one modelstore.PendingQuestion, where string) bool {
	var w waiting
	if json.Unmarshal(one.Who, &w) != nil || w.Owner.Token == "" {
		return false
	}
	switch {
	case w.Owner.Token == s.cfg.Owner.Token, w.Owner.Gone():
		return true
	case lease.Here(w.Owner) && w.Owner.Start != 0, where == "", w.History != where:
		return false
	}
	h, err := s.cfg.History(ctx)
	if err != nil {
		return false
	}
	alive, known, err := lease.SessionAlive(ctx, h, w.Owner.Token, time.Now().Add(-lease.Patience))
	if err == nil && !known { // the session was there before the file
		return time.Since(one.Since) > lease.Patience
	}
	return err == nil && !alive
}
