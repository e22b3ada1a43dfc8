package couchlite

import (
	"encoding/json"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// row is a row of _all_docs.
type row struct {
	ID    string            `json:"id,omitempty"`
	Key   string            `json:"key"`
	Value map[string]string `json:"value,omitempty"`
	Doc   stored            `json:"-"` // without a body: none was asked for
	Error string            `json:"error,omitempty"`
}

// listing has the options of _all_docs, from query and body.
type listing struct {
	StartKey    string   `json:"startkey"`
	EndKey      string   `json:"endkey"`
	Keys        []string `json:"keys"`
	Descending  bool     `json:"descending"`
	IncludeDocs bool     `json:"include_docs"`
	Limit       *int     `json:"limit"`
	Skip        int      `json:"skip"`
}

func readListing(r *http.Request) (listing, error) {
	var o listing
	fields := map[string]json.RawMessage{}
	for name, values := range r.URL.Query() {
		name = strings.NewReplacer("start_key", "startkey", "end_key", "endkey").Replace(name)
		fields[name] = json.RawMessage(values[0])
		if name == "key" {
			fields["startkey"], fields["endkey"] = fields[name], fields[name]
		}
	}
	data, err := json.Marshal(fields)
	if err != nil || json.Unmarshal(data, &o) != nil {
		return o, couchError{400, "query_parse_error", "Invalid value for a query parameter."}
	}
	if r.Method == http.MethodPost { // clients send keys in the body and the rest in the URL
		return o, readJSON(r, &o)
	}
	return o, nil
}

func (o *listing) span() span {
	s := span{o.StartKey, o.EndKey, o.Descending}
	if o.Descending {
		s.low, s.high = s.high, s.low
	}
	return s
}

func (s *Server) allDocs(r *http.Request) (int, any, error) {
	o, err := readListing(r)
	if err != nil {
		return 0, nil, err
	}
	var out answer
	err = s.reading(r, func(c *catalog) error {
		var rows []row
		total := c.head.Live
		if o.Keys != nil {
			rows, err = c.byKeys(o)
			total = len(rows)
		} else {
			rows, err = c.byRange(o)
		}
		if err == nil {
			out.body, err = listed(map[string]any{"total_rows": total, "offset": o.Skip}, "rows", rows)
		}
		return err
	})
	return 200, out, err
}

// listed encodes an object that ends with a list, whose documents are encoded already.
func listed[T any](rest map[string]any, name string, list []T) ([]byte, error) {
	out, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	out = append(out[:len(out)-1], `,"`+name+`":[`...)
	size := 0
	for i := range list {
		switch v := any(&list[i]).(type) {
		case *[]byte:
			size += len(*v) + 1
		case *row:
			size += len(v.Doc.Body) + 4*len(v.ID) + rowRoom
		}
	}
	out = slices.Grow(out, size+rowRoom) // long documents are copied once
	for i := range list {
		if i > 0 {
			out = append(out, ',')
		}
		switch v := any(&list[i]).(type) {
		case *[]byte:
			out = append(out, *v...)
		case *row:
			if out, err = v.append(out); err != nil {
				return nil, err
			}
		}
	}
	return append(out, "]}"...), nil
}

// rowRoom is more than a row has besides its id and its document's body.
const rowRoom = 300

// append appends the row as JSON.
func (r *row) append(out []byte) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if out = append(out, data...); r.Doc.Body == nil {
		return out, nil
	}
	out = append(out[:len(out)-1], `,"doc":`...)
	return append(r.Doc.append(out, r.ID), '}'), nil
}

func (c *catalog) row(e *entry, include bool) (row, error) {
	out := row{ID: e.id, Key: e.id, Value: map[string]string{"rev": e.rev}}
	if !include {
		return out, nil
	}
	var err error
	out.Doc, err = c.document(e)
	return out, err
}

func (c *catalog) byKeys(o listing) ([]row, error) {
	rows := []row{}
	for _, id := range o.Keys {
		e, found, err := c.find(id)
		if err != nil {
			return nil, err
		}
		if !found || e.deleted {
			rows = append(rows, row{Key: id, Error: "not_found"})
			continue
		}
		v, err := c.row(&e, o.IncludeDocs)
		if err != nil {
			return nil, err
		}
		rows = append(rows, v)
	}
	return rows, nil
}

