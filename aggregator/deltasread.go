package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Deltas follows what the members of a round send, in its news. It is for one goroutine.
type Deltas struct {
	store   *Store
	job     disdel.JobID
	round   int
	members int
	first   string              // entry of log and news that there is; "": none was read
	last    string              // the one that was read last
	newest  []int               // by member: the newest step that it has sent; it sends them in order
	ended   []int               // by member: the step that it left after; 0: it stays
	sent    map[int][]sentDelta // by step: what is there of it, by member
	held    int                 // bytes of deltas that came with the news and were not forgotten
	largest int                 // bytes of one that came so
}

// sentDelta is a delta that was committed.
type sentDelta struct {
	sum, entry string // entry "": it was not sent yet; nothing: there is none; alongside: it lies in the news
	at         string // its id there
	here       bool   // and it was kept
	data       []byte
}

// Deltas follows a round of so many members from its beginning.
func (s *Store) Deltas(job disdel.JobID, round, members int) *Deltas {
	return &Deltas{
		store: s, job: job, round: round, members: members, last: "0", newest: make([]int, members),
		ended: make([]int, members), sent: map[int][]sentDelta{},
	}
}

// IdleEvery is how long one read of the log waits, and the time between calls of idle. It is short, so that a wait
// whose context ends does not hold its connection for long.
const IdleEvery = 250 * time.Millisecond

// logCount is how many entries of the log are read at once.
const logCount = 4096

// newsCount is how many entries of the news are read at once: no more than newsBytes of deltas as large as any so far,
// so that a message comes in time on a slow line, too.
func (d *Deltas) newsCount() int { return min(max(leastNews, newsBytes/max(1, d.largest)), mostNews) }

const (
	newsBytes           = 512 << 10
	leastNews, mostNews = 4, 64
)

// heldMost is how many bytes of deltas are kept as they came: of members that are far ahead more come than are needed
// soon. The others are read when they are.
const heldMost = 4 << 20

// Wait returns once every member's delta of a step is there. While it waits it calls idle every IdleEvery. It
// returns what idle does, and the context's cause when that ends first.
func (d *Deltas) Wait(ctx context.Context, step int, idle func() error) error {
	return d.wait(ctx, func() bool { return d.complete(step) }, idle)
}

// WaitEnd returns once every member has left, with the last step of any. It waits as Wait does.
func (d *Deltas) WaitEnd(ctx context.Context, idle func() error) (last int, err error) {
	err = d.wait(ctx, func() bool { return !slices.Contains(d.ended, 0) }, idle)
	return slices.Max(d.ended), err
}

// Look notes what has been sent so far, and does not wait. It is for who begins in the middle: deltas are read one by
// one when they are fetched.
func (d *Deltas) Look(ctx context.Context) error {
	return d.all(ctx, d.store.keys.log(d.job, d.round), logCount)
}

// Take is Look that has the deltas come along.
func (d *Deltas) Take(ctx context.Context) error {
	return d.all(ctx, d.store.keys.news(d.job, d.round), d.newsCount())
}

func (d *Deltas) all(ctx context.Context, stream string, atOnce int) error {
	for {
		n, err := d.took(d.ask(ctx, d.store.client, stream, atOnce, noWait))
		if err != nil {
			return wrap(err, "follow deltas", fmt.Sprintf("%s round %d", d.job, d.round))
		}
		if n < atOnce {
			return nil
		}
	}
}

// Began names the log of the round by its first entry, "" while none was seen. A round that is begun anew has another
// one: what was made of the deltas before is of no use then.
func (d *Deltas) Began() string { return d.first }

// Newest is the newest step of a member that was seen: it has sent all before it, too.
func (d *Deltas) Newest(member int) int { return d.newest[member] }

// Left is the step that a member has left after, by itself or since it was ended; 0 while nothing is known of that.
func (d *Deltas) Left(member int) int { return d.ended[member] }

// there tells whether a member takes part in a step, as far as is known.
func (d *Deltas) there(member, step int) bool { return d.ended[member] == 0 || step <= d.ended[member] }

// Commit is CommitDelta, and takes what has been sent so far by the same message. With last set it is the member's
// last: nobody waits for it any more.
func (d *Deltas) Commit(ctx context.Context, c Claim, step int, data []byte, last bool) error {
	return d.store.commitDelta(ctx, &sending{claim: c, step: step, data: data, last: last, follow: d})
}

