package couchlite

import (
	"encoding/json"
	"net/http"
	"sort"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
)

// row is one of _all_docs.
type row struct {
	ID    string            `json:"id,omitempty"`
	Key   string            `json:"key"`
	Value map[string]string `json:"value,omitempty"`
	Doc   document          `json:"doc,omitempty"`
	Error string            `json:"error,omitempty"`
}

// listing is the options of _all_docs, from the query or the body.
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
	if r.Method == http.MethodPost {
		return o, readJSON(r, &o)
	}
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
		return o, problem{400, "query_parse_error", "Invalid value for a query parameter."}
	}
	return o, nil
}

func (o *listing) has(id string) bool {
	low, high := o.StartKey, o.EndKey
	if o.Descending {
		low, high = high, low
	}
	return (low == "" || id >= low) && (high == "" || id <= high)
}

func (s *Server) allDocs(r *http.Request) (int, any, error) {
	o, err := readListing(r)
	if err != nil {
		return 0, nil, err
	}
	rows, total := []row{}, 0
	err = s.view(func(tx *bbolt.Tx) error {
		b, err := docsOf(tx, r)
		if err != nil {
			return err
		}
		if o.Keys != nil {
			rows, err = byKeys(b, o)
			total = len(rows)
			return err
		}
		rows, total, err = byRange(b, o)
		return err
	})
	return 200, map[string]any{"total_rows": total, "offset": o.Skip, "rows": rows}, err
}

func (d stored) row(id string, include bool) (row, error) {
	out := row{ID: id, Key: id, Value: map[string]string{"rev": d.Rev}}
	if !include {
		return out, nil
	}
	var err error
	out.Doc, err = d.whole(id)
	return out, err
}

func byKeys(b *bbolt.Bucket, o listing) ([]row, error) {
	rows := []row{}
	for _, id := range o.Keys {
		d, found, err := read(b, id)
		if err != nil {
			return nil, err
		}
		if !found || d.Deleted {
			rows = append(rows, row{Key: id, Error: "not_found"})
			continue
		}
		v, err := d.row(id, o.IncludeDocs)
		if err != nil {
			return nil, err
		}
		rows = append(rows, v)
	}
	return rows, nil
}