// byRange walks the ids in either order and reads only the documents that it needs.
func (c *catalog) byRange(o listing) ([]row, error) {
	rows, skip := []row{}, o.Skip
	err := c.walk(o.span(), func(e *entry) (bool, error) {
		switch {
		case e.deleted:
			return true, nil
		case o.Limit != nil && len(rows) >= *o.Limit:
			return false, nil
		case skip > 0:
			skip--
			return true, nil
		}
		v, err := c.row(e, o.IncludeDocs)
		rows = append(rows, v)
		return true, err
	})
	return rows, err
}

// maxIndexed bounds the fields of all indexes of a database.
const maxIndexed = 32

// createIndex adds an index to the catalog, unless it exists.
func (s *Server) createIndex(r *http.Request) (int, any, error) {
	var req struct {
		Name  string `json:"name"`
		DDoc  string `json:"ddoc"`
		Index struct {
			Fields []json.RawMessage `json:"fields"`
		} `json:"index"`
	}
	if err := readJSON(r, &req); err != nil {
		return 0, nil, err
	}
	want := index{Name: req.Name, DDoc: req.DDoc}
	for _, f := range req.Index.Fields {
		name, ok := fieldName(f)
		if !ok {
			return 0, nil, couchError{400, "invalid_index", "a field of the index is no name"}
		}
		want.Fields = append(want.Fields, name)
	}
	there := false
	look := func(c *catalog) error {
		there = slices.ContainsFunc(c.head.Indexes, want.same) && !c.anew
		return nil
	}
	result, err := "exists", s.reading(r, look)
	if err == nil && !there {
		result, err = "created", s.writing(r, func(c *catalog) error { return c.index(want) })
	}
	return 200, map[string]string{"result": result, "id": "_design/" + req.DDoc, "name": req.Name}, err
}

func (x index) same(y index) bool {
	return x.Name == y.Name && x.DDoc == y.DDoc && slices.Equal(x.Fields, y.Fields)
}

// fieldName reads "field" or {"field": "asc"}.
func fieldName(data json.RawMessage) (string, bool) {
	var name string
	if json.Unmarshal(data, &name) == nil {
		return name, name != ""
	}
	var ordered map[string]string
	if json.Unmarshal(data, &ordered) != nil || len(ordered) != 1 {
		return "", false
	}
	for name = range ordered {
	}
	return name, name != ""
}

// index adds an index.
func (c *catalog) index(want index) error {
	if slices.ContainsFunc(c.head.Indexes, want.same) {
		return nil
	}
	c.head.Indexes = append(c.head.Indexes, want)
	fields := slices.Clone(c.head.Fields)
	for _, f := range want.Fields {
		if f != "_id" && !slices.Contains(fields, f) {
			fields = append(fields, f)
		}
	}
	if len(fields) > maxIndexed {
		return couchError{400, "invalid_index", "the indexes of this database name too many fields"}
	}
	if len(fields) == len(c.head.Fields) {
		return nil
	}
	return c.rebuild(fields)
}

func (s *Server) listIndexes(r *http.Request) (int, any, error) {
	list := []any{}
	add := func(ddoc any, name, kind string, names []string) {
		var indexes []map[string]string
		for _, f := range names {
			indexes = append(indexes, map[string]string{f: "asc"})
		}
		definition := map[string]any{"fields": indexes}
		list = append(list, map[string]any{"ddoc": ddoc, "name": name, "type": kind, "def": definition})
	}
	err := s.reading(r, func(c *catalog) error {
		add(nil, "_all_docs", "special", []string{"_id"})
		for _, x := range c.head.Indexes {
			add("_design/"+x.DDoc, x.Name, "json", x.Fields)
		}
		return nil
	})
	return 200, map[string]any{"total_rows": len(list), "indexes": list}, err
}

// query is the body of _find.
type query struct {
	Selector map[string]any      `json:"selector"`
	Sort     []map[string]string `json:"sort"`
	Limit    *int                `json:"limit"`
	Skip     int                 `json:"skip"`
	Bookmark string              `json:"bookmark"`
	Fields   []string            `json:"fields"` // fields to return; none: all
}

