package aggregator

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Check tells whether every server of the store answers and takes writes of a job. It deletes a key that nobody has: a
// read-only replica refuses that too. It returns Unavailable for a server that does not answer before ctx ends, and
// Denied for one that refuses the user or the write. The error names the server without its user and password.
func (s *Store) Check(ctx context.Context, job disdel.JobID) error {
	for _, server := range s.servers {
		once := *server.Options()
		once.MaxRetries = -1 // what a refusal says would be lost in tries
		client := redis.NewClient(&once)
		err := client.Unlink(ctx, s.keys.job(job)+":none").Err()
		client.Close() //nolint:errcheck // it was asked one thing
		if err == nil {
			continue
		}
		e := disdel.AsError(wrap(err, "check store", ""))
		out := &disdel.Error{Kind: e.Kind, Op: e.Op, Msg: "Redis at " + server.Options().Addr, Hint: e.Hint, Err: err}
		if redis.IsReadOnlyError(err) {
			out.Kind, out.Hint = disdel.Denied, "it is a replica, which takes no writes: name the server that it copies"
		}
		return out
	}
	return nil
}
