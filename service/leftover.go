package service

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
)

// waiting says, in a file beside the models, who waits for what actions read and write there under a question's name.
// What is left behind by one who is killed goes with the next question of somebody else, as jobs of a process that is
// no more are taken over by their leases.
type waiting struct {
	Owner   history.Owner `json:"owner"`
	History string        `json:"history"` // what tells the one that his session is in, "": nobody has seen him there
}

// The folders of a question beside the models: of what actions read, and of what they write.
const (
	inputsFolder  = "inputs"
	answersFolder = "answers"
)

// waits has others see that this Service waits for what lies beside the models under a question's name, and takes away
// what those have left who are no more. It lasts until over is called, even if ctx has ended: with gone, nothing lies
// there any more; else the next question takes it away.
func (s *Service) waits(ctx context.Context, q *question) (
	over func(ctx context.Context, gone bool) error, err error,
) {
	where := ""
	if seen, err := s.present(ctx); err == nil {
		where = seen.identity
	} else { // others then judge by the process alone
		s.log.WithError(err).Debug("this process cannot be seen by others")
	}
	s.sweep(ctx, q, where)
	text, err := json.Marshal(waiting{s.owner(), where})
	if err != nil {
		return nil, err
	}
	s.asks(q.pkg, true)
	if err := q.shelf.AddQuestion(ctx, q.pkg, text); err != nil {
		s.asks(q.pkg, false)
		return nil, err
	}
	return func(ctx context.Context, gone bool) error {
		defer s.asks(q.pkg, false)
		if !gone {
			return nil
		}
		return q.shelf.RemoveQuestion(ctx, q.pkg)
	}, nil
}

// asks notes whether a question of this Service is under way.
func (s *core) asks(name string, underWay bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if underWay {
		s.asking[name] = true
	} else {
		delete(s.asking, name)
	}
}

// isAsking tells whether a question of this Service is under way.
func (s *core) isAsking(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asking[name]
}

// sweep takes away what those have left who were killed while they waited, and what could not be taken away when a
// question of this Service ended: inputs, answers, and their actions. What cannot be taken away now is there the next
// time, and keeps nothing else from going. Of many who ask at once one sweeps.
func (s *Service) sweep(ctx context.Context, q *question, where string) {
	if !s.sweeping.TryLock() {
		return
	}
	defer s.sweeping.Unlock()
	all, err := q.shelf.PendingQuestions(ctx, s.isAsking)
	for _, w := range all {
		if s.abandoned(ctx, w, where) {
			err = errors.Join(err, q.takeAway(ctx, w.Name))
		}
	}
	if err != nil {
		s.log.WithError(err).Debug("what killed processes left beside the models stays for now")
	}
}

// takeAway takes away what lies beside the models under a name, and last the note of the waiting process.
func (q *question) takeAway(ctx context.Context, name string) error {
	if err := q.shelf.DiscardAnswers(ctx, path.Join(answersFolder, name)); err != nil {
		return err
	}
	if err := q.shelf.Discard(ctx, path.Join(inputsFolder, name)); err != nil {
		return err
	}
	err := q.executor.Remove(ctx, name)
	if err != nil && disdel.KindOf(err) != disdel.NotFound { // mostly it is not there: platforms end with their process
		return err
	}
	return q.shelf.RemoveQuestion(ctx, name)
}

// abandoned tells whether nobody waits any more: the question was this Service's and is not under way, the process is
// seen to have ended, or its session, in this Service's own history, has for a while. There is no hurry, and a session
// that could not be renewed is no proof. Of whom nothing is known is left alone.
func (s *core) abandoned(ctx context.Context, one modelstore.PendingQuestion, where string) bool {
	var w waiting
	if json.Unmarshal(one.Who, &w) != nil || w.Owner.Token == "" {
		return false
	}
	switch {
	case w.Owner.Token == s.token, w.Owner.Gone():
		return true
	case here(w.Owner) && w.Owner.Start != 0, where == "", w.History != where:
		return false
	}
	h, err := s.everything(ctx)
	if err != nil {
		return false
	}
	n, err := h.Note(ctx, history.NoteSession, w.Owner.Token)
	if disdel.KindOf(err) == disdel.NotFound { // it was there before the file was
		return time.Since(one.Since) > patience
	}
	return err == nil && !sessionOf(n).alive(time.Now().Add(-patience))
}
