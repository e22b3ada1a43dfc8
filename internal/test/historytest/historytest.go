// Package historytest is what every CouchDB-wire server must do for the history: one suite for the embedded one, for
// PouchDB's and for CouchDB itself.
package historytest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// Record makes the n-th record of a test, with ids that sort by n.
func Record(n int) disdel.Record {
	accuracy, loss := 0.5+float64(n)/1000, 1.0
	r := disdel.Record{
		APIVersion: disdel.APIVersion, ID: disdel.JobID(fmt.Sprintf("job-%026d", n)), Status: disdel.StatusSucceeded,
		Created: time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC), Accuracy: accuracy, Loss: loss, CostGBs: 1.5,
		Rounds: []disdel.Round{{TrainLoss: 0.25, Loss: &loss, Accuracy: &accuracy, Duration: disdel.Millis(time.Second)}},
		Activations: []disdel.Activation{{
			ID: "0123", Invocation: disdel.Invocation{
				ID: "round 0/train/0", Task: disdel.TaskTrain,
				Limits: disdel.Limits{Memory: 128 * disdel.MB},
			},
			Outcome: disdel.OutcomeSuccess, Peak: 64 * disdel.MB, Duration: disdel.Millis(1500 * time.Millisecond),
		}},
	}
	r.Job.Metadata.Name = fmt.Sprintf("name-%d", n%3)
	r.Job.Model.Name, r.Job.Data.Source, r.Job.Training.BatchSize = "lenet5", "dataset://digits", 32
	r.Data.Name = "digits"
	return r
}

// Exercise runs the suite; open gives an empty store for each promise.
func Exercise(t *testing.T, open func(t *testing.T) *history.Store) {
	for promise, check := range map[string]func(*testing.T, *history.Store){
		"a record comes back as it went": comesBack, "saving is idempotent": idempotent, "a newer record replaces": replaces,
		"lists are newest first and filtered": lists,
		"references resolve":                  resolves, "similar jobs are found": similar,
		"what is missing is NotFound":   missing,
		"concurrent saves lose nothing": concurrent,
		"text of users is not a query":  noInjection, "the newest similar jobs are found among many": newestSimilar,
		"foreign documents are no records": foreign,
		"a lease has one owner":            lease,
		"a note has one writer at a time":  notes,
		"a tenant sees its own":            tenants,
		"a digest reads what is new":       digests,
		"remarks stay beside the records":  remarks,
	} {
		t.Run(promise, func(t *testing.T) { check(t, open(t)) })
	}
}

var ctx = context.Background()

func save(t *testing.T, s *history.Store, list ...disdel.Record) {
	t.Helper()
	for i := range list {
		if err := s.Save(ctx, &list[i]); err != nil {
			t.Fatal(err)
		}
	}
}

