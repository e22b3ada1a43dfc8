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
// what those have left who are no more. It lasts until over is called, whatever became of ctx.
func (s *Service) waits(ctx context.Context, q *question) (over func(context.Context) error, err error) {
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
	return func(ctx context.Context) error { return q.shelf.EndWait(ctx, q.pkg) }, q.shelf.Wait(ctx, q.pkg, text)
}

// sweep takes away what those have left who were killed while they waited: inputs, answers, and their actions. What
// cannot be taken away now is there the next time, and keeps nothing else from going.
func (s *Service) sweep(ctx context.Context, q *question, where string) {
	all, err := q.shelf.Waiting(ctx)
	for _, w := range all {
		if s.abandoned(ctx, w, where) {
			err = errors.Join(err, q.takeAway(ctx, w.Name))
		}
	}
	if err != nil {
		s.log.WithError(err).Debug("what killed processes left beside the models stays for now")
	}
}

// takeAway takes away what lies beside the models under a name, and last the note of who waits for it.
func (q *question) takeAway(ctx context.Context, name string) error {
	if err := q.shelf.DiscardAnswers(ctx, path.Join(answersFolder, name)); err != nil {
		return err
	}
	if err := q.shelf.Discard(ctx, path.Join(inputsFolder, name)); err != nil {
		return err
	}
	q.executor.Remove(ctx, name) //nolint:errcheck // mostly it is not there: platforms end with their process
	return q.shelf.EndWait(ctx, name)
}

// abandoned tells whether nobody waits any more: the process is seen to have ended, or its session, in this Service's
// own history, has for a while. There is no hurry, and a session that could not be renewed is no proof. Of whom nothing
// is known is left alone.
func (s *core) abandoned(ctx context.Context, one modelstore.Waiting, where string) bool {
	var w waiting
	if json.Unmarshal(one.Who, &w) != nil || w.Owner.Token == "" || w.Owner.Token == s.token {
		return false
	}
	switch {
	case w.Owner.Gone():
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
