package historytest

import (
	"errors"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// lease checks that of two who write one lease only one succeeds, and that leases and records do not see each other.
func lease(t *testing.T, s *history.Store) {
	rec := Record(1)
	save(t, s, rec)
	mine := history.Lease{
		Job: rec.ID, Owner: history.Owner{Token: "mine", Host: "here"},
		Expires: time.Now().Add(time.Minute).UTC().Round(0),
	}
	theirs := mine
	theirs.Owner.Token = "theirs"
	if _, err := s.Lease(ctx, rec.ID); !errors.Is(err, disdel.NotFound) {
		t.Errorf("before there is one: %v", err)
	}
	mine, err := s.Take(ctx, mine)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(ctx, theirs); !errors.Is(err, disdel.Conflict) {
		t.Errorf("a second one: %v", err)
	}
	there, err := s.Lease(ctx, rec.ID)
	if err != nil || there.Owner != mine.Owner || !there.Expires.Equal(mine.Expires) {
		t.Errorf("%+v, %v", there, err)
	}
	there.Owner = theirs.Owner
	if there, err = s.Take(ctx, there); err != nil { // who has read it may write it
		t.Error(err)
	}
	if err := s.Release(ctx, mine); !errors.Is(err, disdel.Conflict) {
		t.Errorf("given back by whom it was taken from: %v", err)
	}
	if list, err := s.Leases(ctx); err != nil || len(list) != 1 || list[0].Job != rec.ID ||
		list[0].Owner.Token != "theirs" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := s.List(ctx, history.Query{}); err != nil || len(list) != 1 {
		t.Errorf("%d records beside it, %v", len(list), err)
	}
	if id, err := s.Resolve(ctx, "@last"); id != rec.ID || err != nil {
		t.Errorf("the last job is %s, %v", id, err)
	}
	if err := s.Release(ctx, there); err != nil {
		t.Error(err)
	}
	if err := s.Release(ctx, there); err != nil {
		t.Errorf("given back twice: %v", err)
	}
	if list, err := s.Leases(ctx); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if mine, err = s.Take(ctx, history.Lease{Job: rec.ID, Owner: mine.Owner, Expires: mine.Expires}); err != nil {
		t.Errorf("taken again: %v", err)
	}
	if err := s.Release(ctx, mine); err != nil {
		t.Error(err)
	}
	if _, err := s.Take(ctx, history.Lease{Job: "../x"}); !errors.Is(err, disdel.Invalid) {
		t.Errorf("no job's: %v", err)
	}
}
