package history

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the view's map
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-kivik/kivik/v4"
	"github.com/go-kivik/kivik/v4/couchdb/chttp"
	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
)

// DefaultLimit is how many records a Query without a Limit lists.
const DefaultLimit = 50

// Query selects records. Zero fields select all.
type Query struct {
	Limit   int // 0: DefaultLimit
	Since   time.Time
	Before  disdel.JobID // jobs older than this one; the last id of a page asks for the next page
	Model   string       // network of the zoo, Python program (net.py or net.py:Net), or name of the output model
	Dataset string
	Status  disdel.Status
	Where   Filter // records that it does not select are read, too

	// Unreadable is called with the id of each selected record that this version cannot read. nil: they are left out.
	Unreadable func(id disdel.JobID)
}

// Selects reports whether a record with these tags is one that the query lists. It ignores Limit and Before.
func (q *Query) Selects(r *disdel.Record, tags []string) bool {
	return (q.Status == disdel.StatusUnknown || r.Status == q.Status) && (q.Dataset == "" || r.Data.Name == q.Dataset) &&
		(q.Model == "" || q.names(r)) && !r.Created.Before(q.Since) && q.Where.matchesRecord(r, tags)
}

// names tells whether Model is a name of a record's network, of its program or of its trained model.
func (q *Query) names(r *disdel.Record) bool {
	m := &r.Job.Model
	return m.Name == q.Model || r.Job.Output.Model == q.Model ||
		m.Python != nil && (m.Python.File == q.Model || m.Python.Name() == q.Model)
}

// conditions are the query's conditions as keys of the view, the most selective first.
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

// selector is the query for a server without views.
func (q *Query) selector() map[string]any {
	out := map[string]any{}
	if q.Model != "" {
		ways := []any{
			map[string]any{networkField: equals(q.Model)},
			map[string]any{outputField: equals(q.Model)},
			map[string]any{programField: equals(q.Model)},
		}
		if file, entry, ok := strings.Cut(q.Model, ":"); ok {
			ways = append(ways, map[string]any{programField: equals(file), entryField: equals(entry)})
		}
		out["$or"] = ways
	}
	if q.Dataset != "" {
		out[datasetField] = equals(q.Dataset)
	}
	if q.Status != disdel.StatusUnknown {
		out[statusField] = equals(q.Status.String())
	}
	return out
}

func equals(value any) map[string]any { return map[string]any{"$eq": value} }

// optionalField is the condition on a field that is missing if its value is empty.
func optionalField(value any, empty bool) map[string]any {
	if empty {
		return map[string]any{"$exists": false}
	}
	return equals(value)
}

// listedFields is the value of a view's row: the fields that lists select by.
type listedFields struct {
	Status  string   `json:"status"`
	Dataset string   `json:"dataset"`
	Models  []string `json:"models"`
	Tenant  string   `json:"tenant"`
}

func (l *listedFields) is(condition [2]string) bool {
	switch what, value := condition[0], condition[1]; what {
	case "model":
		return slices.Contains(l.Models, value)
	case "dataset":
		return l.Dataset == value
	default:
		return l.Status == value
	}
}

// searchFor is the search for a query. A list of all records needs no view, because documents are in order.
func (s *Store) searchFor(q *Query) search {
	found := search{selector: q.selector(), before: string(q.Before), unreadable: q.Unreadable}
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
		var l listedFields
		if json.Unmarshal(value, &l) != nil || !s.sees(&disdel.Record{Tenant: l.Tenant}) {
			return false
		}
		return !slices.ContainsFunc(all, func(c [2]string) bool { return !l.is(c) })
	}
	return found
}

// scope is the second part of the view's keys: a tenant, or nil for all tenants. Records without a tenant are only
// among those of nil.
func (s *Store) scope() any {
	if s.tenant == nil || *s.tenant == "" {
		return nil
	}
	return *s.tenant
}

// clockSlack is how far a job's time may be from the time in its id: jobs start later than they get their ids, and
// clocks are adjusted.
const clockSlack = 24 * time.Hour

// isOlderThan tells whether a job's id shows that it is older than t, and with it all earlier jobs.
func isOlderThan(id disdel.JobID, t time.Time) bool {
	u, err := ulid.ParseStrict(strings.ToUpper(strings.TrimPrefix(string(id), prefix)))
	return err == nil && u.Time() > 0 && u.Timestamp().Add(clockSlack).Before(t)
}

// List returns records, newest first.
func (s *Store) List(ctx context.Context, q Query) ([]disdel.Record, error) {
	list, _, err := s.Page(ctx, q, math.MaxInt)
	return list, err
}

// firstPage is how many records a page of bounded size reads first, before their size is known.
const firstPage = 8