func comesBack(t *testing.T, s *history.Store) {
	want := Record(1)
	save(t, s, want)
	got, err := s.Get(ctx, want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func idempotent(t *testing.T, s *history.Store) {
	save(t, s, Record(1), Record(1), Record(1))
	list, err := s.List(ctx, history.Query{})
	if err != nil || len(list) != 1 {
		t.Errorf("%d records, %v", len(list), err)
	}
}

func replaces(t *testing.T, s *history.Store) {
	r := Record(1)
	r.Status = disdel.StatusRunning
	save(t, s, r)
	r.Status, r.Accuracy = disdel.StatusFailed, 0.25
	r.Failure = &disdel.Error{Kind: disdel.OOM, Op: "train", Msg: "too much", Hint: "less"}
	save(t, s, r)
	got, err := s.Get(ctx, r.ID)
	if err != nil || got.Status != disdel.StatusFailed || got.Accuracy != 0.25 || !errors.Is(got.Failure, disdel.OOM) {
		t.Errorf("got %+v, %v", got.Status, err)
	}
}

// lists goes over more records than a page holds.
func lists(t *testing.T, s *history.Store) {
	const n = 120
	for i := range n {
		r := Record(i)
		if i%2 == 1 {
			r.Status = disdel.StatusFailed
		}
		save(t, s, r)
	}
	all, err := s.List(ctx, history.Query{Limit: 1000})
	if err != nil || len(all) != n {
		t.Fatalf("%d records, %v", len(all), err)
	}
	for i, r := range all {
		if r.ID != Record(n-1-i).ID {
			t.Fatalf("record %d is %s", i, r.ID)
		}
	}
	paged := 0
	for page := (history.Query{Limit: 50}); ; paged += page.Limit {
		got, err := s.List(ctx, page)
		if err != nil || len(got) > 0 && got[0].ID != all[paged].ID {
			t.Fatalf("page from %d: %v", paged, err)
		}
		if len(got) < page.Limit {
			paged += len(got)
			break
		}
		page.Before = got[len(got)-1].ID
	}
	if paged != n {
		t.Errorf("%d records page by page", paged)
	}
	for _, c := range []struct {
		q    history.Query
		want int
	}{
		{history.Query{Limit: 7}, 7},
		{history.Query{Limit: 1000, Status: disdel.StatusFailed}, n / 2},
		{history.Query{Model: "vgg16"}, 0},
		{history.Query{Limit: 1000, Model: "lenet5", Dataset: "digits"}, n},
		{history.Query{Limit: 1000, Since: Record(n - 5).Created}, 5},
	} {
		if got, err := s.List(ctx, c.q); err != nil || len(got) != c.want {
			t.Errorf("%+v: %d records, want %d, %v", c.q, len(got), c.want, err)
		}
	}
}

func resolves(t *testing.T, s *history.Store) {
	save(t, s, Record(1), Record(2), Record(4), Record(12))
	for ref, want := range map[string]disdel.JobID{
		"@last": Record(12).ID, string(Record(2).ID): Record(2).ID, "name-1": Record(4).ID,
		"0000000000000000000000000" + "2": Record(2).ID,
	} {
		if got, err := s.Resolve(ctx, ref); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", ref, got, err, want)
		}
	}
	if _, err := s.Resolve(ctx, "job-000"); !errors.Is(err, disdel.Conflict) {
		t.Errorf("a start of several: %v, want Conflict", err)
	}
	if _, err := s.Resolve(ctx, "nobody"); !errors.Is(err, disdel.NotFound) {
		t.Errorf("nothing: %v, want NotFound", err)
	}
}

func similar(t *testing.T, s *history.Store) {
	other := Record(3)
	other.Job.Training.BatchSize = 64
	layers := Record(5)
	layers.Job.Model = disdel.Model{Layers: []disdel.Layer{{Kind: "dense", Units: 10}}}
	backend := Record(7)
	backend.Job.Training.Backend = "gorgonia"
	save(t, s, Record(1), Record(2), other, layers, backend)
	got, err := s.Similar(ctx, Record(9).Job)
	if err != nil || len(got) != 2 || got[0].ID != Record(2).ID {
		t.Errorf("by name: %d records, %v", len(got), err)
	}
	got, err = s.Similar(ctx, layers.Job)
	if err != nil || len(got) != 1 || got[0].ID != layers.ID {
		t.Errorf("by layers: %d records, %v", len(got), err)
	}
	got, err = s.Similar(ctx, backend.Job)
	if err != nil || len(got) != 1 || got[0].ID != backend.ID {
		t.Errorf("by backend: %d records, %v", len(got), err)
	}
}

// leastOfMany is the least number of similar jobs that a plan gets, if there are as many.
const leastOfMany = 20

// newestSimilar has more records of a kind than a plan looks at, and more of other kinds between them and after them.
func newestSimilar(t *testing.T, s *history.Store) {
	const n = 220
	layers := []disdel.Layer{{Kind: "dense", Units: 10}}
	other := func(i int, r disdel.Record) disdel.Record {
		switch i % 5 {
		case 0:
			r.Job.Training.BatchSize = 64
		case 1:
			r.Job.Training.Backend = "gorgonia"
		case 2:
			r.Job.Model.Name, r.Job.Model.Custom = "", "own"
		case 3:
			r.Job.Model.Name, r.Job.Model.Layers = "", layers
		case 4:
			r.Job.Data.Source = "dataset://other"
		}
		return r
	}
	var all sync.WaitGroup
	for part := range 4 {
		all.Go(func() {
			for i := part; i < n; i += 4 {
				if r := Record(i); i >= 150 || i%8 == 5 {
					save(t, s, other(i, r))
				} else {
					save(t, s, r)
				}
			}
		})
	}
	all.Wait()
	same := func(what string, job disdel.Job, want []int) {
		t.Helper()
		got, err := s.Similar(ctx, job)
		if n := len(got); err == nil && n >= leastOfMany && n < len(want) {
			want = want[:n] // there are enough by then
		}
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %d records, want %d, %v", what, len(got), len(want), err)
			return
		}
		for i, r := range got {
			if r.ID != Record(want[i]).ID {
				t.Errorf("%s: record %d is %s, want %s", what, i, r.ID, Record(want[i]).ID)
				return
			}
		}
	}
	var plain []int
	others := map[int][]int{}
	for i := n - 1; i >= 0; i-- {
		if i >= 150 || i%8 == 5 {
			others[i%5] = append(others[i%5], i)
		} else if len(plain) < 100 {
			plain = append(plain, i)
		}
	}
	same("the usual kind", Record(0).Job, plain)
	for k, want := range others {
		same(fmt.Sprintf("kind %d", k), other(k, Record(0)).Job, want)
	}
	past, err := s.Recent(ctx, 60)
	if err != nil || len(past) != 60 || past[0].ID != Record(n-1).ID || past[59].ID != Record(n-60).ID {
		t.Errorf("recent: %d records, %v", len(past), err)
	}
}

