package service

import (
	"context"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// Forget deletes the record of a job that has ended, and the remarks about it. Its model stays. A damaged record is
// deleted as well, unless somebody runs its job. A record of another version of disdel stays. Forget returns NotFound,
// and Conflict for a job that somebody may resume.
func (s *Service) Forget(ctx context.Context, job string) (disdel.JobID, error) {
	h, err := s.History(ctx)
	if err != nil {
		return "", err
	}
	id, err := h.Resolve(ctx, job)
	if err != nil {
		return "", err
	}
	rec, err := h.Get(ctx, id)
	if damaged(err) {
		return id, s.forgetUnread(ctx, h, id)
	}
	if err != nil {
		return id, err
	}
	if rec.Status < disdel.StatusSucceeded {
		return id, &disdel.Error{
			Kind: disdel.Conflict, Op: "delete record", Job: id, Msg: fmt.Sprintf("%s is %s", id, rec.Status),
			Hint: "disdel job cancel " + string(id),
		}
	}
	return id, h.Delete(ctx, id)
}

// damaged tells whether a record can be read by no version of disdel. One of a newer version may be of a job that runs.
func damaged(err error) bool {
	if err == nil {
		return false
	}
	e := disdel.AsError(err)
	return e.Code == disdel.CodeUnreadable && e.Kind == disdel.Corrupt
}

// forgetUnread deletes a record that cannot be read. Its lease is the only sign that its job still runs.
func (s *Service) forgetUnread(ctx context.Context, h *history.Store, id disdel.JobID) error {
	who, runs, err := s.Runner(ctx, id)
	switch {
	case err != nil:
		return err
	case runs:
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "delete record", Job: id, Msg: fmt.Sprintf("%s still runs in %s", id, who.Text),
			Hint: "wait until it has ended",
		}
	}
	return h.Delete(ctx, id)
}
