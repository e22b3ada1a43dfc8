package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-kivik/kivik/v4"
	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
)

// Query narrows a list; zero fields do not.
type Query struct {
	Limit   int // 0: 50
	Since   time.Time
	Model   string // network of the zoo, or output model
	Dataset string
	Status  disdel.Status
}

// selector is what the server is asked to leave out.
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

// Every job's id lies between these two.
const (
	prefix  = "job-"
	highest = prefix + "\ufff0"
)

// pageSize is how many records are read at once, at most. The first page is as small as what is asked for, each one
// after it larger.
const pageSize = 50

// order is the fields that a query goes by, newest first; nil: the id alone.
type order []string

// each calls f with the records that match a selector, newest first, until f returns false. Records of another version
// are passed over. first is how many are likely to be enough.
func (s *Store) each(ctx context.Context, selector map[string]any, by order, first int,
	f func(r disdel.Record, size int) bool,
) error {
	before, limit := highest, min(max(first, 1), pageSize)
	for {
		last, n, err := s.page(ctx, selector, by, before, limit, f)
		if err != nil || n == 0 { // PouchDB's server gives pages that are a record short
			return err
		}
		before, limit = last, min(4*limit, pageSize)
	}
}

// page reads the records before an id; n is 0 once f wants no more.
func (s *Store) page(ctx context.Context, selector map[string]any, by order, before string, limit int,
	f func(disdel.Record, int) bool,
) (last string, n int, err error) {
	rows := s.find(ctx, selector, by, before, limit)
	// there is no such index: who may only read cannot make one
	if len(by) > 0 && kivik.HTTPStatus(rows.Err()) == http.StatusBadRequest {
		rows.Close()
		rows = s.find(ctx, selector, nil, before, limit)
	}
	for rows.Next() {
		var raw json.RawMessage
		if err := rows.ScanDoc(&raw); err != nil {
			return "", 0, errors.Join(wrap(err, "list records", ""), rows.Close())
		}
		r, err := decode(raw)
		id := string(r.ID)
		if err != nil {
			if id, err = s.passOver(raw, err); err != nil {
				return "", 0, errors.Join(err, rows.Close())
			}
		}
		if id >= before { // PouchDB's server begins with the record that the page before it ended with
			continue
		}
		last, n = id, n+1
		if r.ID != "" && s.sees(&r) && !f(r, len(raw)) {
			return "", 0, rows.Close()
		}
	}
	return last, n, wrap(rows.Err(), "list records", "")
}

