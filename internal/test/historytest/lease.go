package historytest

import (
	"errors"
	"slices"
	"sync"
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

// notes checks that of two who write one note only one succeeds, and that kinds do not see each other.
func notes(t *testing.T, s *history.Store) {
	n, err := s.Note(ctx, history.NoteKey, "a")
	if !errors.Is(err, disdel.NotFound) {
		t.Errorf("before there is one: %v", err)
	}
	n.Value = []byte(`{"x":1}`)
	theirs := n
	if n, err = s.WriteNote(ctx, n); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteNote(ctx, theirs); !errors.Is(err, disdel.Conflict) {
		t.Errorf("a second one: %v", err)
	}
	if read, err := s.Note(ctx, history.NoteKey, "a"); err != nil || string(read.Value) != `{"x":1}` {
		t.Errorf("%s, %v", read.Value, err)
	}
	if _, err := s.WriteNote(ctx, history.Note{Kind: history.NotePool, Name: "a", Value: n.Value}); err != nil {
		t.Error(err)
	}
	if list, err := s.Notes(ctx, history.NoteKey); err != nil || len(list) != 1 || list[0].Name != "a" {
		t.Errorf("%+v, %v", list, err)
	}
	n.Value = []byte(`{"x":2}`)
	if n, err = s.WriteNote(ctx, n); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := s.DeleteNote(ctx, n); err != nil {
			t.Errorf("taken away: %v", err)
		}
	}
	if _, err := s.WriteNote(ctx, history.Note{Kind: history.NoteKey, Name: "../x"}); !errors.Is(err, disdel.Invalid) {
		t.Errorf("no name: %v", err)
	}
	identity(t, s)
}

// identity checks that all who ask which history this is hear the same, those too who are the first at once.
func identity(t *testing.T, s *history.Store) {
	identities := make([]string, 16)
	var asking sync.WaitGroup
	for i := range identities {
		asking.Go(func() {
			var err error
			if identities[i], err = s.Identity(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if again, err := s.Identity(ctx); err != nil || again == "" ||
		slices.ContainsFunc(identities, func(id string) bool { return id != again }) {
		t.Errorf("it is %q, and then %q, %v", identities, again, err)
	}
}

// tenants checks that a tenant sees its own records alone.
func tenants(t *testing.T, s *history.Store) {
	mine, theirs := Record(1), Record(2)
	mine.Tenant, theirs.Tenant = "ann", "bob"
	save(t, s, mine, theirs)
	ann := s.ForTenant("ann")
	if list, err := ann.List(ctx, history.Query{}); err != nil || len(list) != 1 || list[0].ID != mine.ID {
		t.Errorf("%d records, %v", len(list), err)
	}
	if _, err := ann.Get(ctx, theirs.ID); !errors.Is(err, disdel.NotFound) {
		t.Errorf("another's: %v", err)
	}
	if err := ann.Delete(ctx, theirs.ID); !errors.Is(err, disdel.NotFound) {
		t.Errorf("another's is deleted: %v", err)
	}
	if err := ann.Save(ctx, &theirs); !errors.Is(err, disdel.NotFound) {
		t.Errorf("another's is written: %v", err)
	}
	if id, err := ann.Resolve(ctx, string(theirs.ID)[:20]); id == theirs.ID {
		t.Errorf("the start of another's id means it: %v", err)
	}
	if id, err := ann.Resolve(ctx, "@last"); err != nil || id != mine.ID {
		t.Errorf("the last is %s, %v", id, err)
	}
	if list, err := s.ForTenant("").List(ctx, history.Query{}); err != nil || len(list) != 0 {
		t.Errorf("nobody's: %d, %v", len(list), err)
	}
}
