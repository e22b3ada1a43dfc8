package history

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
)

// usualLimit is how many records are listed where nobody says it.
const usualLimit = 50

// Query narrows a list; zero fields do not.
type Query struct {
	Limit   int // 0: usualLimit
	Since   time.Time
	Before  disdel.JobID // jobs older than this one: the last of a page asks for the next
	Model   string       // network of the zoo, or output model
	Dataset string
	Status  disdel.Status
}

// conditions is what a list is narrowed by, as rows of the view have it, that which leaves out most first.
func (q *Query) conditions() (out [][2]string) {
	status := ""
	if q.Status != disdel.StatusUnknown {
		status = q.Status.String()
	}
	for _, c := range [][2]string{{"model", q.Model}, {"dataset", q.Dataset}, {"status", status}} {
		if c[1] != "" {
			out = append(out, c)
		}
	}
	return out
}

// selector is what a server without views is asked to leave out.
func (q *Query) selector() map[string]any {
	out := map[string]any{}
	if q.Model != "" {
		out["$or"] = []any{map[string]any{networkField: equal(q.Model)}, map[string]any{outputField: equal(q.Model)}}
	}
	if q.Dataset != "" {
		out[datasetField] = equal(q.Dataset)
	}
	if q.Status != disdel.StatusUnknown {
		out[statusField] = equal(q.Status.String())
	}
	return out
}

func equal(value any) map[string]any { return map[string]any{"$eq": value} }

// given is the condition on a field that is left out where it is empty.
func given(value any, empty bool) map[string]any {
	if empty {
		return map[string]any{"$exists": false}
	}
	return equal(value)
}

// listed is the value of a row that lists go by.
type listed struct {
	Status  string   `json:"status"`
	Dataset string   `json:"dataset"`
	Models  []string `json:"models"`
	Tenant  string   `json:"tenant"`
}

func (l *listed) is(condition [2]string) bool {
	switch what, value := condition[0], condition[1]; what {
	case "model":
		return slices.Contains(l.Models, value)
	case "dataset":
		return l.Dataset == value
	default:
		return l.Status == value
	}
}

// searchFor is how a list's records are found. All of a home's own are the documents in their order: no view is needed.
func (s *Store) searchFor(q *Query) search {
	found := search{selector: q.selector(), before: string(q.Before)}
	all := q.conditions()
	switch {
	case len(all) > 0:
		found.key = []any{all[0][0], s.scope(), all[0][1]}
	case s.scope() != nil:
		found.key = []any{"any", s.scope(), ""}
	default:
		return found
	}
	found.keeps = func(value json.RawMessage) bool {
		var l listed
		if json.Unmarshal(value, &l) != nil || !s.sees(&disdel.Record{Tenant: l.Tenant}) {
			return false
		}
		return !slices.ContainsFunc(all, func(c [2]string) bool { return !l.is(c) })
	}
	return found
}

// scope is the second part of the view's keys: the tenant whose records are asked for, nil for everybody's. Those of
// nobody are among everybody's.
func (s *Store) scope() any {
	if s.tenant == nil || *s.tenant == "" {
		return nil
	}
	return *s.tenant
}

// clockSlack is how far a job's own time may lie from the one in its id: it begins a little after it was named, and
// clocks are set.
const clockSlack = 24 * time.Hour

// olderThan tells whether a job's id says that it, and with it every job before it, is older than t.
func olderThan(id disdel.JobID, t time.Time) bool {
	u, err := ulid.ParseStrict(strings.ToUpper(strings.TrimPrefix(string(id), prefix)))
	return err == nil && u.Time() > 0 && u.Timestamp().Add(clockSlack).Before(t)
}

// List returns records, newest first.
func (s *Store) List(ctx context.Context, q Query) ([]disdel.Record, error) {
	if q.Limit == 0 {
		q.Limit = usualLimit
	}
	out := []disdel.Record{}
	err := s.each(ctx, s.searchFor(&q), q.Limit, func(r disdel.Record, _ int) (more int) {
		if !r.Created.Before(q.Since) {
			out = append(out, r)
		}
		if !q.Since.IsZero() && olderThan(r.ID, q.Since) {
			return 0
		}
		return q.Limit - len(out)
	})
	return out, err
}
