package aggregator

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Keep marks what is there of a job as kept for whoever takes it up with the same mark. Like every key it is gone a day
// after its last write.
func (s *Store) Keep(ctx context.Context, job disdel.JobID, mark string) error {
	return wrap(s.client.Set(ctx, s.keys.kept(job), mark, keyLife).Err(), "keep job", string(job))
}

// TakeUp tells whether what was kept of a job under a mark is still there, and readies it: the job's actions are not
// asked to stop any more, and the mark is used up. What has no mark, or another one, is of another course of the job.
func (s *Store) TakeUp(ctx context.Context, job disdel.JobID, mark string) (bool, error) {
	got, err := s.client.Get(ctx, s.keys.kept(job)).Result()
	if errors.Is(err, redis.Nil) || err == nil && got != mark {
		return false, nil
	}
	if err == nil {
		err = s.client.Unlink(ctx, s.keys.kept(job), s.keys.cancel(job), s.keys.progress(job)).Err()
	}
	return err == nil, wrap(err, "take job up", string(job))
}
