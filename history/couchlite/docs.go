package couchlite

import (
	"bytes"
	"crypto/md5" //nolint:gosec // CouchDB's revisions are MD5 as well; they tell contents apart, they protect nothing
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
)

// document is a CouchDB document with _id and _rev.
type document map[string]any

// written answers a write.
type written struct {
	OK  bool   `json:"ok"`
	ID  string `json:"id"`
	Rev string `json:"rev"`
}

// stored is a document on disk.
type stored struct {
	Rev     string          `json:"r"`
	Seq     uint64          `json:"s"`
	Deleted bool            `json:"d,omitempty"`
	Body    json.RawMessage `json:"b"` // without _id, _rev and _deleted
}

var dbName = regexp.MustCompile(`^[a-z][a-z0-9_$()+/-]*$`)

func docsOf(tx *bbolt.Tx, r *http.Request) (*bbolt.Bucket, error) {
	b := tx.Bucket([]byte(r.PathValue("db")))
	if b == nil {
		return nil, errNoDB
	}
	return b, nil
}

func (s *Server) allDBs(*http.Request) (int, any, error) {
	out := []string{}
	err := s.view(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			out = append(out, string(name))
			return nil
		})
	})
	return 200, out, err
}

func (s *Server) createDB(r *http.Request) (int, any, error) {
	name := r.PathValue("db")
	if !dbName.MatchString(name) {
		return 0, nil, problem{400, "illegal_database_name", "Name: '" + name + "'. Only lowercase characters (a-z), digits (0-9), and any of the characters _, $, (, ), +, -, and / are allowed. Must begin with a letter."}
	}
	err := s.update(func(tx *bbolt.Tx) error {
		if tx.Bucket([]byte(name)) != nil {
			return errDBExists
		}
		_, err := tx.CreateBucket([]byte(name))
		return err
	})
	return 201, map[string]bool{"ok": true}, err
}

func (s *Server) deleteDB(r *http.Request) (int, any, error) {
	err := s.update(func(tx *bbolt.Tx) error {
		if tx.Bucket([]byte(r.PathValue("db"))) == nil {
			return errNoDB
		}
		return tx.DeleteBucket([]byte(r.PathValue("db")))
	})
	return 200, map[string]bool{"ok": true}, err
}

func (s *Server) dbInfo(r *http.Request) (int, any, error) {
	var docs, gone int
	var seq uint64
	err := s.view(func(tx *bbolt.Tx) error {
		b, err := docsOf(tx, r)
		if err != nil {
			return err
		}
		seq = b.Sequence()
		return b.ForEach(func(_, v []byte) error {
			var d stored
			if err := json.Unmarshal(v, &d); err != nil {
				return err
			}
			if d.Deleted {
				gone++
			} else {
				docs++
			}
			return nil
		})
	})
	return 200, map[string]any{"db_name": r.PathValue("db"), "doc_count": docs, "doc_del_count": gone, "update_seq": strconv.FormatUint(seq, 10), "instance_start_time": "0"}, err
}

func read(b *bbolt.Bucket, id string) (stored, bool, error) {
	var d stored
	v := b.Get([]byte(id))
	if v == nil {
		return d, false, nil
	}
	return d, true, json.Unmarshal(v, &d)
}

// whole puts a stored document together again.
func (d stored) whole(id string) (document, error) {
	out := document{}
	dec := json.NewDecoder(bytes.NewReader(d.Body))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	out["_id"], out["_rev"] = id, d.Rev
	return out, nil
}

func (s *Server) getDoc(r *http.Request) (int, any, error) {
	var out document
	err := s.view(func(tx *bbolt.Tx) error {
		b, err := docsOf(tx, r)
		if err != nil {
			return err
		}
		d, found, err := read(b, r.PathValue("id"))
		switch {
		case err != nil:
			return err
		case !found:
			return errMissing
		case d.Deleted:
			return errDeleted
		}
		if rev := r.URL.Query().Get("rev"); rev != "" && rev != d.Rev {
			return errMissing // only the newest revision is kept
		}
		out, err = d.whole(r.PathValue("id"))
		return err
	})
	return 200, out, err
}

func (s *Server) putDoc(r *http.Request) (int, any, error) {
	return s.write(r, r.PathValue("id"))
}

func (s *Server) postDoc(r *http.Request) (int, any, error) { return s.write(r, "") }

func (s *Server) write(r *http.Request, id string) (int, any, error) {
	var doc document
	if err := readJSON(r, &doc); err != nil {
		return 0, nil, err
	}
	if doc == nil {
		return 0, nil, errNotObject
	}
	if id != "" {
		doc["_id"] = id
	}
	if rev := cmpRev(r); rev != "" {
		doc["_rev"] = rev
	}
	var out written
	err := s.update(func(tx *bbolt.Tx) error {
		b, err := docsOf(tx, r)
		if err != nil {
			return err
		}
		out, err = put(b, doc)
		return err
	})
	return 201, out, err
}

