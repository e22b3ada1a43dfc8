package history

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
)

// UsualLimit is how many records a Query without a Limit lists.
const UsualLimit = 50

// Query narrows a list; zero fields do not.
type Query struct {
	Limit   int // 0: UsualLimit
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
	list, _, err := s.Page(ctx, q, math.MaxInt)
	return list, err
}

// pageBegins is how many records a page of bounded size reads at first: nobody knows yet how large they are.
const pageBegins = 8

// Page is List that ends once the records come to so many bytes, as the history keeps them; it has at least one record.
// With cut, it ended for that: a Query with Before set to the last record's id goes on.
func (s *Store) Page(ctx context.Context, q Query, bytes int) (list []disdel.Record, cut bool, err error) {
	if q.Limit == 0 {
		q.Limit = UsualLimit
	}
	list = []disdel.Record{}
	first, all := q.Limit, 0
	if bytes < math.MaxInt {
		first = min(first, pageBegins)
	}
	err = s.each(ctx, s.searchFor(&q), first, func(r disdel.Record, size int) (more int) {
		if !r.Created.Before(q.Since) {
			list, all = append(list, r), all+size
		}
		if !q.Since.IsZero() && olderThan(r.ID, q.Since) {
			return 0
		}
		if len(list) == 0 {
			return q.Limit
		}
		left := q.Limit - len(list)
		cut = left > 0 && all >= bytes
		if cut {
			return 0
		}
		return min(left, 1+(bytes-all)/(1+all/len(list)))
	})
	return list, cut, err
}
