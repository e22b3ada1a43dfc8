package aggregator

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

var (
	//go:embed lua/draw.lua
	drawLua string
	//go:embed lua/end.lua
	endLua string

	drawScript = redis.NewScript(drawLua)
	endScript  = redis.NewScript(endLua)
)

// DrawBatch is the batch of a round's queue, from 0 to batches-1, that the member which has the claim takes for a step
// of its own; ok is false where none is left, or none for that member, which is let go. Each batch is drawn once, and
// who asks again for a step, as a later attempt does, is given the same. It returns Conflict under a claim that is
// lost.
func (s *Store) DrawBatch(ctx context.Context, c Claim, step, batches int) (batch int, ok bool, err error) {
	id := c.ID
	draws := s.keys.draws(id.Job, id.Round)
	n, err := drawScript.Run(ctx, s.client, []string{s.keys.work(id), draws, s.keys.index(id.Job)},
		strconv.FormatUint(c.Fence, 10), fmt.Sprintf("%d:%d", step, id.Member), batches, seconds(keyLife), entry(draws, 0),
		letGo(id.Member)).Int()
	switch {
	case err != nil:
		return 0, false, wrap(err, "draw batch", id.String())
	case n == -2:
		return 0, false, conflict("draw batch", id, "another attempt has taken over")
	}
	return n, n >= 0, nil
}

// letGo is the field of a round's draws that says that a member is let go.
func letGo(member int) string { return fmt.Sprintf("go:%d", member) }

// LetGo has a member of a round whose batches are drawn from a queue find none left from now on: it sends what it owes
// and leaves, and the others draw what it would have. One that was let go before, or has left, changes nothing.
func (s *Store) LetGo(ctx context.Context, job disdel.JobID, round, member int) error {
	draws, index := s.keys.draws(job, round), s.keys.index(job)
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, index, entry(draws, 0))
		p.Expire(ctx, index, keyLife)
		p.HSet(ctx, draws, letGo(member), 1)
		p.Expire(ctx, draws, keyLife)
		return nil
	})
	return wrap(err, "let member go", fmt.Sprintf("%s round %d of %d", job, round, member))
}

// IsLetGo tells whether a member of a round was let go.
func (s *Store) IsLetGo(ctx context.Context, job disdel.JobID, round, member int) (bool, error) {
	err := s.client.HGet(ctx, s.keys.draws(job, round), letGo(member)).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, wrap(err, "look for leavers", fmt.Sprintf("%s round %d of %d", job, round, member))
}

// EndMember has the members of a round that exchange continue without one that will not come: what it has sent stays,
// what it owes is lost, a batch of the queue that it had and did not send is somebody else's, and an attempt of it that
// is still under way can send and deliver nothing more. A member that has left, or was ended before, changes nothing.
func (s *Store) EndMember(ctx context.Context, job disdel.JobID, round, member int) error {
	work := s.keys.work(disdel.UpdateID{Job: job, Round: round, Member: member})
	table, log, news := s.keys.deltas(job, round), s.keys.log(job, round), s.keys.news(job, round)
	err := endScript.Run(ctx, s.client, []string{work, table, log, s.keys.draws(job, round), s.keys.index(job), news},
		member, seconds(keyLife), entry(work, 0), entry(table, 0), entry(log, 0), entry(news, 0)).Err()
	return wrap(err, "end member", fmt.Sprintf("%s round %d of %d", job, round, member))
}