// cmpRev is the revision a request names outside its body.
func cmpRev(r *http.Request) string {
	if rev := r.URL.Query().Get("rev"); rev != "" {
		return rev
	}
	return strings.Trim(r.Header.Get("If-Match"), `"`)
}

func (s *Server) deleteDoc(r *http.Request) (int, any, error) {
	var out written
	err := s.update(func(tx *bbolt.Tx) error {
		b, err := docsOf(tx, r)
		if err != nil {
			return err
		}
		d, found, err := read(b, r.PathValue("id"))
		if err != nil {
			return err
		}
		if !found || d.Deleted {
			return errMissing
		}
		out, err = put(b, document{"_id": r.PathValue("id"), "_rev": cmpRev(r), "_deleted": true})
		return err
	})
	return 200, out, err
}

// put writes a document if its _rev is the newest one's.
func put(b *bbolt.Bucket, doc document) (written, error) {
	id, ok := doc["_id"].(string)
	if _, given := doc["_id"]; !given {
		id, ok = newDocID(), true
	}
	if !ok || id == "" || strings.HasPrefix(id, "_") && !strings.HasPrefix(id, "_design/") {
		return written{}, problem{400, "bad_request", "Only reserved document ids may start with underscore."}
	}
	old, found, err := read(b, id)
	if err != nil {
		return written{}, err
	}
	rev, _ := doc["_rev"].(string)
	if found && !old.Deleted && rev != old.Rev || (!found || old.Deleted) && rev != "" && rev != old.Rev {
		return written{}, errConflict
	}
	deleted, _ := doc["_deleted"].(bool)
	body, err := json.Marshal(strip(doc))
	if err != nil {
		return written{}, err
	}
	seq, err := b.NextSequence()
	if err != nil {
		return written{}, err
	}
	d := stored{Rev: nextRev(old.Rev, body, deleted), Seq: seq, Deleted: deleted, Body: body}
	data, err := json.Marshal(d)
	if err != nil {
		return written{}, err
	}
	return written{true, id, d.Rev}, b.Put([]byte(id), data)
}

func strip(doc document) document {
	out := document{}
	for k, v := range doc {
		if k != "_id" && k != "_rev" && k != "_deleted" && k != "_revisions" {
			out[k] = v
		}
	}
	return out
}

// nextRev is the generation after old's and a digest of what it follows and holds.
func nextRev(old string, body []byte, deleted bool) string {
	generation, _, _ := strings.Cut(old, "-")
	n, _ := strconv.Atoi(generation)
	h := md5.New() //nolint:gosec // see the import
	fmt.Fprintf(h, "%s %v ", old, deleted)
	h.Write(body)
	return fmt.Sprintf("%d-%s", n+1, hex.EncodeToString(h.Sum(nil)))
}

func newDocID() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func (s *Server) bulkDocs(r *http.Request) (int, any, error) {
	var req struct {
		Docs []document `json:"docs"`
	}
	if err := readJSON(r, &req); err != nil {
		return 0, nil, err
	}
	out := make([]any, len(req.Docs))
	err := s.update(func(tx *bbolt.Tx) error {
		b, err := docsOf(tx, r)
		if err != nil {
			return err
		}
		for i, doc := range req.Docs {
			if doc == nil {
				return errNotObject
			}
			w, err := put(b, doc)
			p, refused := err.(problem)
			switch {
			case err == nil:
				out[i] = w
			case refused:
				out[i] = map[string]any{"id": doc["_id"], "error": p.err, "reason": p.reason}
			default:
				return err
			}
		}
		return nil
	})
	return 201, out, err
}

func (s *Server) changes(r *http.Request) (int, any, error) {
	since, _ := strconv.ParseUint(r.URL.Query().Get("since"), 10, 64)
	type change struct {
		Seq     string              `json:"seq"`
		ID      string              `json:"id"`
		Changes []map[string]string `json:"changes"`
		Deleted bool                `json:"deleted,omitempty"`
		Doc     document            `json:"doc,omitempty"`
	}
	bySeq := map[uint64]change{}
	var last uint64
	err := s.view(func(tx *bbolt.Tx) error {
		b, err := docsOf(tx, r)
		if err != nil {
			return err
		}
		last = b.Sequence()
		return b.ForEach(func(k, v []byte) error {
			var d stored
			if err := json.Unmarshal(v, &d); err != nil || d.Seq <= since {
				return err
			}
			c := change{Seq: strconv.FormatUint(d.Seq, 10), ID: string(k), Deleted: d.Deleted, Changes: []map[string]string{{"rev": d.Rev}}}
			if r.URL.Query().Get("include_docs") == "true" {
				if c.Doc, err = d.whole(c.ID); err != nil {
					return err
				}
			}
			bySeq[d.Seq] = c
			return nil
		})
	})
	out := []change{}
	for at := since + 1; at <= last; at++ {
		if c, ok := bySeq[at]; ok {
			out = append(out, c)
		}
	}
	return 200, map[string]any{"results": out, "last_seq": strconv.FormatUint(last, 10), "pending": 0}, err
}
