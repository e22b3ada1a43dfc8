package aggregator

import (
	"context"
	_ "embed"
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
