package couchlite

import (
	"cmp"
	"crypto/md5" //nolint:gosec // CouchDB's revisions are MD5 as well; they tell contents apart, they protect nothing
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/disdel/disdel/internal/boltcheck"
)

// document is a CouchDB document with _id and _rev.
type document map[string]any

// fields is a document whose fields are not parsed.
type fields map[string]json.RawMessage

// written is the answer to a write.
type written struct {
	OK  bool   `json:"ok"`
	ID  string `json:"id"`
	Rev string `json:"rev"`
}

// answer is encoded JSON with the revision of its document.
type answer struct {
	body []byte
	rev  string
}

var dbName = regexp.MustCompile(`^[a-z][a-z0-9_$()+/-]*$`)

// database is the bucket of a database. tx is nil if there is no file.
func database(tx *bbolt.Tx, name string) (*bbolt.Bucket, error) {
	if tx == nil || strings.HasPrefix(name, "_") {
		return nil, errNoDB
	}
	b := tx.Bucket([]byte(name))
	if b == nil {
		return nil, errNoDB
	}
	return b, nil
}

// reading calls f with the catalog of the request's database.
func (s *Server) reading(r *http.Request, f func(*catalog) error) error {
	return s.view(func(tx *bbolt.Tx) error {
		c, err := openCatalog(tx, r.PathValue("db"))
		if err != nil {
			return err
		}
		return f(c)
	})
}

// writing calls f and stores its changes to the catalog.
func (s *Server) writing(r *http.Request, f func(*catalog) error) error {
	return s.update(func(tx *bbolt.Tx) error {
		c, err := openCatalog(tx, r.PathValue("db"))
		if err == nil {
			err = f(c)
		}
		if err != nil {
			return err
		}
		return c.flush(tx)
	})
}

func (s *Server) allDBs(*http.Request) (int, any, error) {
	out := []string{}
	err := s.view(func(tx *bbolt.Tx) error {
		if tx == nil {
			return nil
		}
		return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			if string(name) != catalogs {
				out = append(out, string(name))
			}
			return nil
		})
	})
	return 200, out, err
}

func (s *Server) createDB(r *http.Request) (int, any, error) {
	name := r.PathValue("db")
	if !dbName.MatchString(name) {
		return 0, nil, couchError{400, "illegal_database_name", "Name: '" + name +
			"'. Only lowercase characters (a-z), digits (0-9), and any of the characters _, $, (, ), +, -, and / are allowed. " +
			"Must begin with a letter."}
	}
	err := s.update(func(tx *bbolt.Tx) error {
		if tx.Bucket([]byte(name)) != nil {
			return errDBExists
		}
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
		c, err := openCatalog(tx, name)
		if err != nil {
			return err
		}
		return c.flush(tx)
	})
	return 201, map[string]bool{"ok": true}, err
}

func (s *Server) deleteDB(r *http.Request) (int, any, error) {
	name := r.PathValue("db")
	err := s.update(func(tx *bbolt.Tx) error {
		if _, err := database(tx, name); err != nil {
			return err
		}
		if err := dropCatalog(tx, name); err != nil {
			return err
		}
		return tx.DeleteBucket([]byte(name))
	})
	return 200, map[string]bool{"ok": true}, err
}

func (s *Server) dbInfo(r *http.Request) (int, any, error) {
	var out map[string]any
	err := s.reading(r, func(c *catalog) error {
		out = map[string]any{
			"db_name": c.name, "doc_count": c.head.Live, "doc_del_count": c.head.Deleted,
			"update_seq": strconv.FormatUint(c.docs.Sequence(), 10), "instance_start_time": "0",
		}
		return nil
	})
	return 200, out, err
}

func (s *Server) getDoc(r *http.Request) (int, any, error) {
	var out answer
	err := s.reading(r, func(c *catalog) error {
		e, found, err := c.find(r.PathValue("id"))
		switch {
		case err != nil:
			return err
		case !found:
			return errMissing
		case e.deleted:
			return errDeleted
		}
		if rev := r.URL.Query().Get("rev"); rev != "" && rev != e.rev {
			return errMissing // only the newest revision is stored
		}
		d, err := c.document(&e)
		out = answer{d.text(e.id), e.rev}
		return err
	})
	return 200, out, err
}

