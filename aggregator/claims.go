package aggregator

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// defaultLease is how long a claim holds without being renewed; an owner renews it at a third of that.
const defaultLease = 6 * time.Second

var (
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/renew.lua
	renewLua string

	claimScript = redis.NewScript(claimLua)
	renewScript = redis.NewScript(renewLua)
)

// Claim is the right to make one update. A claim that was taken later has a higher fence, and then nothing is committed
// under the earlier one any more.
type Claim struct {
	ID      disdel.UpdateID
	Owner   string // one activation, never two
	Attempt int
	Fence   uint64
	Left    time.Duration // Busy: how long the holder's lease still runs
}

// ClaimState is what came of asking for a claim.
type ClaimState uint8

// The states. The zero value comes with an error.
const (
	ClaimUnknown   ClaimState = iota
	Claimed                   // it is the caller's
	ClaimBusy                 // another owner of the same or a higher attempt holds it
	ClaimCommitted            // the update is there, or its round has ended without it: there is nothing to do
)

var claimStates = map[string]ClaimState{"claimed": Claimed, "busy": ClaimBusy, "committed": ClaimCommitted}

func (c ClaimState) String() string {
	for name, state := range claimStates {
		if state == c {
			return name
		}
	}
	return "unknown"
}

// Claim asks for the right to make an update. A higher attempt takes it over at once, the same or a lower one when the
// holder's lease has ended; time is Redis' own. The same owner with the same attempt is given the same claim again. An
// update that is committed already, or starts from a reference that the newest is too far ahead of (see WithSlack), is
// counted as a duplicate.
func (s *Store) Claim(ctx context.Context, id disdel.UpdateID, owner string, attempt int) (Claim, ClaimState, error) {
	c := Claim{ID: id, Owner: owner, Attempt: attempt}
	work := s.keys.work(id)
	keys := []string{work, s.keys.index(id.Job), s.keys.counts(id.Job), s.keys.references(id.Job)}
	reply, err := claimScript.Run(ctx, s.client, keys, owner, attempt, s.lease.Milliseconds(), seconds(keyLife),
		entry(work, 0), id.Round, s.slack).Slice()
	if err != nil {
		return c, ClaimUnknown, wrap(err, "claim update", id.String())
	}
	state, okState := reply[0].(string)
	fence, okFence := reply[1].(string)
	left, okLeft := reply[2].(int64)
	if !okState || !okFence || !okLeft {
		return c, ClaimUnknown, &disdel.Error{
			Kind: disdel.Internal, Op: "claim update", Job: id.Job,
			Msg: fmt.Sprintf("Redis answered %v", reply),
		}
	}
	c.Fence, err = strconv.ParseUint(fence, 10, 64)
	c.Left = time.Duration(left) * time.Millisecond
	return c, claimStates[state], wrap(err, "claim update", id.String())
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// Renew extends the lease of a claim and returns whether the job was cancelled. It returns Conflict if somebody else
// has the claim now: what the caller makes will be refused.
func (s *Store) Renew(ctx context.Context, c Claim) (cancel bool, err error) {
	return s.renew(ctx, c, s.lease)
}

// Release ends a claim whose work will not be done, so that the next one need not wait for the lease to end.
func (s *Store) Release(ctx context.Context, c Claim) error {
	_, err := s.renew(ctx, c, 0)
	return err
}

func (s *Store) renew(ctx context.Context, c Claim, lease time.Duration) (bool, error) {
	keys := []string{s.keys.work(c.ID), s.keys.cancel(c.ID.Job)}
	reply, err := renewScript.Run(ctx, s.client, keys, strconv.FormatUint(c.Fence, 10), lease.Milliseconds(),
		seconds(keyLife)).Int64Slice()
	if err != nil {
		return false, wrap(err, "renew claim", c.ID.String())
	}
	if reply[0] == 0 {
		return reply[1] == 1, conflict("renew claim", c.ID, "another attempt has taken over")
	}
	return reply[1] == 1, nil
}

func conflict(op string, id disdel.UpdateID, why string) error {
	return &disdel.Error{Kind: disdel.Conflict, Op: op + " " + id.String(), Job: id.Job, Msg: why}
}

// Hold renews a claim until stop is called, which waits for the renewing to end. The context ends with a Conflict as
// its cause when the claim is lost, with Canceled when the job is. A store that does not answer is no reason to stop:
// the commit will tell.
func (s *Store) Hold(ctx context.Context, c Claim) (held context.Context, stop func()) {
	held, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var panics caught
	go func() {
		defer close(done)
		defer panics.capture(func() {
			end(&disdel.Error{Kind: disdel.Internal, Op: "hold claim", Job: c.ID.Job, Msg: "renewing it panicked"})
		})
		every := time.NewTicker(s.lease / 3)
		defer every.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-every.C:
			}
			cancel, err := s.renewInTime(held, c)
			switch {
			case errors.Is(err, disdel.Conflict):
				end(err)
			case cancel:
				end(&disdel.Error{Kind: disdel.Canceled, Op: "hold claim", Job: c.ID.Job, Msg: "the job was stopped"})
			}
		}
	}()
	return held, func() {
		end(nil)
		<-done
		panics.raise()
	}
}

// renewInTime gives up when the lease has ended: what a server that does not answer is asked then comes too late, and
// stop would wait for it.
func (s *Store) renewInTime(ctx context.Context, c Claim) (cancel bool, err error) {
	ctx, stop := context.WithTimeout(ctx, s.lease)
	defer stop()
	return s.Renew(ctx, c)
}

// Heartbeat stores how far an action is, and returns whether the job was cancelled. Each action of each round has a
// place of its own, so that one that is late hides nobody's.
func (s *Store) Heartbeat(ctx context.Context, job disdel.JobID, p disdel.Progress) (cancel bool, err error) {
	data, err := json.Marshal(p)
	if err != nil {
		// a loss that is no number
		return false, &disdel.Error{Kind: disdel.Diverged, Op: "send heartbeat", Job: job, Err: err}
	}
	var flag *redis.IntCmd
	_, err = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HSet(ctx, s.keys.progress(job), progressField(p), data)
		pipe.Expire(ctx, s.keys.progress(job), keyLife)
		flag = pipe.Exists(ctx, s.keys.cancel(job))
		return nil
	})
	if err != nil {
		return false, wrap(err, "send heartbeat", string(job))
	}
	return flag.Val() > 0, nil
}

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
