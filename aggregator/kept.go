package aggregator

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Keep marks what is there of a job as kept for whoever takes it up with the same mark. All of it is there for a day
// from now on, whenever it was written.
func (s *Store) Keep(ctx context.Context, job disdel.JobID, mark string) error {
	all, err := s.client.SMembers(ctx, s.keys.index(job)).Result()
	if err == nil {
		err = s.prolong(ctx, append(all, s.keys.single(job)...))
	}
	if err == nil {
		err = s.client.Set(ctx, s.keys.kept(job), mark, keyLife).Err()
	}
	return wrap(err, "keep job", string(job))
}

// prolong has the keys of index entries be there for as long as if they were written now. One that is gone stays so.
func (s *Store) prolong(ctx context.Context, entries []string) error {
	for server, names := range s.places(entries) {
		for batch := range slices.Chunk(names, unlinkBatch) {
			_, err := server.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, key := range batch {
					pipe.Expire(ctx, key, keyLife)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
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