func (s *Server) putDoc(r *http.Request) (int, any, error) {
	return s.write(r, r.PathValue("id"))
}

func (s *Server) postDoc(r *http.Request) (int, any, error) { return s.write(r, "") }

func (s *Server) write(r *http.Request, id string) (int, any, error) {
	var doc fields
	if err := readJSON(r, &doc); err != nil {
		return 0, nil, err
	}
	if doc == nil {
		return 0, nil, errNotObject
	}
	if id != "" {
		doc["_id"] = quoted(id)
	}
	if rev := requestRev(r); rev != "" {
		doc["_rev"] = quoted(rev)
	}
	var out written
	err := s.writing(r, func(c *catalog) (err error) {
		out, err = c.write(doc)
		return err
	})
	return 201, out, err
}

// quoted is a text as JSON.
func quoted(text string) json.RawMessage {
	data, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage("null") // strings never fail
	}
	return data
}

// requestRev is the revision in a request's query or header.
func requestRev(r *http.Request) string {
	if rev := r.URL.Query().Get("rev"); rev != "" {
		return rev
	}
	return strings.Trim(r.Header.Get("If-Match"), `"`)
}

func (s *Server) deleteDoc(r *http.Request) (int, any, error) {
	var out written
	err := s.writing(r, func(c *catalog) error {
		id := r.PathValue("id")
		e, found, err := c.find(id)
		if err != nil {
			return err
		}
		if !found || e.deleted {
			return errMissing
		}
		out, err = c.write(fields{"_id": quoted(id), "_rev": quoted(requestRev(r)), "_deleted": json.RawMessage("true")})
		return err
	})
	return 200, out, err
}

// text is the value of a string field; "" otherwise.
func (f fields) text(name string) string {
	var text string
	if json.Unmarshal(f[name], &text) != nil {
		return ""
	}
	return text
}

// id is the document's id, or a new one.
func (f fields) id() (string, error) {
	if _, found := f["_id"]; !found {
		return newDocID(), nil
	}
	id := f.text("_id")
	if id == "" || strings.HasPrefix(id, "_") && !strings.HasPrefix(id, "_design/") {
		return "", couchError{400, "bad_request", "Only reserved document ids may start with underscore."}
	}
	return id, nil
}

// write writes a document if its _rev is the newest revision.
func (c *catalog) write(doc fields) (written, error) {
	id, err := doc.id()
	if err != nil {
		return written{}, err
	}
	if len(id) > bbolt.MaxKeySize {
		return written{}, couchError{400, "bad_request", "Document id is too long"}
	}
	old, found, err := c.find(id)
	if err != nil {
		return written{}, err
	}
	rev := doc.text("_rev")
	if found && !old.deleted && rev != old.rev || (!found || old.deleted) && rev != "" && rev != old.rev {
		return written{}, errConflict
	}
	deleted := string(doc["_deleted"]) == "true"
	body, err := json.Marshal(doc.withoutMeta())
	if err != nil {
		return written{}, err
	}
	seq, err := c.docs.NextSequence()
	if err != nil {
		return written{}, err
	}
	d := stored{Rev: nextRev(old.rev, body, deleted), Seq: seq, Deleted: deleted, Body: body}
	value := d.value(id)
	if err := c.docs.Put([]byte(id), value); err != nil {
		return written{}, err
	}
	return written{true, id, d.Rev}, c.add(id, d, value)
}

// withoutMeta is a document without CouchDB's own fields.
func (f fields) withoutMeta() fields {
	out := fields{}
	for k, v := range f {
		if k != "_id" && k != "_rev" && k != "_deleted" && k != "_revisions" {
			out[k] = v
		}
	}
	return out
}

// nextRev is the next generation after old, with a digest of the content.
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

// maxBulk bounds the documents of one request, because other requests wait for it.
const maxBulk = 10_000

