package historytest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// remarks are on jobs, whoever runs them, and are no records; a tenant sees those of its own jobs.
func remarks(t *testing.T, s *history.Store) {
	mine, theirs := Record(1), Record(2)
	mine.Tenant, theirs.Tenant = "ann", "bob"
	save(t, s, mine, theirs)
	ann := s.ForTenant("ann")
	look := func(store *history.Store, want map[disdel.JobID]history.Remark) {
		t.Helper()
		got, err := store.Remarks(ctx)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	say := func(store *history.Store, id disdel.JobID, r history.Remark, kind disdel.Kind) {
		t.Helper()
		if err := store.SetRemark(ctx, id, r); disdel.KindOf(err) != kind {
			t.Errorf("%+v: %v", r, err)
		}
	}
	say(ann, mine.ID, history.Remark{Tags: []string{"paper", "base", "paper"}, Text: "the one with dropout"}, 0)
	say(s, theirs.ID, history.Remark{Text: "theirs"}, 0)
	say(ann, theirs.ID, history.Remark{Text: "not mine"}, disdel.NotFound)
	say(ann, Record(3).ID, history.Remark{Text: "of none"}, disdel.NotFound)
	say(ann, mine.ID, history.Remark{Tags: []string{"two words"}}, disdel.Invalid)
	say(ann, mine.ID, history.Remark{Text: strings.Repeat("a", 5000)}, disdel.Invalid)
	own := history.Remark{Tags: []string{"base", "paper"}, Text: "the one with dropout"}
	look(ann, map[disdel.JobID]history.Remark{mine.ID: own})
	look(s, map[disdel.JobID]history.Remark{mine.ID: own, theirs.ID: {Text: "theirs"}})
	mine.Status = disdel.StatusFailed
	save(t, s, mine) // its owner goes on
	look(ann, map[disdel.JobID]history.Remark{mine.ID: own})
	if list, err := s.List(ctx, history.Query{}); err != nil || len(list) != 2 {
		t.Errorf("%d records, %v", len(list), err)
	}
	say(s, theirs.ID, history.Remark{}, 0)
	say(s, theirs.ID, history.Remark{}, 0)
	look(s, map[disdel.JobID]history.Remark{mine.ID: own})
	if err := ann.Delete(ctx, mine.ID); err != nil {
		t.Error(err)
	}
	look(s, map[disdel.JobID]history.Remark{})
	if err := ann.Delete(ctx, mine.ID); !errors.Is(err, disdel.NotFound) {
		t.Errorf("deleted twice: %v", err)
	}
}
