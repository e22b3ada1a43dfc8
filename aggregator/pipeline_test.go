package aggregator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/disdel/disdel"
	own "github.com/disdel/disdel/aggregator/embedded"
)

func still() error { return nil }

// twoStages are two stages of a replica that have joined.
func twoStages(t *testing.T, s *place) (first, second *Pipeline) {
	t.Helper()
	var all [2]*Pipeline
	var g errgroup.Group
	for i := range all {
		c := Claim{ID: disdel.UpdateID{Job: "job-1", Round: 2, Member: i}, Fence: uint64(i + 1)}
		all[i] = s.Pipeline(c, Place{Round: 2, Stage: i, Stages: 2})
		g.Go(func() error {
			told, err := all[i].Join(ctx, Joined{Done: 3 + i}, still)
			if err == nil && (told[0].Done != 3 || told[1].Done != 4) {
				t.Errorf("the stages told %v", told)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return all[0], all[1]
}

// Values come in order, both ways, whole, and are deleted when they were received.
func stagesPassValues(t *testing.T, s *place) {
	first, second := twoStages(t, s)
	large := make([]float32, pipelineBlock+7)
	large[0], large[pipelineBlock+6] = 1, 2
	messages := []Values{{1, 2, 3}, large, {}}
	for _, m := range messages {
		if err := errors.Join(first.Send(ctx, true, m), second.Send(ctx, false, m)); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range messages {
		forth, back := make(Values, len(m)), make(Values, len(m))
		if err := errors.Join(second.ReceiveKept(ctx, forth, still), first.Receive(ctx, false, back, still)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(forth, m) || !slices.Equal(back, m) {
			t.Error("other values came")
		}
	}
	for _, m := range messages { // what was kept comes once more, in the same order
		again := make(Values, len(m))
		if err := second.ReceiveAgain(ctx, again); err != nil || !slices.Equal(again, m) {
			t.Errorf("other values came again: %v", err)
		}
	}
	var g errgroup.Group
	for _, p := range []*Pipeline{first, second} {
		g.Go(func() error { return p.End(ctx, still) })
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if n := len(s.all()); n > 4 { // the index, the hash and two streams
		t.Errorf("%d keys are left", n)
	}
}

// After a stage has joined again the others learn of it, wherever they wait, and no value of before is received.
func stagesBeginAgain(t *testing.T, s *place) {
	first, second := twoStages(t, s)
	if err := first.Send(ctx, true, Values{1}); err != nil {
		t.Fatal(err)
	}
	again := s.Pipeline(Claim{ID: disdel.UpdateID{Job: "job-1"}, Fence: 9}, Place{Round: 2, Stages: 2})
	joined := make(chan error, 1)
	go func() {
		_, err := again.Join(ctx, Joined{}, still)
		joined <- err
	}()
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	got := make(Values, 1)
	for range 2 { // the first value was sent before
		if err := second.Receive(ctx, true, got, still); err != nil {
			if !errors.Is(err, ErrStageRestarted) {
				t.Error(err)
			}
			break
		}
	}
	if err := second.End(ctx, still); !errors.Is(err, ErrStageRestarted) {
		t.Errorf("at the end: %v", err)
	}
	if _, err := second.Join(ctx, Joined{}, still); err != nil {
		t.Fatal(err)
	}
	if err := again.Send(ctx, true, Values{7}); err != nil {
		t.Fatal(err)
	}
	if err := second.Receive(ctx, true, got, still); err != nil || got[0] != 7 {
		t.Errorf("%v, %v", got, err)
	}
}

// Who waits can give up, and learns of a pause.
func stagesWait(t *testing.T, s *place) {
	first, second := twoStages(t, s)
	enough := errors.New("enough")
	if err := second.Receive(ctx, true, make(Values, 1), func() error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	if err := first.SendPause(ctx); err != nil {
		t.Fatal(err)
	}
	if err := second.Receive(ctx, true, make(Values, 1), still); !errors.Is(err, ErrStagesPaused) {
		t.Error(err)
	}
	if err := first.Send(ctx, true, Values{1}); err != nil {
		t.Fatal(err)
	}
	want(t, disdel.Corrupt, second.Receive(ctx, true, make(Values, 2), still))
	if (Joined{Deadline: time.Time{}}) != (Joined{}) {
		t.Error("a stage without a deadline has one")
	}
}

// The updates of stages are put together to that of the network, array by array and bit by bit.
func stagesAreJoined(t *testing.T, s *place) {
	s.column = 5
	parts := []disdel.Weights{someWeights(1), someWeights(2)[:1]}
	parts[1][0].Name = "b.weight"
	var ids []disdel.UpdateID
	var whole disdel.Weights
	for i, w := range parts {
		u := update(i, 30)
		u.Weights = w
		push(t, s, u)
		ids, whole = append(ids, u.ID), append(whole, w...)
	}
	c, _, err := s.Claim(ctx, disdel.UpdateID{Job: "job-1", Round: 2, Level: 1}, "me", 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Join(ctx, c, Reduction{Members: ids, Like: whole})
	if err != nil || m.Samples != 30 {
		t.Fatalf("%v samples, %v", m.Samples, err)
	}
	if err := s.CommitMean(ctx, m); err != nil {
		t.Fatal(err)
	}
	got, err := s.FetchUpdate(ctx, c.ID, whole)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if !slices.Equal(got.Weights[i].Data, whole[i].Data) {
			t.Errorf("%s differs", whole[i].Name)
		}
	}
	_, err = s.Join(ctx, c, Reduction{Members: ids[:1], Like: whole})
	want(t, disdel.Corrupt, err)
}

// If Redis has no room for the values of a micro-batch, the error says how much they are.
func TestAFullRedisSaysWhatAStageNeeds(t *testing.T) {
	redis, err := own.StartWithin(disdel.MB)
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	s, err := Open(ctx, disdel.Store{URLs: []string{redis.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := s.Pipeline(Claim{ID: disdel.UpdateID{Job: "job-1"}}, Place{Stages: 1})
	if _, err := p.Join(ctx, Joined{}, still); err != nil {
		t.Fatal(err)
	}
	err = p.Send(ctx, true, make(Values, 1<<20))
	if !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), "no room for 4.00 MB of one micro-batch") {
		t.Error(err)
	}
}

// A stage whose caller gives up, or whose message is damaged, says so: it neither waits on nor takes wrong values.
func TestAStageTellsWhatItCannotDo(t *testing.T) {
	s := enter(t, embedded(t), "told")
	first, second := twoStages(t, s)
	gone := errors.New("the caller has gone")
	if err := first.End(ctx, func() error { return gone }); !errors.Is(err, gone) {
		t.Errorf("the end of a stage whose caller has gone: %v", err)
	}
	if err := first.Send(ctx, true, Values{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	var announcements []string
	for key := range s.all() {
		if kind, _ := s.client.Type(ctx, key).Result(); kind == "stream" {
			announcements = append(announcements, key)
		}
	}
	if err := second.Receive(ctx, true, make(Values, 3), still); err != nil || len(announcements) != 1 {
		t.Fatalf("%v; streams %q: one was sent to", err, announcements)
	}
	for name, damage := range map[string]map[string]any{
		"no number":        {"number": "x", "values": 3},
		"no length":        {"number": 1, "values": "x"},
		"a length below 0": {"number": 1, "values": -1},
		"one that is lost": {"number": 7, "values": 3},
	} {
		if err := s.client.XAdd(ctx, &redis.XAddArgs{Stream: announcements[0], Values: damage}).Err(); err != nil {
			t.Fatal(err)
		}
		within, stop := context.WithTimeout(ctx, time.Minute)
		err := second.Receive(within, true, make(Values, 3), still)
		if stop(); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("%s: %v, want Corrupt", name, err)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := second.Join(canceled, Joined{}, still); !errors.Is(err, context.Canceled) {
		t.Errorf("a join that was canceled: %v", err)
	}
}
