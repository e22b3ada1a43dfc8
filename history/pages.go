package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/go-kivik/kivik/v4"

	"github.com/disdel/disdel"
)

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