// foreign writes what no disdel would: a document that says it is another job, which would become part of paths.
func foreign(t *testing.T, s *history.Store) {
	save(t, s, Record(1))
	for _, id := range []disdel.JobID{"../../../etc/passwd", "job-x; touch y", Record(1).ID + "/..", ""} {
		hostile := Record(2)
		hostile.ID = id
		if err := s.Save(ctx, &hostile); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%q: %v, want Invalid", id, err)
		}
	}
	if list, err := s.List(ctx, history.Query{}); err != nil || len(list) != 1 {
		t.Errorf("%d records, %v", len(list), err)
	}
}

func missing(t *testing.T, s *history.Store) {
	for _, id := range []disdel.JobID{"job-none", Record(9).ID} {
		if _, err := s.Get(ctx, id); !errors.Is(err, disdel.NotFound) {
			t.Errorf("get: %v", err)
		}
		if err := s.Delete(ctx, id); !errors.Is(err, disdel.NotFound) {
			t.Errorf("delete: %v", err)
		}
	}
	save(t, s, Record(1))
	if err := s.Delete(ctx, Record(1).ID); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(ctx, Record(1).ID); !errors.Is(err, disdel.NotFound) {
		t.Errorf("after delete: %v", err)
	}
}

func concurrent(t *testing.T, s *history.Store) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			r := Record(i % 4)
			r.Accuracy = float64(i)
			if err := s.Save(ctx, &r); err != nil && !errors.Is(err, disdel.Conflict) {
				t.Errorf("save: %v", err)
			}
		})
	}
	all.Wait()
	if list, err := s.List(ctx, history.Query{}); err != nil || len(list) != 4 {
		t.Errorf("%d records, %v", len(list), err)
	}
}

func noInjection(t *testing.T, s *history.Store) {
	save(t, s, Record(1))
	job := Record(1).Job
	job.Data.Source = `{"$gt":null}`
	if got, err := s.Similar(ctx, job); err != nil || len(got) != 0 {
		t.Errorf("%d records, %v", len(got), err)
	}
	for _, ref := range []string{"../_all_dbs", "_all_docs", "a/b?c", strings.Repeat("x", 300), ""} {
		if _, err := s.Resolve(ctx, ref); !errors.Is(err, disdel.NotFound) {
			t.Errorf("%q: %v, want NotFound", ref, err)
		}
	}
}
