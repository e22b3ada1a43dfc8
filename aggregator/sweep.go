package aggregator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Progress returns the last heartbeat of every action of the newest round: train first, then by level and member.
func (s *Store) Progress(ctx context.Context, job disdel.JobID) ([]disdel.Progress, error) {
	all, err := s.client.HGetAll(ctx, s.keys.progress(job)).Result()
	if err != nil {
		return nil, wrap(err, "read progress", string(job))
	}
	out := make([]disdel.Progress, 0, len(all))
	newest := 0
	for name, text := range all {
		var p disdel.Progress
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read progress", Job: job, Msg: name, Err: err}
		}
		newest = max(newest, p.Round)
		out = append(out, p)
	}
	out = slices.DeleteFunc(out, func(p disdel.Progress) bool { return p.Round < newest })
	slices.SortFunc(out, func(a, b disdel.Progress) int {
		return cmp.Or(cmp.Compare(b.Task, a.Task), a.Level-b.Level, a.Member-b.Member)
	})
	return out, nil
}

// Cancel stops every action of the job at its next heartbeat or renewal.
func (s *Store) Cancel(ctx context.Context, job disdel.JobID) error {
	return wrap(s.client.Set(ctx, s.keys.cancel(job), "1", keyLife).Err(), "cancel job", string(job))
}

// DropRound deletes the updates, claims and states of a round and the reference that it started from. It deletes all
// heartbeats too; running actions soon send new ones.
func (s *Store) DropRound(ctx context.Context, job disdel.JobID, round int) error {
	return s.drop(ctx, job, []string{s.keys.progress(job)}, append(deltaPrefixes(round), fmt.Sprintf("update:%d:", round),
		fmt.Sprintf("work:%d:", round), fmt.Sprintf("state:%d:", round), fmt.Sprintf("reference:%d:", round),
		fmt.Sprintf("shard:%d:", round))...)
}

// Forget deletes the updates, claims and deltas of a round that will run again in another way, for example with other
// shards. Results that are still made for the old one are refused, because their claims are gone.
func (s *Store) Forget(ctx context.Context, job disdel.JobID, round int) error {
	return s.drop(ctx, job, nil, append(deltaPrefixes(round), fmt.Sprintf("update:%d:", round),
		fmt.Sprintf("work:%d:", round), fmt.Sprintf("shard:%d:", round+1))...)
}

// drop deletes the values of a job whose keys have one of the prefixes, and the keys in more.
func (s *Store) drop(ctx context.Context, job disdel.JobID, more []string, prefixes ...string) error {
	all, _, err := s.deleteClaims(ctx, job, func(name string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	})
	if err != nil {
		return wrap(err, "drop round", string(job))
	}
	return wrap(s.remove(ctx, job, append(all, more...)), "drop round", string(job))
}

// deleteClaims returns the job's index entries whose names drop selects, after it has deleted their claims; n is the
// number of claims. Claims go first, because running work commits under its claim and would leave a value in a
// restarted round.
func (s *Store) deleteClaims(ctx context.Context, job disdel.JobID, drop func(name string) bool) (all []string, n int,
	err error,
) {
	entries := func(want func(name string) bool) ([]string, error) {
		all, err := s.client.SMembers(ctx, s.keys.index(job)).Result()
		return slices.DeleteFunc(all, func(text string) bool {
			return !want(strings.TrimPrefix(text, s.keys.job(job)+":"))
		}), err
	}
	claims, err := entries(func(name string) bool { return strings.HasPrefix(name, claimPrefix) && drop(name) })
	if err != nil {
		return nil, 0, err
	}
	if n, err = s.unlink(ctx, claims); err != nil {
		return nil, n, err
	}
	all, err = entries(drop)
	return all, n, err
}

// Sweep deletes every key of the job on every server and returns their number.
func (s *Store) Sweep(ctx context.Context, job disdel.JobID) (int, error) {
	all, claims, err := s.deleteClaims(ctx, job, func(string) bool { return true })
	if err != nil {
		return claims, wrap(err, "sweep job", string(job))
	}
	n, err := s.unlink(ctx, all)
	n += claims
	if err != nil {
		return n, wrap(err, "sweep job", string(job))
	}
	more, err := s.client.Unlink(ctx, s.keys.single(job)...).Result()
	return n + int(more), wrap(err, "sweep job", string(job))
}

// remove deletes the keys of index entries, and then the entries.
func (s *Store) remove(ctx context.Context, job disdel.JobID, entries []string) error {
	if len(entries) == 0 {
		return nil
	}
	if _, err := s.unlink(ctx, entries); err != nil {
		return err
	}
	members := make([]any, len(entries))
	for i, e := range entries {
		members[i] = e
	}
	return s.client.SRem(ctx, s.keys.index(job), members...).Err()
}

// unlinkBatch is how many keys one command deletes.
const unlinkBatch = 500

// unlink deletes the keys of index entries on their servers. Redis frees the memory in the background.
func (s *Store) unlink(ctx context.Context, entries []string) (int, error) {
	places := s.keysByServer(entries)
	total := 0
	for _, server := range s.servers {
		for batch := range slices.Chunk(places[server], unlinkBatch) {
			n, err := server.Unlink(ctx, batch...).Result()
			if err != nil {
				return total, err
			}
			total += int(n)
		}
	}
	return total, nil
}

// keysByServer are the keys of index entries by server.
func (s *Store) keysByServer(entries []string) map[*server][]string {
	out := map[*server][]string{}
	for _, e := range entries {
		key, parts := entryKeys(e)
		out[s.client] = append(out[s.client], key)
		for _, p := range parts {
			out[s.server(p)] = append(out[s.server(p)], p)
		}
	}
	return out
}

// Keep marks a job's data as kept for a resumed run with the same mark, and extends its life by a day.
func (s *Store) Keep(ctx context.Context, job disdel.JobID, mark string) error {
	all, err := s.client.SMembers(ctx, s.keys.index(job)).Result()
	if err == nil {
		err = s.extend(ctx, append(all, s.keys.single(job)...))
	}
	if err == nil {
		err = s.client.Set(ctx, s.keys.kept(job), mark, keyLife).Err()
	}
	return wrap(err, "keep job", string(job))
}

// extend renews the expiry of the keys of index entries. Missing keys stay missing.
func (s *Store) extend(ctx context.Context, entries []string) error {
	for server, names := range s.keysByServer(entries) {
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

// TakeUp returns true if a job's kept data with this mark is still there. It uses up the mark and clears the cancel
// request. Another mark or none belongs to another run of the job.
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
