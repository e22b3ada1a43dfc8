package history

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/go-kivik/kivik/v4"

	"github.com/disdel/disdel"
)

// Two servers that were apart, or the nodes of one, may each have taken another state of a record. CouchDB then shows
// one of them, and not by what it says: a job that has ended may run again for whoever reads. What counts here is the
// state that is furthest. A record that is read is shown in it; the next save, which knows more than all of them, takes
// the others away.

// conflictsField is where a document names its other states.
const conflictsField = "_conflicts"

var withConflicts = kivik.Param("conflicts", true)

// revisions is what a document has in conflictsField.
func revisions(v any) (out []string) {
	list, _ := v.([]any)
	for _, one := range list {
		if rev, ok := one.(string); ok {
			out = append(out, rev)
		}
	}
	return out
}

// drop deletes states of a record that another one was saved over. One that stays is dropped by the next save.
func (s *Store) drop(ctx context.Context, id disdel.JobID, apart []string) {
	for _, rev := range apart {
		if _, err := s.db.Delete(ctx, string(id), rev); err != nil {
			s.log.WithError(err).WithField("job", id).Debug("another state of the record stays")
		}
	}
}

// furthest is the record in the state that is furthest, of that which the server shows and those that it names beside
// it. One of them that cannot be read does not count.
func (s *Store) furthest(ctx context.Context, shown disdel.Record, raw json.RawMessage) disdel.Record {
	var head struct {
		Apart []string `json:"_conflicts"`
	}
	if json.Unmarshal(raw, &head) != nil {
		return shown
	}
	for _, rev := range head.Apart {
		var other json.RawMessage
		if s.scan(ctx, shown.ID, &other, kivik.Rev(rev)) != nil {
			continue
		}
		if r, err := decode(other); err == nil && further(&r, &shown) > 0 {
			shown = r
		}
	}
	return shown
}

// further compares how far two states of one job's record are.
func further(a, b *disdel.Record) int {
	over := func(r *disdel.Record) int {
		if r.Status.Unfinished() {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Resumes, b.Resumes), cmp.Compare(over(a), over(b)),
		cmp.Compare(len(a.Rounds), len(b.Rounds)), cmp.Compare(len(a.Transitions), len(b.Transitions)),
		cmp.Compare(a.Status, b.Status))
}
