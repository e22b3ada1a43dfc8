package aggregator

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

var (
	//go:embed lua/commit.lua
	commitLua string

	commitScript = redis.NewScript(commitLua)
)

// commit makes a staged value the one that readers see, if the claim on work still stands and nothing else was
// committed in its place. A value that is there already with the same content is a success. It returns Conflict
// otherwise; what was staged in vain is deleted.
func (s *Store) commit(ctx context.Context, t staging, work disdel.UpdateID, fence uint64) error {
	h, op := t.head, "commit "+t.head.kind.String()
	if fence != h.fence {
		s.discard(ctx, h.id.Job, t.entry())
		return conflict(op, h.id, fmt.Sprintf("it was made under fence %d, not %d", h.fence, fence))
	}
	verdict, replaced, err := s.runCommit(ctx, t, work, fence)
	if err != nil {
		return wrap(err, op, h.id.String()) // it may have been committed all the same: leave it to the sweep
	}
	switch verdict {
	case "done":
		if replaced != "" {
			s.discard(ctx, h.id.Job, replaced)
		}
		return nil
	case "same":
		s.discard(ctx, h.id.Job, t.entry())
		return nil
	}
	s.discard(ctx, h.id.Job, t.entry())
	why := map[string]string{
		"other": "another one was committed before", "stale": "another attempt has taken over",
		"round": "its round is not the one that is open",
		"head":  "the header carries another fence",
	}[verdict]
	return conflict(op, h.id, why)
}

func (s *Store) runCommit(ctx context.Context, t staging, work disdel.UpdateID, fence uint64) (verdict, replaced string,
	err error,
) {
	h := t.head
	table, field := s.keys.references(h.id.Job), strconv.Itoa(h.id.Round)
	if h.kind == kindState {
		table, field = s.keys.states(h.id.Job), fmt.Sprintf("%d:%d", h.id.Round, h.id.Member)
		if h.id.Level > 0 {
			field += fmt.Sprintf(":%d", h.id.Level)
		}
	}
	keys := []string{
		s.keys.work(work), t.key, s.keys.value(h.kind, h.id), s.keys.counts(h.id.Job), s.keys.index(h.id.Job), table,
		s.keys.references(h.id.Job),
	}
	reply, err := commitScript.Run(ctx, s.client, keys, h.kind.String(), strconv.FormatUint(fence, 10),
		binary.LittleEndian.AppendUint64(nil, h.fence), h.digest(), h.id.Round, field, t.entry(),
		entry(s.keys.work(work), 0), seconds(keyLife), s.slack).StringSlice()
	if err != nil {
		return "", "", err
	}
	return reply[0], reply[1], nil
}

// Counts is what was refused of a job.
type Counts struct {
	Duplicates int // deliveries of what was there already
	Stale      int // results of a claim that somebody else had taken over
	Damaged    int // values that a reader refused
}

// Counts returns how much of a job was refused so far.
func (s *Store) Counts(ctx context.Context, job disdel.JobID) (Counts, error) {
	all, err := s.client.HGetAll(ctx, s.keys.counts(job)).Result()
	if err != nil {
		return Counts{}, wrap(err, "read counts", string(job))
	}
	number := func(name string) int {
		n, _ := strconv.Atoi(all[name])
		return n
	}
	return Counts{Duplicates: number("duplicates"), Stale: number("stale"), Damaged: number("damaged")}, nil
}

// countDamage counts err if it is about a value that must not be used, and returns it.
func (s *Store) countDamage(ctx context.Context, job disdel.JobID, err error) error {
	if !damaged(err) {
		return err
	}
	s.client.Pipelined(ctx, func(p redis.Pipeliner) error { // a count that is lost is no reason to hide the error
		p.HIncrBy(ctx, s.keys.counts(job), "damaged", 1)
		p.Expire(ctx, s.keys.counts(job), keyLife)
		return nil
	})
	return err
}