func (s *Server) bulkDocs(r *http.Request) (int, any, error) {
	var req struct {
		Docs []fields `json:"docs"`
	}
	if err := readJSON(r, &req); err != nil {
		return 0, nil, err
	}
	if len(req.Docs) > maxBulk {
		return 0, nil, couchError{413, "too_large", fmt.Sprintf("at most %d documents at once", maxBulk)}
	}
	out := make([]any, len(req.Docs))
	err := s.writing(r, func(c *catalog) error {
		for i, doc := range req.Docs {
			if doc == nil {
				return errNotObject
			}
			w, err := c.write(doc)
			p, refused := err.(couchError)
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
		Doc     json.RawMessage     `json:"doc,omitempty"`
		at      uint64
	}
	out := []change{}
	var last uint64
	err := s.reading(r, func(c *catalog) error {
		last = c.docs.Sequence()
		return c.walk(span{}, func(e *entry) (bool, error) {
			if e.seq <= since {
				return true, nil
			}
			v := change{
				Seq: strconv.FormatUint(e.seq, 10), ID: e.id, Deleted: e.deleted,
				Changes: []map[string]string{{"rev": e.rev}}, at: e.seq,
			}
			if r.URL.Query().Get("include_docs") == "true" {
				d, err := c.document(e)
				if err != nil {
					return false, err
				}
				v.Doc = d.text(e.id)
			}
			out = append(out, v)
			return true, nil
		})
	})
	slices.SortFunc(out, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return 200, map[string]any{"results": out, "last_seq": strconv.FormatUint(last, 10), "pending": 0}, err
}

// stored is a document on disk: a sealed value with version, deletion flag, sequence number, revision and body. Earlier
// versions stored unsealed JSON with the field names below.
type stored struct {
	Rev     string          `json:"r"`
	Seq     uint64          `json:"s"`
	Deleted bool            `json:"d,omitempty"`
	Body    json.RawMessage `json:"b"` // without _id, _rev and _deleted
}

const storedVersion = 1

// value encodes a document for the file.
func (d stored) value(id string) []byte {
	out := make([]byte, 0, 64+len(d.Body))
	out = append(out, storedVersion, byte(toInt(d.Deleted)))
	out = binary.AppendUvarint(out, d.Seq)
	out = binary.AppendUvarint(out, uint64(len(d.Rev)))
	out = append(out, d.Rev...)
	return boltcheck.Seal([]byte(id), append(out, d.Body...))
}

// parse decodes what value or an earlier version wrote. The body shares memory with value. was tells whether the
// document was sealed.
func parse(key, value []byte) (d stored, was bool, err error) {
	data, was, err := boltcheck.Open(key, value)
	if err != nil {
		return d, was, err
	}
	if !was {
		if err := json.Unmarshal(data, &d); err != nil || d.Rev == "" {
			return d, false, damaged("document %q is no document", key)
		}
		return d, false, nil
	}
	if len(data) < 2 || data[0] != storedVersion {
		return d, true, damaged("document %q was written by another version of this program", key)
	}
	d.Deleted, data = data[1] != 0, data[2:]
	seq, n := binary.Uvarint(data)
	if n <= 0 {
		return d, true, damaged("document %q is cut short", key)
	}
	size, m := binary.Uvarint(data[n:])
	if m <= 0 || size > uint64(len(data)-n-m) {
		return d, true, damaged("document %q is cut short", key)
	}
	data = data[n+m:]
	d.Seq, d.Rev, d.Body = seq, string(data[:size]), data[size:]
	return d, true, nil
}

// text is the document as JSON with id and revision.
func (d stored) text(id string) []byte { return d.append(nil, id) }

func (d stored) append(out []byte, id string) []byte {
	out = append(append(out, `{"_id":`...), quoted(id)...)
	out = append(append(out, `,"_rev":`...), quoted(d.Rev)...)
	if len(d.Body) <= 2 {
		return append(out, '}')
	}
	return append(append(out, ','), d.Body[1:]...)
}

// document is the parsed document with id and revision.
func (d stored) document(id string) (document, error) {
	out := document{}
	if err := decodeNumbers(d.Body, &out); err != nil {
		return nil, damaged("document %q: %v", id, err)
	}
	out["_id"], out["_rev"] = id, d.Rev
	return out, nil
}
