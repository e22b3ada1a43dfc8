package aggregator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

var (
	//go:embed lua/delta.lua
	deltaLua string

	deltaScript = redis.NewScript(deltaLua)
)

// CommitDelta stores what the member that has the claim sends of a step (from 1), and tells who waits for it. Once
// there, a step's delta never changes: the same again changes nothing, as from a later attempt that comes to the same;
// another one is a Conflict, and so is one under a claim that is lost. Errors are PushUpdate's otherwise.
func (s *Store) CommitDelta(ctx context.Context, c Claim, step int, data []byte) error {
	sum := sha256.Sum256(data)
	digest, job := hex.EncodeToString(sum[:]), c.ID.Job
	token := make([]byte, 8)
	rand.Read(token)
	key := fmt.Sprintf("%s:%d:%s", s.keys.delta(c.ID, step), c.Fence, hex.EncodeToString(token))
	e := entry(key, 1)
	if err := s.register(ctx, job, e); err != nil {
		return wrap(err, "send delta", c.ID.String())
	}
	at := part(key, 0)
	if err := patient(s.server(at)).Set(ctx, at, data, keyLife).Err(); err != nil {
		s.discard(ctx, job, e)
		return wrap(err, "send delta", c.ID.String())
	}
	table, log := s.keys.deltas(job, c.ID.Round), s.keys.log(job, c.ID.Round)
	keys := []string{s.keys.work(c.ID), table, log, s.keys.counts(job), s.keys.index(job)}
	verdict, err := deltaScript.Run(ctx, s.client, keys, strconv.FormatUint(c.Fence, 10),
		fmt.Sprintf("%d:%d", step, c.ID.Member), digest, e, step, c.ID.Member, len(data), seconds(keyLife), entry(table, 0),
		entry(log, 0)).Text()
	switch {
	case err != nil:
		return wrap(err, "send delta", c.ID.String()) // it may be there all the same: leave it to the sweep
	case verdict == "done":
		return nil
	}
	s.discard(ctx, job, e)
	switch verdict {
	case "same":
		return nil
	case "other":
		return conflict("send delta of step "+strconv.Itoa(step), c.ID, "another one was sent before")
	default:
		return conflict("send delta of step "+strconv.Itoa(step), c.ID, "another attempt has taken over")
	}
}

// Deltas follows what the members of a round send, in its log. It is for one goroutine.
type Deltas struct {
	store   *Store
	job     disdel.JobID
	round   int
	members int
	last    string              // entry of the log that was read last
	sent    map[int][]sentDelta // by step: what is there of it, by member
}

// sentDelta is a delta that was committed.
type sentDelta struct {
	digest, entry string // entry "": it was not sent yet
	bytes         int
}

// Deltas follows a round of so many members from its beginning.
func (s *Store) Deltas(job disdel.JobID, round, members int) *Deltas {
	return &Deltas{store: s, job: job, round: round, members: members, last: "0", sent: map[int][]sentDelta{}}
}

// IdleEvery is how long one read of the log waits, and the time between calls of idle. It is short, so that a wait
// whose context ends does not hold its connection for long.
const IdleEvery = 250 * time.Millisecond

// logCount is how many entries of the log are read at once.
const logCount = 4096

// Wait returns once every member's delta of a step is there. While it waits it calls idle every IdleEvery. It
// returns what idle does, and the context's cause when that ends first.
func (d *Deltas) Wait(ctx context.Context, step int, idle func() error) error {
	return d.wait(ctx, func() bool { return d.complete(step) }, idle)
}

// Own is what a member has sent of a step. It waits as Wait does, though not for others.
func (d *Deltas) Own(ctx context.Context, step, member int) ([]byte, error) {
	sent := func() bool { return d.sent[step] != nil && d.sent[step][member].entry != "" }
	if err := d.wait(ctx, sent, func() error { return nil }); err != nil {
		return nil, err
	}
	return d.fetch(ctx, step, member)
}

