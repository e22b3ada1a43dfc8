package aggregator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// What cannot be right is refused with the kind of its fault, before anything of it is visible.
func TestWhatCannotBeRightIsRefused(t *testing.T) {
	s := enter(t, embedded(t), "refused")
	s.column = 4
	short := someWeights(1)
	short[0].Data = short[0].Data[1:]
	job, id := disdel.JobID("job-1"), update(0, 1).ID
	push(t, s, update(0, 1))
	push(t, s, update(1, 1))
	f, err := NewFeedback(Format{Wire: disdel.WireInt8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.column = s.column
	if err := s.PutReference(ctx, job, 2, someWeights(9)); err != nil {
		t.Fatal(err)
	}
	encoded, err := f.Encode(someWeights(2), someWeights(9))
	if err == nil {
		err = s.PushEncoded(ctx, disdel.Update{ID: update(2, 1).ID, Samples: 1}, encoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	own := claim(t, s, update(3, 1).ID, "a", 1, Claimed)
	reduce := func(members ...disdel.UpdateID) error {
		_, err := s.Store.Reduce(ctx, own, Reduction{Members: members, Like: someWeights(9)})
		return err
	}
	later := update(1, 1)
	later.ID.Round++
	push(t, s, later)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	for what, c := range map[string]struct {
		kind disdel.Kind
		call func() error
	}{
		"a loss that is no number": {disdel.Diverged, func() error {
			_, err := s.Heartbeat(ctx, job, disdel.Progress{Loss: math.NaN()})
			return err
		}},
		"stages in another format": {disdel.Invalid, func() error {
			_, err := s.Join(ctx, own, Reduction{Members: []disdel.UpdateID{update(2, 1).ID}, Like: someWeights(9)})
			return err
		}},
		"members of two rounds": {disdel.Invalid, func() error { return reduce(id, later.ID) }},
		"more shards than columns": {disdel.Invalid, func() error {
			_, err := s.JoinShards(ctx, own, make([]disdel.UpdateID, 1000), someWeights(9))
			return err
		}},
		"a short reference": {disdel.Invalid, func() error { return s.PutReference(ctx, job, 3, short) }},
		"a short state":     {disdel.Invalid, func() error { return s.PutState(ctx, id, own, nil, short) }},
		"a short update to encode": {disdel.Invalid, func() error {
			_, err := f.Encode(short, someWeights(9))
			return err
		}},
		"a short reference to encode": {disdel.Invalid, func() error {
			_, err := f.Encode(someWeights(9), short)
			return err
		}},
		"its own delta, when the wait has ended": {disdel.Canceled, func() error {
			_, err := s.Deltas(job, 2, 2).Own(canceled, 1, 0)
			return err
		}},
		"a wait that was ended": {disdel.Canceled, func() error { return s.Deltas(job, 2, 2).Wait(canceled, 1, never) }},
	} {
		if err := c.call(); !errors.Is(err, c.kind) && !(c.kind == disdel.Canceled && errors.Is(err, context.Canceled)) {
			t.Errorf("%s: %v, want %v", what, err, c.kind)
		}
	}
	if err := s.Deltas(job, 2, 2).Wait(ctx, 1, never); err == nil || err.Error() != never().Error() {
		t.Errorf("a wait whose caller gave up: %v", err)
	}
	s.client.HSet(ctx, s.keys.progress(job), "x", "{")
	_, err = s.Progress(ctx, job)
	want(t, disdel.Corrupt, err)
}

// A state whose bytes have changed in Redis is Corrupt, whichever way it is read.
func TestADamagedStateIsCorrupt(t *testing.T) {
	s := enter(t, embedded(t), "damaged")
	id := update(0, 1).ID
	own := claim(t, s, id, "a", 1, Claimed)
	if err := s.PutState(ctx, id, own, nil, someWeights(1)); err != nil {
		t.Fatal(err)
	}
	key := s.keys.value(kindState, id)
	data, err := s.client.Get(ctx, key).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-20] ^= 1
	s.client.Set(ctx, key, data, time.Minute)
	_, _, err = s.State(ctx, id, someWeights(1))
	want(t, disdel.Corrupt, err)
	err = s.ReadState(ctx, id, func(map[string]string) (func(disdel.Tensor) error, error) {
		return func(disdel.Tensor) error { return nil }, nil
	})
	want(t, disdel.Corrupt, err)
	if c, _ := s.Counts(ctx, "job-1"); c.Damaged != 2 {
		t.Errorf("%d counted as damaged, want 2", c.Damaged)
	}
}

// A reader of a state that refuses a tensor gets its own error back.
func TestAReadersErrorComesBack(t *testing.T) {
	s := enter(t, embedded(t), "reader")
	s.column = 4
	id, full := update(0, 1).ID, errors.New("no room for it")
	if err := s.PutState(ctx, id, claim(t, s, id, "a", 1, Claimed), nil, someWeights(1)); err != nil {
		t.Fatal(err)
	}
	taken := 0
	err := s.ReadState(ctx, id, func(map[string]string) (func(disdel.Tensor) error, error) {
		return func(disdel.Tensor) error { taken++; return full }, nil
	})
	if !errors.Is(err, full) || taken != 1 {
		t.Errorf("%v after %d tensors", err, taken)
	}
}

// What Redis answers to a claim is checked: another program at that address is told, and nothing is claimed.
func TestAForeignAnswerToAClaimIsTold(t *testing.T) {
	at := embedded(t)
	for _, answer := range [][]any{
		{int64(1), int64(2), int64(3)}, {int64(1), "2", int64(3)}, {"claimed", int64(2), int64(3)}, {"claimed", "2", "3"},
	} {
		s := enter(t, at, "foreign")
		s.client.AddHook(answers{answer})
		_, state, err := s.Claim(ctx, update(0, 1).ID, "a", 1)
		if state != ClaimUnknown || !errors.Is(err, disdel.Internal) ||
			!strings.Contains(err.Error(), fmt.Sprintf("Redis answered %v", answer)) {
			t.Errorf("%v: %v, %v", answer, state, err)
		}
	}
}

// answers gives scripts an answer that is not theirs.
type answers struct{ all []any }

func (a answers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a answers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a answers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if c, ok := cmd.(*redis.Cmd); ok {
			c.SetVal(a.all)
			return nil
		}
		return next(ctx, cmd)
	}
}

// An address that cannot be read is refused, and its password is not repeated.
func TestAnAddressThatCannotBeReadIsRefused(t *testing.T) {
	s, err := Open(ctx, disdel.Store{URLs: []string{"redis://:CANARY@host:%zz/0"}, Prefix: "none"})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, disdel.Invalid) || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("%v, want Invalid", err)
	}
}
