package history

import (
	"cmp"
	"context"
	_ "embed" // the view's map
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-kivik/kivik/v4"
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

// Every job's id lies between these two.
const (
	prefix  = "job-"
	highest = prefix + "\ufff0"
)

// pageSize is how many records are read at once, at most. The first page is as small as what is asked for, each one
// after it as what is still missing, or larger where much of a page was passed over.
const pageSize = 50

// pageRows is how many rows are read at once, at most, where most of them name documents that are not wanted.
const pageRows = 500

// order is the fields that a query goes by, newest first; nil: the id alone.
type order []string

// search is which records are looked for: rows of the view where the server has it, else what a selector leaves.
type search struct {
	key    []any                      // with which the rows' keys begin; an id ends them. nil: no view is needed
	keeps  func(json.RawMessage) bool // of a row's value, whose document is wanted; nil: the value is the document
	before string                     // ids below this one; "": all

	selector map[string]any
	by       order
	fields   []string // that are wanted of a document; nil: all
}

// page is what of a search has been read at once.
type page struct {
	last   string // the id that it ended with
	seen   int    // documents or rows
	passed int    // of them, that were left out
	more   int    // how many are wanted beyond it
}

// each calls f with the records that a search finds, newest first, for as long as f wants more: it returns how many
// more are likely to be enough, 0 for none. Records of another version are passed over. first is how many are likely to
// be enough at all.
func (s *Store) each(ctx context.Context, q search, first int, f func(r disdel.Record, size int) (more int)) error {
	before, limit := cmp.Or(q.before, highest), min(max(first, 1), pageSize)
	for {
		p, err := s.page(ctx, q, before, limit, f)
		if err != nil || p.seen == 0 || p.more == 0 { // PouchDB's server gives pages that are a record short
			return err
		}
		before = p.last
		switch seldom := p.passed > p.seen/2; {
		case seldom && q.keeps != nil:
			limit = min(4*limit, pageRows)
		case seldom:
			limit = min(4*limit, pageSize)
		default:
			limit = min(max(p.more, 1), pageSize)
		}
	}
}

// page reads the records before an id, as many as limit at most.
func (s *Store) page(ctx context.Context, q search, before string, limit int,
	f func(disdel.Record, int) (more int),
) (page, error) {
	p := page{more: limit}
	err := s.documents(ctx, q, before, limit, func(id string, raw json.RawMessage) (bool, error) {
		r, err := disdel.Record{}, error(nil)
		if raw != nil {
			if r, err = decode(raw); err != nil {
				id, err = s.passOver(raw, err)
			} else {
				id = string(r.ID)
			}
		}
		if err != nil {
			return false, err
		}
		if id >= before { // views begin with the record that the page before ended with, PouchDB's selectors too
			return true, nil
		}
		p.last, p.seen = id, p.seen+1
		if r.ID == "" || !s.sees(&r) {
			p.passed++
			return true, nil
		}
		p.more = f(r, len(raw))
		return p.more > 0, nil
	})
	return p, err
}

// tell logs once why a document cannot be read as a record; lists read it again and again.
func (s *Store) tell(id string, why error) {
	if _, before := s.told.LoadOrStore(id, struct{}{}); !before {
		s.log.WithError(why).Warnf("the history cannot read the record %s; disdel history delete %[1]s removes it", id)
	}
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
		s.tell(head.ID, why)
	}
	return head.ID, nil
}

// documents calls f with the documents before an id that a search finds, newest first, until f wants no more. Of a row
// whose document is not wanted f has the id alone.
func (s *Store) documents(ctx context.Context, q search, before string, limit int, f documentFunc) error {
	if before != highest {
		limit++ // a page may begin with the record that the page before it ended with
	}
	rows, end, there := s.viewRows(ctx, q, before, limit)
	if !there {
		return s.selected(ctx, q, before, limit, f)
	}
	defer end()
	if q.keeps == nil {
		return s.values(rows, f)
	}
	return s.chosen(ctx, rows, q, f)
}

type documentFunc func(id string, raw json.RawMessage) (more bool, err error)

// values calls f with rows whose values are documents.
func (s *Store) values(rows *kivik.ResultSet, f documentFunc) error {
	for rows.Next() {
		var raw json.RawMessage
		if err := rows.ScanValue(&raw); err != nil {
			return wrap(err, "list records", "")
		}
		if more, err := f("", raw); err != nil || !more {
			return err
		}
	}
	return wrap(rows.Err(), "list records", "")
}

// chosen calls f with the documents of those rows whose values are kept, and reads no others.
func (s *Store) chosen(ctx context.Context, rows *kivik.ResultSet, q search, f documentFunc) error {
	var ids, kept []string
	for rows.Next() {
		var value json.RawMessage
		id, err := rows.ID()
		if err == nil {
			err = rows.ScanValue(&value)
		}
		if err != nil {
			return wrap(err, "list records", "")
		}
		ids = append(ids, id)
		if q.keeps(value) {
			kept = append(kept, id)
		}
	}
	if err := rows.Err(); err != nil {
		return wrap(err, "list records", "")
	}
	documents, err := s.byIDs(ctx, kept)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if more, err := f(id, documents[id]); err != nil || !more {
			return err
		}
	}
	return nil
}

// byIDs reads documents. One that was deleted meanwhile is not among them.
func (s *Store) byIDs(ctx context.Context, ids []string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if len(ids) == 0 {
		return out, nil
	}
	rows := s.db.AllDocs(ctx, kivik.Params(map[string]any{"keys": ids, "include_docs": true}))
	defer rows.Close() //nolint:errcheck // what it had to say has been said
	for rows.Next() {
		id, err := rows.ID()
		if err != nil {
			continue // gone
		}
		var raw json.RawMessage
		if err := rows.ScanDoc(&raw); err != nil || string(raw) == "null" {
			continue
		}
		out[id] = raw
	}
	return out, wrap(rows.Err(), "list records", "")
}

