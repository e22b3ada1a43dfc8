package service

import (
	"context"
	"fmt"

	"github.com/disdel/disdel"
)

// Forget deletes the record of a job that has ended, and what was said of it. Its model stays. It returns NotFound, and
// Conflict for a job that somebody may go on with.
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