// byRange walks the keys in order, forwards or backwards, and reads only the rows that are wanted.
func byRange(b *bbolt.Bucket, o listing) (rows []row, total int, err error) {
	rows = []row{}
	c := b.Cursor()
	first, next := c.First, c.Next
	if o.Descending {
		first, next = c.Last, c.Prev
	}
	skip := o.Skip
	for k, v := first(); k != nil; k, v = next() {
		var d stored
		if err := json.Unmarshal(v, &d); err != nil {
			return nil, 0, err
		}
		if d.Deleted {
			continue
		}
		total++
		if !o.has(string(k)) || o.Limit != nil && len(rows) >= *o.Limit {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		x, err := d.row(string(k), o.IncludeDocs)
		if err != nil {
			return nil, 0, err
		}
		rows = append(rows, x)
	}
	return rows, total, nil
}

// createIndex accepts an index and makes none: every _find reads all documents, which a laptop's history bears.
func (s *Server) createIndex(r *http.Request) (int, any, error) {
	var req struct {
		Name string `json:"name"`
		DDoc string `json:"ddoc"`
	}
	if err := readJSON(r, &req); err != nil {
		return 0, nil, err
	}
	err := s.view(func(tx *bbolt.Tx) error {
		_, err := docsOf(tx, r)
		return err
	})
	return 200, map[string]string{"result": "exists", "id": "_design/" + req.DDoc, "name": req.Name}, err
}

// query is the body of _find.
type query struct {
	Selector map[string]any      `json:"selector"`
	Fields   []string            `json:"fields"`
	Sort     []map[string]string `json:"sort"`
	Limit    *int                `json:"limit"`
	Skip     int                 `json:"skip"`
	Bookmark string              `json:"bookmark"`
}

// findLimit is what _find returns when no limit is given, as in CouchDB.
const findLimit = 25

func (s *Server) find(r *http.Request) (int, any, error) {
	var q query
	if err := readJSON(r, &q); err != nil {
		return 0, nil, err
	}
	if q.Selector == nil {
		return 0, nil, problem{400, "missing_required_key", "Missing required key: selector"}
	}
	found := []document{}
	err := s.view(func(tx *bbolt.Tx) error {
		b, err := docsOf(tx, r)
		if err != nil {
			return err
		}
		return b.ForEach(func(k, v []byte) error {
			var d stored
			if err := json.Unmarshal(v, &d); err != nil || d.Deleted {
				return err
			}
			doc, err := d.whole(string(k))
			if err != nil {
				return err
			}
			ok, err := matches(doc, q.Selector)
			if ok {
				found = append(found, doc)
			}
			return err
		})
	})
	if err != nil {
		return 0, nil, err
	}
	q.order(found)
	skip := q.Skip
	if n, err := strconv.Atoi(q.Bookmark); err == nil && n > 0 {
		skip += n
	}
	limit := findLimit
	if q.Limit != nil {
		limit = *q.Limit
	}
	found = found[min(max(skip, 0), len(found)):]
	found = found[:min(max(limit, 0), len(found))]
	return 200, map[string]any{"docs": found, "bookmark": strconv.Itoa(skip + len(found)), "warning": "No matching index found, create an index to optimize query time."}, nil
}

func (q *query) order(docs []document) {
	sort.SliceStable(docs, func(i, j int) bool {
		for _, by := range q.Sort {
			for field, direction := range by {
				c := compare(valueAt(docs[i], field), valueAt(docs[j], field))
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

// matches evaluates a Mango selector: fields with values or operators, $and, $or, $not, $nor.
func matches(doc document, selector map[string]any) (bool, error) {
	for key, want := range selector {
		ok, err := false, error(nil)
		switch key {
		case "$and", "$or", "$nor":
			ok, err = combine(doc, key, want)
		case "$not":
			sub, isMap := want.(map[string]any)
			if !isMap {
				return false, badSelector(key)
			}
			ok, err = matches(doc, sub)
			ok = !ok
		default:
			if strings.HasPrefix(key, "$") {
				return false, badSelector(key)
			}
			value, exists := field(map[string]any(doc), key)
			ok, err = holds(value, exists, want)
		}
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func badSelector(key string) error {
	return problem{400, "invalid_operator", "Invalid operator: " + key}
}

func combine(doc document, op string, want any) (bool, error) {
	list, ok := want.([]any)
	if !ok {
		return false, badSelector(op)
	}
	some, all := false, true
	for _, item := range list {
		sub, ok := item.(map[string]any)
		if !ok {
			return false, badSelector(op)
		}
		hit, err := matches(doc, sub)
		if err != nil {
			return false, err
		}
		some, all = some || hit, all && hit
	}
	return map[string]bool{"$and": all, "$or": some, "$nor": !some}[op], nil
}

// holds tests one field against a value or an object of operators.
func holds(value any, exists bool, want any) (bool, error) {
	ops, isMap := want.(map[string]any)
	if !isMap {
		return exists && compare(value, want) == 0, nil
	}
	for op, arg := range ops {
		c := compare(value, arg)
		ok := false
		switch op {
		case "$eq":
			ok = exists && c == 0
		case "$ne":
			ok = exists && c != 0
		case "$gt":
			ok = exists && c > 0
		case "$gte":
			ok = exists && c >= 0
		case "$lt":
			ok = exists && c < 0
		case "$lte":
			ok = exists && c <= 0
		case "$exists":
			ok = arg == exists
		case "$in":
			list, isList := arg.([]any)
			if !isList {
				return false, badSelector(op)
			}
			for _, v := range list {
				ok = ok || exists && compare(value, v) == 0
			}
		default:
			if strings.HasPrefix(op, "$") {
				return false, badSelector(op)
			}
			inner, there := field(value, op)
			hit, err := holds(inner, there, arg)
			if err != nil {
				return false, err
			}
			ok = hit
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// compare orders JSON values as CouchDB's collation does: null, booleans, numbers, strings, arrays, objects.
func compare(a, b any) int {
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	switch x := a.(type) {
	case bool:
		y, _ := b.(bool)
		return toInt(x) - toInt(y)
	case json.Number:
		y, _ := b.(json.Number)
		u, _ := x.Float64()
		v, _ := y.Float64()
		switch {
		case u < v:
			return -1
		case u > v:
			return 1
		}
		return 0
	case string:
		y, _ := b.(string)
		return strings.Compare(x, y)
	case nil:
		return 0
	default:
		u, _ := json.Marshal(a)
		v, _ := json.Marshal(b)
		return strings.Compare(string(u), string(v))
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func rank(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case json.Number:
		return 2
	case string:
		return 3
	case []any:
		return 4
	default:
		return 5
	}
}