// selected calls f with the documents that a selector leaves.
func (s *Store) selected(ctx context.Context, q search, before string, limit int, f documentFunc) error {
	rows := s.find(ctx, q, before, limit)
	// there is no such index: who may only read cannot make one
	if len(q.by) > 0 && kivik.HTTPStatus(rows.Err()) == http.StatusBadRequest {
		rows.Close()
		q.by = nil
		rows = s.find(ctx, q, before, limit)
	}
	for rows.Next() {
		var raw json.RawMessage
		if err := rows.ScanDoc(&raw); err != nil {
			return errors.Join(wrap(err, "list records", ""), rows.Close())
		}
		if more, err := f("", raw); err != nil || !more {
			return errors.Join(err, rows.Close())
		}
	}
	return wrap(rows.Err(), "list records", "")
}

func (s *Store) find(ctx context.Context, q search, before string, limit int) *kivik.ResultSet {
	query := map[string]any{"_id": map[string]any{"$gte": prefix, "$lt": before}}
	if s.tenant != nil {
		query[tenantField] = given(*s.tenant, *s.tenant == "")
	}
	maps.Copy(query, q.selector)
	var sort []map[string]string
	for _, field := range append(slices.Clone(q.by), "_id") {
		sort = append(sort, map[string]string{field: "desc"})
	}
	ask := map[string]any{"selector": query, "sort": sort, "limit": limit}
	if q.fields != nil {
		ask["fields"] = q.fields
	}
	return s.db.Find(ctx, ask)
}

// viewDesign is the design document that the view is in. It changes its name with it, as design does, and is made by
// the first query that wants it.
const (
	viewDesign = "disdel-view"
	viewName   = "records"
)

// viewMap makes the rows. All are of one view: PouchDB evaluates a document anew for each that there is.
//
//go:embed view.js
var viewMap string

// viewDocument is the design document.
func viewDocument() map[string]any {
	return map[string]any{
		"language": "javascript", "views": map[string]any{viewName: map[string]string{"map": viewMap}},
	}
}

// view is what is known of a server's view. Where it cannot be asked, selectors find the same records, only later: the
// embedded history has none, a user may be allowed none, and one that is new to a large history is built first.
type view struct {
	none     atomic.Bool
	resting  atomic.Int64  // Unix time in ms until which it is not asked
	patience time.Duration // that a query has with one that does not answer
}

const (
	viewPatience = 2 * time.Second
	viewRest     = 10 * time.Second
)

// errBuilding ends a query that the server answers when it has built the view.
var errBuilding = errors.New("the view is being built")

// viewRows is the rows of a view before an id, newest first, and what ends the query; false where the view cannot be
// asked now.
func (s *Store) viewRows(ctx context.Context, q search, before string, limit int) (*kivik.ResultSet, func(), bool) {
	if q.key == nil || s.view.none.Load() || time.Now().UnixMilli() < s.view.resting.Load() {
		return nil, nil, false
	}
	for made := false; ; made = true {
		rows, end, err := s.askView(ctx, q, before, limit)
		if err == nil {
			return rows, end, true
		}
		end()
		switch status := kivik.HTTPStatus(err); {
		case status == http.StatusNotFound && !made && s.makeView(ctx):
			continue
		case status >= 400 && status < 500 && ctx.Err() == nil:
			s.view.none.Store(true)
		default: // being built, or out of order; the selector's query says which
			s.view.resting.Store(time.Now().Add(viewRest).UnixMilli())
		}
		s.log.WithError(err).Debug("the history's view is not asked, its queries take longer")
		return nil, nil, false
	}
}

// askView asks for rows, and does not wait for a view that is being built: the server continues with that by itself.
func (s *Store) askView(ctx context.Context, q search, before string, limit int) (*kivik.ResultSet, func(), error) {
	ctx, stop := context.WithCancelCause(ctx)
	late := time.AfterFunc(s.view.patience, func() { stop(errBuilding) })
	rows := s.db.Query(ctx, viewDesign, viewName, kivik.Params(map[string]any{
		"startkey": slices.Concat(q.key, []any{before}), "endkey": slices.Concat(q.key, []any{prefix}),
		"descending": true, "limit": limit,
	}))
	err := rows.Err()
	if !late.Stop() {
		err = errBuilding
	}
	return rows, func() {
		rows.Close() //nolint:errcheck // what it had to say has been said
		stop(nil)
	}, err
}

// makeView writes the design document; false where that is not allowed, or not known there.
func (s *Store) makeView(ctx context.Context) bool {
	_, err := s.db.Put(ctx, "_design/"+viewDesign, viewDocument())
	return err == nil || kivik.HTTPStatus(err) == http.StatusConflict // another process was faster
}

// Resolve finds the job that a person means: an id, the start of one, "@last", or a job's name (its newest). It returns
// NotFound, and Conflict with the candidates for a start that several ids share. A record that cannot be read is found
// by its id.
func (s *Store) Resolve(ctx context.Context, ref string) (disdel.JobID, error) {
	if id := disdel.JobID(ref); id.Valid() {
		_, err := s.Get(ctx, id)
		if err == nil || disdel.AsError(err).Code == disdel.CodeUnreadable {
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
	named := search{selector: map[string]any{nameField: equal(ref)}, by: order{nameField}}
	switch ref {
	case "":
		return "", nil
	case "@last":
		named = s.searchFor(&Query{})
	}
	err = s.each(ctx, named, 1, func(r disdel.Record, _ int) int {
		id = r.ID
		return 0
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
		return err != nil && disdel.AsError(err).Code != disdel.CodeUnreadable
	}), nil
}