// sentOwn notes what was just sent, where it is the very next entry of the news.
func (d *Deltas) sentOwn(s *sending, tail, at string) {
	if tail != d.last {
		return // others came in between: it is read with them
	}
	d.last = at
	d.take(redis.XMessage{ID: at, Values: map[string]any{
		"step": s.step, "member": s.claim.ID.Member, "entry": s.entry, "last": flag(s.last), "sum": s.sum,
	}})
}

// Own is what a member has sent of a step. It waits as Wait does, though not for others.
func (d *Deltas) Own(ctx context.Context, step, member int) ([]byte, error) {
	sent := func() bool { return d.sent[step] != nil && d.sent[step][member].entry != "" }
	if err := d.wait(ctx, sent, func() error { return nil }); err != nil {
		return nil, err
	}
	data, err := d.Fetch(ctx, step, member)
	if err != nil {
		return nil, err
	}
	return data[member], nil
}

func (d *Deltas) wait(ctx context.Context, there func() bool, idle func() error) error {
	for !there() {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if _, err := d.took(d.news(ctx, d.store.client, IdleEvery)); err != nil {
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

// complete tells whether the delta of a step has been seen of every member that has not left before.
func (d *Deltas) complete(step int) bool {
	sent := d.sent[step]
	for m := range d.members {
		if d.there(m, step) && (sent == nil || sent[m].entry == "") {
			return false
		}
	}
	return true
}

// noWait is a read that does not wait.
const noWait = time.Duration(-1)

// news reads what is new, with the deltas that come along, waiting for it for a while.
func (d *Deltas) news(ctx context.Context, by redis.StreamCmdable, wait time.Duration) *redis.XStreamSliceCmd {
	return d.ask(ctx, by, d.store.keys.news(d.job, d.round), d.newsCount(), wait)
}

// ask reads what is new in a stream, waiting for it for a while.
func (d *Deltas) ask(ctx context.Context, by redis.StreamCmdable, stream string, atOnce int, wait time.Duration,
) *redis.XStreamSliceCmd {
	return by.XRead(ctx, &redis.XReadArgs{Streams: []string{stream, d.last}, Count: int64(atOnce), Block: wait})
}

// took takes what was asked for, and returns how many entries that were.
func (d *Deltas) took(news *redis.XStreamSliceCmd) (n int, err error) {
	streams, err := news.Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, stream := range streams {
		for _, m := range stream.Messages {
			d.last, n = m.ID, n+1
			d.take(m)
		}
	}
	return n, nil
}

// take notes an entry. What is no entry of ours is passed over: nobody is waited for by it.
func (d *Deltas) take(m redis.XMessage) {
	if d.first == "" {
		d.first = m.ID
	}
	text := func(name string) string { return fmt.Sprint(m.Values[name]) }
	step, err1 := strconv.Atoi(text("step"))
	member, err2 := strconv.Atoi(text("member"))
	if errors.Join(err1, err2) != nil || step < 1 || member < 0 || member >= d.members {
		return
	}
	if d.sent[step] == nil {
		d.sent[step] = make([]sentDelta, d.members)
	}
	if text("last") == "1" {
		d.ended[member] = step
	}
	d.newest[member] = max(d.newest[member], step)
	sent := sentDelta{sum: text("sum"), entry: text("entry"), at: m.ID}
	if data, along := m.Values["data"].(string); along && d.held < heldMost {
		sent.here, sent.data = true, textBytes(data)
		d.held, d.largest = d.held+len(sent.data), max(d.largest, len(sent.data))
	}
	d.sent[step][member] = sent
}

// textBytes is a text's own bytes, which nobody may change: a copy of every delta would be garbage right away.
func textBytes(text string) []byte {
	if text == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(text), len(text))
}

// Forget drops what is known of a step that was folded.
func (d *Deltas) Forget(step int) {
	for _, sent := range d.sent[step] {
		d.held -= len(sent.data)
	}
	delete(d.sent, step)
}

// DropDeltas deletes the deltas of a round, which nobody will fold any more.
func (s *Store) DropDeltas(ctx context.Context, job disdel.JobID, round int) error {
	return s.drop(ctx, job, nil, deltaPrefixes(round)...)
}

// deltaPrefixes are those of the keys of a round's deltas.
func deltaPrefixes(round int) []string {
	return []string{
		fmt.Sprintf("delta:%d:", round), fmt.Sprintf("deltas:%d:", round), fmt.Sprintf("log:%d:", round),
		fmt.Sprintf("news:%d:", round), fmt.Sprintf("draws:%d:", round),
	}
}