// Page is List that ends after so many bytes of records, but has at least one record. cut tells whether it ended for
// that; a Query with Before set to the last id continues.
func (s *Store) Page(ctx context.Context, q Query, bytes int) (list []disdel.Record, cut bool, err error) {
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	list = []disdel.Record{}
	first, all := q.Limit, 0
	if bytes < math.MaxInt {
		first = min(first, firstPage)
	}
	tags, err := s.tagsFor(ctx, q.Where)
	if err != nil {
		return nil, false, err
	}
	err = s.each(ctx, s.searchFor(&q), first, func(r disdel.Record, size int) (more int) {
		if !r.Created.Before(q.Since) && q.Where.matchesRecord(&r, tags[r.ID].Tags) {
			list, all = append(list, r), all+size
		}
		if !q.Since.IsZero() && isOlderThan(r.ID, q.Since) {
			return 0
		}
		if len(list) == 0 {
			return q.Limit
		}
		remaining := q.Limit - len(list)
		cut = remaining > 0 && all >= bytes
		if cut {
			return 0
		}
		return min(remaining, 1+(bytes-all)/(1+all/len(list)))
	})
	return list, cut, err
}

// tagsFor reads the tags of all jobs if a filter needs them.
func (s *Store) tagsFor(ctx context.Context, f Filter) (map[disdel.JobID]Remark, error) {
	if !f.tags {
		return nil, nil
	}
	return s.Remarks(ctx)
}

// Every job's id is between these two.
const (
	prefix  = "job-"
	highest = prefix + "\ufff0"
)

// pageSize bounds how many records are read at once. The first page has the expected number; later pages have the
// missing number, or more if many records are filtered out.
const pageSize = 50

// pageRows bounds how many rows are read at once if most of their documents are not needed.
const pageRows = 500

// order are the fields that a query is sorted by, newest first; nil: only the id.
type order []string

// search describes which records to find, by a view or by a selector.
type search struct {
	key    []any                      // prefix of the view's keys, which end with an id; nil: no view is needed
	keeps  func(json.RawMessage) bool // selects rows by their values; nil: the value is the document
	before string                     // only ids below this one; "": all

	unreadable func(id disdel.JobID) // as of Query

	selector map[string]any
	by       order
	fields   []string // fields of a document to read; nil: all
}

// page is the progress of a search after one request.
type page struct {
	last   string // last id
	seen   int    // documents or rows read
	passed int    // of them, filtered out
	more   int    // how many more are needed
}

