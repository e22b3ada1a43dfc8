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

// defaultLease is how long a claim lasts without renewal. Owners renew it after a third of that.
const defaultLease = 6 * time.Second

var (
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/renew.lua
	renewLua string

	claimScript = redis.NewScript(claimLua)
	renewScript = redis.NewScript(renewLua)
)

// Claim is the right to make one update. A later claim has a higher fence, which invalidates commits under earlier
// ones.
type Claim struct {
	ID      disdel.UpdateID
	Owner   string // one activation
	Attempt int
	Fence   uint64
	Left    time.Duration // ClaimBusy: rest of the holder's lease
}

// ClaimState is the result of Store.Claim.
type ClaimState uint8

// The states. The zero value comes with an error.
const (
	ClaimUnknown   ClaimState = iota
	Claimed                   // the caller has it
	ClaimBusy                 // another owner has it, with the same or a higher attempt
	ClaimCommitted            // the update is committed, or its round has ended
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

// Claim asks for the right to make an update. A higher attempt takes it over at once, others when the holder's lease
// has ended, by Redis' clock. The same owner and attempt gets the same claim again. An update is a duplicate if it is
// committed already, or if the newest reference is too far ahead of its start (see WithSlack).
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
	remaining, okLeft := reply[2].(int64)
	if !okState || !okFence || !okLeft {
		return c, ClaimUnknown, &disdel.Error{
			Kind: disdel.Internal, Op: "claim update", Job: id.Job,
			Msg: fmt.Sprintf("Redis answered %v", reply),
		}
	}
	c.Fence, err = strconv.ParseUint(fence, 10, 64)
	c.Left = time.Duration(remaining) * time.Millisecond
	return c, claimStates[state], wrap(err, "claim update", id.String())
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// Renew extends a claim's lease and returns whether the job was canceled. It returns Conflict if another owner has the
// claim: then a commit will be refused.
func (s *Store) Renew(ctx context.Context, c Claim) (cancel bool, err error) {
	return s.renew(ctx, c, s.lease)
}

// Release ends a claim without its work, so that the next owner need not wait for the lease.
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

// Hold renews a claim until stop is called; stop waits for that. The context ends with Conflict when the claim is lost,
// and with Canceled when the job is. If the store does not answer, the work continues, because the commit decides.
func (s *Store) Hold(ctx context.Context, c Claim) (held context.Context, stop func()) {
	held, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var panics panicCatcher
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

// renewInTime gives up after the lease, because a later answer is useless and stop would wait for it.
func (s *Store) renewInTime(ctx context.Context, c Claim) (cancel bool, err error) {
	ctx, stop := context.WithTimeout(ctx, s.lease)
	defer stop()
	return s.Renew(ctx, c)
}

// Heartbeat stores the progress of an action and returns whether the job was canceled. Each action of each round has
// its own field.
func (s *Store) Heartbeat(ctx context.Context, job disdel.JobID, p disdel.Progress) (cancel bool, err error) {
	data, err := json.Marshal(p)
	if err != nil {
		// the loss is NaN or infinite
		return false, &disdel.Error{Kind: disdel.Diverged, Op: "send heartbeat", Job: job, Err: err}
	}
	var flag *redis.IntCmd
	_, err = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HSet(ctx, s.keys.progress(job), progressField(p), data)
		pipe.Expire(ctx, s.keys.progress(job), heartbeatLife)
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

// commit makes a staged value visible if the claim on work is valid and nothing else was committed. The same content
// again succeeds. Otherwise it returns Conflict and deletes the staged value.
func (s *Store) commit(ctx context.Context, t stagedValue, work disdel.UpdateID, fence uint64) error {
	h, op := t.head, "commit "+t.head.kind.String()
	if fence != h.fence {
		s.discard(ctx, h.id.Job, t.entry())
		return conflict(op, h.id, fmt.Sprintf("it was made under fence %d, not %d", h.fence, fence))
	}
	verdict, replaced, err := s.runCommit(ctx, t, work, fence)
	if err != nil {
		return wrap(err, op, h.id.String()) // it may be committed nevertheless; Sweep deletes it
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
		"other": "another value was committed before", "stale": "another attempt has taken over",
		"round": "its round is not open",
		"head":  "the header carries another fence",
	}[verdict]
	return conflict(op, h.id, why)
}

func (s *Store) runCommit(ctx context.Context, t stagedValue, work disdel.UpdateID, fence uint64,
) (verdict, replaced string, err error) {
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
	name, version := h.kind.String(), h.id.Round
	if h.kind == kindShard { // it follows the rules of the update that was claimed for it
		name, version = kindUpdate.String(), work.Round
	}
	reply, err := commitScript.Run(ctx, s.client, keys, name, strconv.FormatUint(fence, 10),
		binary.LittleEndian.AppendUint64(nil, h.fence), h.digest(), version, field, t.entry(),
		entry(s.keys.work(work), 0), seconds(keyLife), s.slack).StringSlice()
	if err != nil {
		return "", "", err
	}
	return reply[0], reply[1], nil
}

// Counts are the values of a job that were refused.
type Counts struct {
	Duplicates int // deliveries of committed values
	Stale      int // results under a claim that another attempt had taken over
	Damaged    int // damaged values
}

// Counts returns how many values of a job were refused so far.
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

// countDamage counts err if it is about a damaged value, and returns it.
func (s *Store) countDamage(ctx context.Context, job disdel.JobID, err error) error {
	if !damaged(err) {
		return err
	}
	s.client.Pipelined(ctx, func(p redis.Pipeliner) error { // a lost count must not hide the error
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

// DrawBatch takes a batch (0 to batches-1) of a round's queue for one step of the claim's member. ok is false if no
// batch is left, or if the member was released. Each batch is drawn once; a repeated call for the same step returns the
// same batch. It returns Conflict if the claim is lost.
func (s *Store) DrawBatch(ctx context.Context, c Claim, step, batches int) (batch int, ok bool, err error) {
	id := c.ID
	draws := s.keys.draws(id.Job, id.Round)
	n, err := drawScript.Run(ctx, s.client, []string{s.keys.work(id), draws, s.keys.index(id.Job)},
		strconv.FormatUint(c.Fence, 10), fmt.Sprintf("%d:%d", step, id.Member), batches, seconds(keyLife), entry(draws, 0),
		releaseField(id.Member)).Int()
	switch {
	case err != nil:
		return 0, false, wrap(err, "draw batch", id.String())
	case n == -2:
		return 0, false, conflict("draw batch", id, "another attempt has taken over")
	}
	return n, n >= 0, nil
}

// releaseField is the field of a round's draws that marks a released member.
func releaseField(member int) string { return fmt.Sprintf("go:%d", member) }

// LetGo releases a member of a round with a batch queue: it finds no more batches, sends its last delta and leaves, and
// the others take its batches. Repeated calls, and calls for a member that has left, change nothing.
func (s *Store) LetGo(ctx context.Context, job disdel.JobID, round, member int) error {
	draws, index := s.keys.draws(job, round), s.keys.index(job)
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, index, entry(draws, 0))
		p.Expire(ctx, index, keyLife)
		p.HSet(ctx, draws, releaseField(member), 1)
		p.Expire(ctx, draws, keyLife)
		return nil
	})
	return wrap(err, "let member go", fmt.Sprintf("%s round %d of %d", job, round, member))
}

// IsLetGo tells whether a member of a round was released.
func (s *Store) IsLetGo(ctx context.Context, job disdel.JobID, round, member int) (bool, error) {
	err := s.client.HGet(ctx, s.keys.draws(job, round), releaseField(member)).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, wrap(err, "look for leavers", fmt.Sprintf("%s round %d of %d", job, round, member))
}

// EndMember removes a member that will not return from a round with an exchange. What it sent stays, what it owes is
// lost, and others take its unfinished batch. A still running attempt of it can no longer send or commit. Repeated
// calls change nothing.
func (s *Store) EndMember(ctx context.Context, job disdel.JobID, round, member int) error {
	work := s.keys.work(disdel.UpdateID{Job: job, Round: round, Member: member})
	table, log, news := s.keys.deltas(job, round), s.keys.log(job, round), s.keys.news(job, round)
	err := endScript.Run(ctx, s.client, []string{work, table, log, s.keys.draws(job, round), s.keys.index(job), news},
		member, seconds(keyLife), entry(work, 0), entry(table, 0), entry(log, 0), entry(news, 0)).Err()
	return wrap(err, "end member", fmt.Sprintf("%s round %d of %d", job, round, member))
}