func (d *Deltas) wait(ctx context.Context, there func() bool, idle func() error) error {
	for !there() {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := d.read(ctx); err != nil {
			if deadline, limited := ctx.Deadline(); limited && !time.Now().Before(deadline) {
				<-ctx.Done() // its connection saw the deadline first
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return wrap(err, "follow deltas", fmt.Sprintf("%s round %d", d.job, d.round))
		}
		if there() {
			break
		}
		if err := idle(); err != nil {
			return err
		}
	}
	return nil
}

// complete tells whether every member's delta of a step has been seen.
func (d *Deltas) complete(step int) bool {
	sent := d.sent[step]
	return len(sent) == d.members && !slices.ContainsFunc(sent, func(s sentDelta) bool { return s.entry == "" })
}

// read takes what is new in the log, waiting for it for a while.
func (d *Deltas) read(ctx context.Context) error {
	streams, err := d.store.client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{d.store.keys.log(d.job, d.round), d.last}, Count: logCount, Block: IdleEvery,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, stream := range streams {
		for _, m := range stream.Messages {
			d.last = m.ID
			d.take(m.Values)
		}
	}
	return nil
}

// take notes an entry of the log. What is no entry of ours is passed over: nobody is waited for by it.
func (d *Deltas) take(values map[string]any) {
	text := func(name string) string { return fmt.Sprint(values[name]) }
	step, err1 := strconv.Atoi(text("step"))
	member, err2 := strconv.Atoi(text("member"))
	bytes, err3 := strconv.Atoi(text("bytes"))
	if errors.Join(err1, err2, err3) != nil || step < 1 || member < 0 || member >= d.members {
		return
	}
	if d.sent[step] == nil {
		d.sent[step] = make([]sentDelta, d.members)
	}
	d.sent[step][member] = sentDelta{digest: text("digest"), entry: text("entry"), bytes: bytes}
}

// Fetch reads every member's delta of a step that was waited for, in the order of the members. It returns Corrupt,
// which is counted, for one that is not what its sender committed, and NotFound for one that is gone.
func (d *Deltas) Fetch(ctx context.Context, step int) ([][]byte, error) {
	out := make([][]byte, d.members)
	if !d.complete(step) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "fetch deltas", Job: d.job, Msg: fmt.Sprintf("step %d was not waited for", step),
		}
	}
	err := eachOf(ctx, d.members, min(d.members, depth), func(ctx context.Context, _, m int) (err error) {
		out[m], err = d.fetch(ctx, step, m)
		return err
	})
	return out, err
}

func (d *Deltas) fetch(ctx context.Context, step, m int) ([]byte, error) {
	sent := d.sent[step][m]
	key, _ := entryKeys(sent.entry)
	at := part(key, 0)
	data, err := patient(d.store.server(at)).Get(ctx, at).Bytes()
	if err != nil {
		return nil, wrap(err, "fetch delta", fmt.Sprintf("%s round %d step %d of %d", d.job, d.round, step, m))
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != sent.digest {
		return nil, d.store.countDamage(ctx, d.job, &disdel.Error{
			Kind: disdel.Corrupt, Op: "fetch delta", Job: d.job,
			Msg: fmt.Sprintf("round %d, step %d of member %d is not what was sent", d.round, step, m),
		})
	}
	return data, nil
}

// Forget drops what is known of a step that was folded.
func (d *Deltas) Forget(step int) { delete(d.sent, step) }

// DropDeltas deletes the deltas of a round, which nobody will fold any more.
func (s *Store) DropDeltas(ctx context.Context, job disdel.JobID, round int) error {
	return s.drop(ctx, job, nil, deltaPrefixes(round)...)
}

// deltaPrefixes are those of the keys of a round's deltas.
func deltaPrefixes(round int) []string {
	return []string{fmt.Sprintf("delta:%d:", round), fmt.Sprintf("deltas:%d:", round), fmt.Sprintf("log:%d:", round)}
}
