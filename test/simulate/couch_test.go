package simulate

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// couch is a CouchDB with single documents, which is what leases and notes need. Of two writers of one revision, one
// succeeds.
type couch struct {
	written func(id string, doc json.RawMessage) // called with each document that is written

	mu   sync.Mutex
	docs map[string]couchDoc
}

type couchDoc struct {
	revision int
	fields   map[string]json.RawMessage
}

// answer does what a request asks for.
func (c *couch) answer(r *http.Request, body []byte) (int, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, id, inside := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	doc, there := c.docs[id]
	switch {
	case !inside || id == "": // the server, or the database
		return http.StatusOK, `{"couchdb":"Welcome","version":"3.3.0"}`
	case id == "_all_docs":
		return http.StatusOK, `{"total_rows":0,"offset":0,"rows":[]}`
	case strings.HasPrefix(id, "_"): // indexes
		return http.StatusOK, `{"result":"exists"}`
	case r.Method == http.MethodPut:
		if r.Header.Get("Content-Encoding") == "gzip" {
			if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, _ = io.ReadAll(z)
			}
		}
		return c.put(id, doc, there, body)
	case !there:
		return http.StatusNotFound, `{"error":"not_found","reason":"missing"}`
	}
	doc.fields["_id"], _ = json.Marshal(id)
	doc.fields["_rev"], _ = json.Marshal(doc.rev())
	text, _ := json.Marshal(doc.fields)
	return http.StatusOK, string(text)
}

func (d couchDoc) rev() string { return fmt.Sprintf("%d-x", d.revision) }

func (c *couch) put(id string, doc couchDoc, there bool, body []byte) (int, string) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return http.StatusBadRequest, `{"error":"bad_request","reason":"no JSON"}`
	}
	var known string
	json.Unmarshal(fields["_rev"], &known) //nolint:errcheck // missing: a new document
	if there && known != doc.rev() || !there && known != "" {
		return http.StatusConflict, `{"error":"conflict","reason":"Document update conflict."}`
	}
	next := couchDoc{doc.revision + 1, fields}
	c.docs[id] = next
	c.written(id, fields["value"])
	return http.StatusCreated, fmt.Sprintf(`{"ok":true,"id":%q,"rev":%q}`, id, next.rev())
}