// each calls f with the records of a search, newest first. f returns how many more records are probably enough, 0 to
// stop. first is the expected number of all. Records of other versions are skipped.
func (s *Store) each(ctx context.Context, q search, first int, f func(r disdel.Record, size int) (more int)) error {
	before, limit := cmp.Or(q.before, highest), min(max(first, 1), pageSize)
	for {
		p, err := s.page(ctx, q, before, limit, f)
		if err != nil || p.seen == 0 || p.more == 0 { // PouchDB's pages may be one record short
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

// page reads up to limit records before an id.
func (s *Store) page(ctx context.Context, q search, before string, limit int,
	f func(disdel.Record, int) (more int),
) (page, error) {
	p := page{more: limit}
	err := s.documents(ctx, q, before, limit, func(id string, raw json.RawMessage) (bool, error) {
		r, err := disdel.Record{}, error(nil)
		if raw != nil {
			if r, err = decode(raw); err != nil {
				id, err = s.passOver(raw, err)
				if err == nil && q.unreadable != nil {
					q.unreadable(disdel.JobID(id))
				}
			} else {
				id = string(r.ID)
			}
		}
		if err != nil {
			return false, err
		}
		if id >= before { // pages of views, and of PouchDB's selectors, start with the last record of the page before
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

// warnOnce logs once why a document cannot be read as a record.
func (s *Store) warnOnce(id string, why error) {
	if _, before := s.warned.LoadOrStore(id, struct{}{}); !before {
		s.log.WithError(why).Warnf("the history cannot read the record %s; disdel jobs delete %[1]s removes it", id)
	}
}

// passOver logs why a document is skipped, and returns its id.
func (s *Store) passOver(raw json.RawMessage, why error) (id string, err error) {
	var head struct {
		ID string `json:"_id"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || head.ID == "" {
		return "", why
	}
	if disdel.KindOf(why) == disdel.Corrupt {
		s.warnOnce(head.ID, why)
	}
	return head.ID, nil
}

// documents calls f with the documents of a search before an id, newest first, until f returns false. For rows that are
// filtered out, f gets only the id.
func (s *Store) documents(ctx context.Context, q search, before string, limit int, f documentFunc) error {
	if before != highest {
		limit++ // a page may start with the last record of the page before
	}
	rows, end, there := s.viewRows(ctx, q, before, limit)
	if !there {
		return s.selected(ctx, q, before, limit, f)
	}
	defer end()
	if q.keeps == nil {
		return s.readValues(rows, f)
	}
	return s.readKept(ctx, rows, q, f)
}

type documentFunc func(id string, raw json.RawMessage) (more bool, err error)

// readValues calls f with rows whose values are documents.
func (s *Store) readValues(rows *kivik.ResultSet, f documentFunc) error {
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

// readKept calls f with the documents of those rows that keeps selects. It reads no others.
func (s *Store) readKept(ctx context.Context, rows *kivik.ResultSet, q search, f documentFunc) error {
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

// byIDs reads documents. Deleted documents are missing in the result. It splits the answer by itself: kivik parses each
// document several times.
func (s *Store) byIDs(ctx context.Context, ids []string) (map[string]json.RawMessage, error) {
	if len(ids) == 0 {
		return map[string]json.RawMessage{}, nil
	}
	res, err := s.raw.DoReq(ctx, http.MethodPost, s.database+"/_all_docs", &chttp.Options{
		GetBody: chttp.BodyEncoder(map[string]any{"keys": ids}), NoGzip: true, Query: url.Values{"include_docs": {"true"}},
	})
	if err == nil {
		err = chttp.ResponseError(res) // it closes the answer
	}
	if err != nil {
		return nil, wrap(err, "list records", "")
	}
	defer res.Body.Close()
	var answer bytes.Buffer
	if res.ContentLength > 0 {
		answer.Grow(int(min(res.ContentLength, mostAnswer)) + bytes.MinRead)
	}
	if _, err := answer.ReadFrom(res.Body); err != nil {
		return nil, wrap(err, "list records", "")
	}
	out, ok := splitDocuments(answer.Bytes(), len(ids))
	if !ok {
		return nil, wrap(errors.New("the answer of the history's server is no list of documents"), "list records", "")
	}
	return out, nil
}

// mostAnswer bounds the memory that is reserved for an answer before it comes.
const mostAnswer = 64 << 20

// selected calls f with the documents that a selector finds.
func (s *Store) selected(ctx context.Context, q search, before string, limit int, f documentFunc) error {
	rows := s.find(ctx, q, before, limit)
	// the index is missing, because the user has no write permission
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
		query[tenantField] = optionalField(*s.tenant, *s.tenant == "")
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

// viewDesign is the design document with the view. A change of the view needs a new name. The first query that needs it
// creates it.
const (
	viewDesign = "disdel-view-2"
	viewName   = "records"
)

// viewMap makes the rows. There is only one view, because PouchDB evaluates a document for each view.
//
//go:embed view.js
var viewMap string

// viewDocument is the design document.
func viewDocument() map[string]any {
	return map[string]any{
		"language": "javascript", "views": map[string]any{viewName: map[string]string{"map": viewMap}},
	}
}

// view is what is known about the server's view. Selectors replace it, more slowly: the embedded history has no view, a
// user may not be allowed to create it, and a new one is first built.
type view struct {
	none     atomic.Bool
	resting  atomic.Int64  // Unix time in ms until which the view is not used
	patience time.Duration // how long a query waits for the view
}

const (
	viewPatience = 2 * time.Second
	viewRest     = 10 * time.Second
)

// errViewBuilding ends a query that waits for the server to build the view.
var errViewBuilding = errors.New("the view is being built")

// viewRows returns the view's rows before an id, newest first, and a function that ends the query; false if the view
// cannot be used now.
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
		default: // building or broken; the selector's query finds out
			s.view.resting.Store(time.Now().Add(viewRest).UnixMilli())
		}
		s.log.WithError(err).Debug("the history's view is not used, queries are slower")
		return nil, nil, false
	}
}

// askView queries the view, but does not wait for one that is being built; the server continues to build it.
func (s *Store) askView(ctx context.Context, q search, before string, limit int) (*kivik.ResultSet, func(), error) {
	ctx, stop := context.WithCancelCause(ctx)
	late := time.AfterFunc(s.view.patience, func() { stop(errViewBuilding) })
	rows := s.db.Query(ctx, viewDesign, viewName, kivik.Params(map[string]any{
		"startkey": slices.Concat(q.key, []any{before}), "endkey": slices.Concat(q.key, []any{prefix}),
		"descending": true, "limit": limit,
	}))
	err := rows.Err()
	if !late.Stop() {
		err = errViewBuilding
	}
	return rows, func() {
		rows.Close() //nolint:errcheck // errors were read already
		stop(nil)
	}, err
}

// makeView writes the design document. It returns false if that is not allowed or not supported.
func (s *Store) makeView(ctx context.Context) bool {
	_, err := s.db.Put(ctx, "_design/"+viewDesign, viewDocument())
	return err == nil || kivik.HTTPStatus(err) == http.StatusConflict // another process was faster
}

// Resolve finds the job that a user means: an id, the start of one, "@last", or a job's name, of which the newest
// counts. It returns NotFound, and Conflict with the candidates for a start that several ids share. It finds unreadable
// records by their id.
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
	list, err := s.idsWithPrefix(ctx, ref)
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
			Hint: "disdel jobs lists them; disdel quickstart runs a first one",
		}
	}
}

// maxCandidates bounds how many ids with the same start are read.
const maxCandidates = 1000

func countText(n int) string {
	if n >= maxCandidates {
		return fmt.Sprintf("%d or more", maxCandidates)
	}
	return fmt.Sprint(n)
}

// newest is the newest job of all, or of a name.
func (s *Store) newest(ctx context.Context, ref string) (id disdel.JobID, err error) {
	named := search{selector: map[string]any{nameField: equals(ref)}, by: order{nameField}}
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

// idsWithPrefix are the ids that start with a text, with or without "job-", in order.
func (s *Store) idsWithPrefix(ctx context.Context, ref string) ([]string, error) {
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
