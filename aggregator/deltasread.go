package aggregator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Deltas follows what the members of a round send, in its log. It is for one goroutine.
type Deltas struct {
	store   *Store
	job     disdel.JobID
	round   int
	members int
	last    string              // entry of the log that was read last
	newest  []int               // by member: the newest step that it has sent; it sends them in order
	sent    map[int][]sentDelta // by step: what is there of it, by member
}

// sentDelta is a delta that was committed.
type sentDelta struct {
	digest, entry string // entry "": it was not sent yet
	bytes         int
}

// Deltas follows a round of so many members from its beginning.
func (s *Store) Deltas(job disdel.JobID, round, members int) *Deltas {
	return &Deltas{
		store: s, job: job, round: round, members: members, last: "0", newest: make([]int, members),
		sent: map[int][]sentDelta{},
	}
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

// Look takes what has been sent so far, and does not wait.
func (d *Deltas) Look(ctx context.Context) error {
	for {
		n, err := d.read(ctx, noWait)
		if err != nil {
			return wrap(err, "follow deltas", fmt.Sprintf("%s round %d", d.job, d.round))
		}
		if n < logCount {
			return nil
		}
	}
}

// Newest is the newest step of a member that was seen: it has sent all before it, too.
func (d *Deltas) Newest(member int) int { return d.newest[member] }

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
		if _, err := d.read(ctx, IdleEvery); err != nil {
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

// noWait is a read that does not wait.
const noWait = time.Duration(-1)

// read takes what is new in the log, waiting for it for a while, and returns how many entries that were.
func (d *Deltas) read(ctx context.Context, wait time.Duration) (n int, err error) {
	streams, err := d.store.client.XRead(ctx, &redis.XReadArgs{
		Streams: []string{d.store.keys.log(d.job, d.round), d.last}, Count: logCount, Block: wait,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, stream := range streams {
		for _, m := range stream.Messages {
			d.last, n = m.ID, n+1
			d.take(m.Values)
		}
	}
	return n, nil
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
	d.newest[member] = max(d.newest[member], step)
	d.sent[step][member] = sentDelta{digest: text("digest"), entry: text("entry"), bytes: bytes}
}

// Fetch reads the deltas of a step that were waited for, or looked for: those of some members, or of all where none is
// named. They are in the order of the members, nil for those that were not asked for. It returns Corrupt, which is
// counted, for one that is not what its sender committed, and NotFound for one that is gone.
func (d *Deltas) Fetch(ctx context.Context, step int, of ...int) ([][]byte, error) {
	if len(of) == 0 {
		for m := range d.members {
			of = append(of, m)
		}
	}
	sent := d.sent[step]
	if len(sent) == 0 || slices.ContainsFunc(of, func(m int) bool { return sent[m].entry == "" }) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "fetch deltas", Job: d.job, Msg: fmt.Sprintf("step %d was not waited for", step),
		}
	}
	out := make([][]byte, d.members)
	err := eachOf(ctx, len(of), min(len(of), depth), func(ctx context.Context, _, k int) (err error) {
		out[of[k]], err = d.fetch(ctx, step, of[k])
		return err
	})
	return out, err
}

func (d *Deltas) fetch(ctx context.Context, step, m int) ([]byte, error) {
	sent := d.sent[step][m]
	_, at := entryKeys(sent.entry)
	pieces := make([][]byte, len(at))
	err := eachOf(ctx, len(at), len(at), func(ctx context.Context, _, i int) (err error) {
		pieces[i], err = patient(d.store.server(at[i])).Get(ctx, at[i]).Bytes()
		return err
	})
	if err != nil {
		return nil, wrap(err, "fetch delta", fmt.Sprintf("%s round %d step %d of %d", d.job, d.round, step, m))
	}
	data := slices.Concat(pieces...)
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