// wantsOnlyRevision tells whether the query asks only for ids and revisions, which the catalog has.
func (q *query) wantsOnlyRevision() bool {
	return len(q.Fields) > 0 && !slices.ContainsFunc(q.Fields, func(f string) bool { return f != "_id" && f != "_rev" })
}

// encode is a found document as JSON. If other fields are asked for it is the whole document; the client picks its
// fields.
func (q *query) encode(d stored, id string) []byte {
	if q.wantsOnlyRevision() {
		return stored{Rev: d.Rev}.text(id)
	}
	return d.text(id)
}

// findLimit is the default limit of _find, as in CouchDB.
const findLimit = 25

// window returns how many documents to skip and how many to return.
func (q *query) window() (skip, limit int) {
	skip = max(q.Skip, 0)
	if n, err := strconv.Atoi(q.Bookmark); err == nil && n > 0 && n < 1<<40 {
		skip += n
	}
	limit = findLimit
	if q.Limit != nil {
		limit = max(*q.Limit, 0)
	}
	return skip, limit
}

func (s *Server) find(r *http.Request) (int, any, error) {
	var q query
	if err := readJSON(r, &q); err != nil {
		return 0, nil, err
	}
	if q.Selector == nil {
		return 0, nil, couchError{400, "missing_required_key", "Missing required key: selector"}
	}
	skip, limit := q.window()
	var out answer
	err := s.reading(r, func(c *catalog) error {
		found, err := c.query(&q, skip, limit)
		if err != nil {
			return err
		}
		rest := map[string]any{"bookmark": strconv.Itoa(skip + len(found))}
		out.body, err = listed(rest, "docs", found)
		return err
	})
	return 200, out, err
}

// query returns the documents that match, as JSON. It reads only those that the catalog cannot decide, and stops when
// there are enough, unless they have to be sorted.
func (c *catalog) query(q *query, skip, limit int) ([][]byte, error) {
	descending, ordered := q.byID()
	ids, judge := idRange(q.Selector), c.compile(q.Selector)
	ids.descending = descending
	var texts [][]byte
	var docs []document
	passed := 0
	err := c.walk(ids, func(e *entry) (bool, error) {
		if ordered && len(texts) >= limit {
			return false, nil
		}
		v := judge(e)
		if e.deleted || v == no {
			return true, nil
		}
		if passed++; v == yes && ordered && passed <= skip {
			return true, nil
		}
		if v == yes && ordered && q.wantsOnlyRevision() {
			texts = append(texts, stored{Rev: e.rev}.text(e.id))
			return true, nil
		}
		d, err := c.document(e)
		if err != nil {
			return false, err
		}
		if v == yes && ordered {
			texts = append(texts, q.encode(d, e.id))
			return true, nil
		}
		doc, err := d.document(e.id)
		if err != nil {
			return false, err
		}
		ok, err := matches(doc, q.Selector)
		switch {
		case err != nil || !ok:
			passed--
			return true, err
		case ordered && passed <= skip:
			return true, nil
		}
		texts = append(texts, q.encode(d, e.id))
		docs = append(docs, doc)
		return true, nil
	})
	if err != nil || ordered {
		return texts, err
	}
	texts = q.order(docs, texts)
	texts = texts[min(skip, len(texts)):]
	return texts[:min(limit, len(texts))], nil
}

// order sorts texts by their documents.
func (q *query) order(docs []document, texts [][]byte) [][]byte {
	at := make([]int, len(docs))
	for i := range at {
		at[i] = i
	}
	sort.SliceStable(at, func(i, j int) bool {
		for _, by := range q.Sort {
			for field, direction := range by {
				c := compare(valueAt(docs[at[i]], field), valueAt(docs[at[j]], field))
				if direction == "desc" {
					c = -c
				}
				if c != 0 {
					return c < 0
				}
			}
		}
		return false
	})
	out := make([][]byte, len(texts))
	for i, k := range at {
		out[i] = texts[k]
	}
	return out
}

func valueAt(d document, path string) any {
	v, _ := field(map[string]any(d), path)
	return v
}

// field follows a dotted path.
func field(v any, path string) (any, bool) {
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[name]; !ok {
			return nil, false
		}
	}
	return v, true
}