// passOver says why a document is left out, and returns its id.
func (s *Store) passOver(raw json.RawMessage, why error) (id string, err error) {
	var head struct {
		ID string `json:"_id"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || head.ID == "" {
		return "", why
	}
	if disdel.KindOf(why) == disdel.Corrupt {
		s.log.WithError(why).Warn("a document of the history is no record")
	}
	return head.ID, nil
}

func (s *Store) find(ctx context.Context, selector map[string]any, by order, before string,
	limit int,
) *kivik.ResultSet {
	query := map[string]any{"_id": map[string]any{"$gte": prefix, "$lt": before}}
	if s.tenant != nil {
		query[tenantField] = given(*s.tenant, *s.tenant == "")
	}
	maps.Copy(query, selector)
	var sort []map[string]string
	for _, field := range append(slices.Clone(by), "_id") {
		sort = append(sort, map[string]string{field: "desc"})
	}
	return s.db.Find(ctx, map[string]any{"selector": query, "sort": sort, "limit": limit})
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
		q.Limit = 50
	}
	out := []disdel.Record{}
	err := s.each(ctx, q.selector(), nil, q.Limit, func(r disdel.Record, _ int) bool {
		if !r.Created.Before(q.Since) {
			out = append(out, r)
		}
		return len(out) < q.Limit && (q.Since.IsZero() || !olderThan(r.ID, q.Since))
	})
	return out, err
}

// Resolve finds the job that a person means: an id, the start of one, "@last", or a job's name (its newest). It returns
// NotFound, and Conflict with the candidates for a start that several ids share.
func (s *Store) Resolve(ctx context.Context, ref string) (disdel.JobID, error) {
	if id := disdel.JobID(ref); id.Valid() {
		if _, err := s.Get(ctx, id); err == nil {
			return id, nil
		} else if disdel.KindOf(err) != disdel.NotFound {
			return "", err
		}
	}
	if id, err := s.newest(ctx, ref); id != "" || err != nil {
		return id, err
	}
	list, err := s.startingWith(ctx, ref)
	switch {
	case err != nil:
		return "", err
	case len(list) == 1:
		return disdel.JobID(list[0]), nil
	case len(list) > 1:
		return "", &disdel.Error{
			Kind: disdel.Conflict, Op: "find job", Msg: fmt.Sprintf("%s jobs start with %q", countText(len(list)), ref),
			Hint: "one of: " + strings.Join(list[:min(5, len(list))], ", "),
		}
	default:
		return "", &disdel.Error{
			Kind: disdel.NotFound, Code: disdel.CodeNoJob, Op: "find job", Msg: fmt.Sprintf("there is no job %q", ref),
			Hint: "disdel history lists them; disdel quickstart runs a first one",
		}
	}
}

// maxCandidates bounds how many ids that start alike are looked at.
const maxCandidates = 1000

func countText(n int) string {
	if n >= maxCandidates {
		return fmt.Sprintf("%d and more", maxCandidates)
	}
	return fmt.Sprint(n)
}

// newest is the newest job of all, or that of a name.
func (s *Store) newest(ctx context.Context, ref string) (id disdel.JobID, err error) {
	selector, by := map[string]any{nameField: equal(ref)}, order{nameField}
	switch ref {
	case "":
		return "", nil
	case "@last":
		selector, by = nil, nil
	}
	err = s.each(ctx, selector, by, 1, func(r disdel.Record, _ int) bool {
		id = r.ID
		return false
	})
	return id, err
}

// startingWith is the ids that start with a text, "job-" left out or not, in order.
func (s *Store) startingWith(ctx context.Context, ref string) ([]string, error) {
	if ref == "" || len(ref) > len(prefix)+26 {
		return nil, nil
	}
	if !strings.HasPrefix(ref, prefix) {
		if strings.HasPrefix(prefix, ref) {
			ref = prefix // "j": every job
		} else {
			ref = prefix + ref
		}
	}
	rows := s.db.AllDocs(ctx,
		kivik.Params(map[string]any{"limit": maxCandidates, "startkey": ref, "endkey": ref + "\ufff0"}))
	var out []string
	for rows.Next() {
		id, err := rows.ID()
		if err != nil {
			return nil, errors.Join(wrap(err, "find job", ""), rows.Close())
		}
		if disdel.JobID(id).Valid() {
			out = append(out, id)
		}
	}
	if err := rows.Err(); err != nil || s.tenant == nil {
		return out, wrap(err, "find job", "")
	}
	return slices.DeleteFunc(out, func(id string) bool {
		_, err := s.Get(ctx, disdel.JobID(id))
		return err != nil
	}), nil
}

// A plan looks at no more records than these: as many jobs, or as many bytes of them if there are enough jobs by then.
// The record of a job of many rounds is long, and tells as much as those of many short jobs.
const (
	similarLimit  = 100
	enoughJobs    = 20
	enoughSimilar = 1 << 20
	enoughRecent  = 1 << 19
)

// lesson gathers records until there are enough of them.
type lesson struct {
	records []disdel.Record
	limit   int
	enough  int // bytes
	size    int
}

func (l *lesson) add(r disdel.Record, size int) (more bool) {
	l.records, l.size = append(l.records, r), l.size+size
	return len(l.records) < l.limit && (len(l.records) < enoughJobs || l.size < l.enough)
}

// Similar returns the newest records of the same network, data set, batch size and backend, newest first: one backend's
// durations say nothing of the other's.
func (s *Store) Similar(ctx context.Context, job disdel.Job) ([]disdel.Record, error) {
	m := job.Model
	selector := map[string]any{
		sourceField: equal(job.Data.Source), batchField: equal(job.Training.JobBatch()),
		backendField: given(job.Training.Backend, job.Training.Backend == ""), networkField: given(m.Name, m.Name == ""),
		customField: given(m.Custom, m.Custom == ""), layersField: given(m.Layers, len(m.Layers) == 0),
	}
	l := lesson{limit: similarLimit, enough: enoughSimilar}
	err := s.each(ctx, selector, order{sourceField, batchField}, enoughJobs, func(r disdel.Record, size int) bool {
		return !sameKind(&r.Job, &job) || l.add(r, size)
	})
	return l.records, err
}

// sameKind is what the selector of Similar says, on records as they are read.
func sameKind(a, b *disdel.Job) bool {
	return a.Data.Source == b.Data.Source && a.Data.Resize == b.Data.Resize && a.Training.SameBatch(b.Training) &&
		a.Training.Backend == b.Training.Backend &&
		a.Model.Name == b.Model.Name && a.Model.Custom == b.Model.Custom && len(a.Model.Layers) == len(b.Model.Layers) &&
		(len(a.Model.Layers) == 0 || reflect.DeepEqual(a.Model.Layers, b.Model.Layers))
}

// Recent returns the newest records of jobs of any kind, newest first: what estimates and forecasts learn from where no
// job of the same kind has run.
func (s *Store) Recent(ctx context.Context, limit int) ([]disdel.Record, error) {
	l := lesson{limit: limit, enough: enoughRecent}
	err := s.each(ctx, nil, nil, min(limit, enoughJobs), l.add)
	return l.records, err
}
