package couchlite

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/disdel/disdel"
)

// Config has the limits of a Server.
type Config struct {
	LockWait time.Duration // how long to wait for another process to close the file; 0: 10 s
	MaxBody  int64         // bytes of a request; 0: 64 MB
}

// Server serves one file. It is safe for concurrent use.
type Server struct {
	path     string
	cfg      Config
	password string
	commits  commitQueue
	mu       sync.RWMutex // many readers of this process, or one writer
	checked  atomic.Pointer[fileState]
	noSync   bool // only for tests: answers before the data is on disk
	server   *http.Server
	listener net.Listener
	served   chan struct{}
}

// user is the name of the only account, CouchDB's usual one.
const user = "admin"

// Open makes a server for the file at path, which the first write creates. It returns Unavailable if the folder cannot
// be created.
func Open(path string, cfg Config) (*Server, error) {
	if cfg.LockWait == 0 {
		cfg.LockWait = 10 * time.Second
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 64 << 20
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, &disdel.Error{Kind: disdel.Unavailable, Op: "open history", Err: err}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "open history", Msg: path + " is a folder, and the history is a file",
			Hint: "put the file back, or start without records of earlier jobs: mv " + path + " " + path + ".folder",
		}
	}
	secret := make([]byte, 16)
	rand.Read(secret)
	return &Server{path: path, cfg: cfg, password: hex.EncodeToString(secret)}, nil
}

// Start serves on a loopback port. Clients need the password in URL.
func (s *Server) Start() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "start history", Err: err}
	}
	s.listener, s.served = l, make(chan struct{})
	// Answers wait only for the file, so a whole request has a time limit.
	s.server = &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
	}
	go func() {
		defer close(s.served)
		s.server.Serve(l) //nolint:errcheck // ends with ErrServerClosed
	}()
	return nil
}

// URL is the address with user and password.
func (s *Server) URL() string {
	u := url.URL{Scheme: "http", User: url.UserPassword(user, s.password), Host: s.listener.Addr().String()}
	return u.String()
}

// Close finishes open requests and stops.
func (s *Server) Close() error {
	if s.server == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	if err := s.server.Shutdown(ctx); err != nil {
		s.server.Close()
	}
	<-s.served
	return nil
}

// couchError is an error as CouchDB answers it.
type couchError struct {
	status      int
	err, reason string
}

func (p couchError) Error() string { return p.err + ": " + p.reason }

var (
	errNoDB      = couchError{404, "not_found", "Database does not exist."}
	errMissing   = couchError{404, "not_found", "missing"}
	errDeleted   = couchError{404, "not_found", "deleted"}
	errConflict  = couchError{409, "conflict", "Document update conflict."}
	errDBExists  = couchError{412, "file_exists", "The database could not be created, the file already exists."}
	errNoAccess  = couchError{401, "unauthorized", "You are not authorized to access this db."}
	errBadJSON   = couchError{400, "bad_request", "invalid UTF-8 JSON"}
	errNotObject = couchError{400, "bad_request", "Document must be a JSON object"}
	errTooLarge  = couchError{413, "too_large", "the request entity is too large"}
)

// Handler is the HTTP interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(r *http.Request) (int, any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, f) })
	}
	handle("GET /{$}", welcome)
	handle("GET /_up", func(*http.Request) (int, any, error) { return 200, map[string]string{"status": "ok"}, nil })
	handle("GET /_all_dbs", s.allDBs)
	handle("PUT /{db}", s.createDB)
	handle("GET /{db}", s.dbInfo)
	handle("DELETE /{db}", s.deleteDB)
	handle("POST /{db}", s.postDoc)
	handle("GET /{db}/{id}", s.getDoc)
	handle("PUT /{db}/{id}", s.putDoc)
	handle("DELETE /{db}/{id}", s.deleteDoc)
	handle("POST /{db}/_bulk_docs", s.bulkDocs)
	handle("GET /{db}/_all_docs", s.allDocs)
	handle("POST /{db}/_all_docs", s.allDocs)
	handle("POST /{db}/_find", s.find)
	handle("POST /{db}/_index", s.createIndex)
	handle("GET /{db}/_index", s.listIndexes)
	handle("GET /{db}/_changes", s.changes)
	handle("/", func(*http.Request) (int, any, error) {
		return 0, nil, couchError{405, "method_not_allowed", "this server speaks a part of CouchDB only"}
	})
	return mux
}

func welcome(*http.Request) (int, any, error) {
	return 200, map[string]any{
		"couchdb": "Welcome", "version": "3.0.0",
		"vendor": map[string]string{"name": "disdel couchlite"},
	}, nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, f func(*http.Request) (int, any, error)) {
	r.Body = http.MaxBytesReader(w, r.Body, s.cfg.MaxBody)
	status, body, err := 0, any(nil), error(errNoAccess)
	if name, password, ok := r.BasicAuth(); ok && name == user &&
		subtle.ConstantTimeCompare([]byte(password), []byte(s.password)) == 1 {
		status, body, err = f(r)
	} else {
		closeSoon(w)
	}
	if err != nil {
		p := s.errorOf(err)
		status, body = p.status, map[string]string{"error": p.err, "reason": p.reason}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Server", "couchlite")
	if rev := revisionOf(body); rev != "" {
		w.Header().Set("ETag", `"`+rev+`"`)
	}
	data, err := encoded(body)
	if err != nil {
		status, data = 500, []byte(`{"error":"internal_server_error","reason":"encoding"}`)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}

func encoded(body any) ([]byte, error) {
	if ready, ok := body.(answer); ok {
		return ready.body, nil
	}
	return json.Marshal(body)
}

// closeSoon closes the connection of a client without a password after the answer.
func closeSoon(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	soon := time.Now().Add(time.Second)
	http.NewResponseController(w).SetReadDeadline(soon) //nolint:errcheck // test recorders have no deadlines
}

// revisionOf is the revision for the header ETag.
func revisionOf(body any) string {
	switch b := body.(type) {
	case answer:
		return b.rev
	case written:
		return b.Rev
	default:
		return ""
	}
}

// A compressed request may unpack to freeUnpacked bytes, or maxRatio times its size, but never more than maxUnpacked.
const (
	maxUnpacked  = 64 << 20
	freeUnpacked = 1 << 20
	maxRatio     = 100
)

// unpacker reads uncompressed data within these bounds.
type unpacker struct {
	packed   *counter
	from     io.Reader
	unpacked int64
}

type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	if u.unpacked += int64(n); u.unpacked > maxUnpacked || u.unpacked > freeUnpacked && u.unpacked > maxRatio*u.packed.n {
		return 0, errTooLarge
	}
	return n, err
}

// readJSON parses a body and keeps the texts of numbers.
func readJSON(r *http.Request, v any) error {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" { // kivik compresses every body
		packed := &counter{from: body}
		z, err := gzip.NewReader(packed)
		if err != nil {
			return errBadJSON
		}
		body = &unpacker{packed: packed, from: z}
	}
	d := json.NewDecoder(body)
	d.UseNumber()
	err := d.Decode(v)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge) || errors.Is(err, errTooLarge):
		return errTooLarge
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return errBadJSON
	default:
		return nil
	}
}
