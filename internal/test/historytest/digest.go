package historytest

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// digests looks again and again, and counts what is read for it.
func digests(t *testing.T, s *history.Store) {
	const n = 30 // more than are read at once
	for i := range n {
		save(t, s, Record(i))
	}
	var reads atomic.Int64
	d := history.NewRecordCache(1000, func(r *disdel.Record) string {
		reads.Add(1)
		peak := disdel.Bytes(0)
		for _, a := range r.Activations {
			if a.Task == disdel.TaskTrain {
				peak = a.Peak
			}
		}
		return string(r.ID) + " " + r.Status.String() + " " + r.Job.Metadata.Name + " " + peak.String()
	})
	look := func(store *history.Store, q history.Query, want, read int) {
		t.Helper()
		reads.Store(0)
		got, err := d.List(ctx, store, q)
		if err != nil || len(got) != want || int(reads.Load()) != read {
			t.Errorf("%+v: %d of %d, %d of %d read: %v", q, len(got), want, reads.Load(), read, err)
		}
		list, err := store.List(ctx, q)
		for i := range list {
			if line := list[i].Status.String() + " " + list[i].Job.Metadata.Name + " 64.0 MB"; i < len(got) &&
				got[i] != string(list[i].ID)+" "+line {
				t.Errorf("%s is %s: %v", got[i], line, err)
			}
		}
	}
	all := history.Query{Limit: 1000}
	look(s, all, n, n)
	look(s, all, n, 0)
	look(s, history.Query{Limit: 7}, 7, 0)
	r := Record(3)
	r.Status, r.Tenant = disdel.StatusFailed, "ann"
	save(t, s, r, Record(n))
	look(s, all, n+1, 2)
	look(s, history.Query{Limit: 1000, Status: disdel.StatusFailed}, 1, 1)
	look(s.ForTenant("ann"), all, 1, 0)
	look(s.ForTenant("bob"), all, 0, 0)
	got, err := d.Get(ctx, s, []disdel.JobID{Record(5).ID, Record(2).ID})
	if err != nil || len(got) != 2 || !slices.Contains(got[1:], string(Record(2).ID)+" succeeded name-2 64.0 MB") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := d.Get(ctx, s, []disdel.JobID{Record(2).ID, Record(n + 1).ID}); !errors.Is(err, disdel.NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	if _, err := d.Get(ctx, s.ForTenant("bob"), []disdel.JobID{Record(2).ID}); !errors.Is(err, disdel.NotFound) {
		t.Errorf("another's: %v", err)
	}
	small := history.NewRecordCache(3, func(r *disdel.Record) disdel.JobID { return r.ID })
	if ids, err := small.List(ctx, s, all); err != nil || len(ids) != n+1 || ids[0] != Record(n).ID {
		t.Errorf("%d ids, %v", len(ids), err)
	}
}
