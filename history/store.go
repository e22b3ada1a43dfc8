package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-kivik/kivik/v4"
	"github.com/go-kivik/kivik/v4/couchdb"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// Config is where the history is.
type Config struct {
	URL      string // http(s)://user:password@host:port
	Database string // empty: disdel_history
	Logger   logrus.FieldLogger
}

// Store is the history. It is safe for concurrent use.
type Store struct {
	client *kivik.Client
	http   *http.Client
	db     *kivik.DB
}

// Open connects, and creates the database if it is missing. It returns Invalid for an address that is none, Denied and
// Unavailable.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "open history", Msg: "the address is no URL of a CouchDB", Hint: "write http://HOST:5984"}
	}
	if cfg.Database == "" {
		cfg.Database = "disdel_history"
	}
	s := &Store{http: &http.Client{Transport: &http.Transport{IdleConnTimeout: time.Minute, ResponseHeaderTimeout: 30 * time.Second}}}
	options := []kivik.Option{couchdb.OptionHTTPClient(s.http)}
	if u.User != nil {
		password, _ := u.User.Password()
		options = append(options, couchdb.BasicAuth(u.User.Username(), password))
		u.User = nil
	}
	if s.client, err = kivik.New("couch", u.String(), options...); err != nil {
		return nil, wrap(err, "open history", u.Host)
	}
	exists, err := s.client.DBExists(ctx, cfg.Database)
	if err == nil && !exists {
		err = s.client.CreateDB(ctx, cfg.Database)
		if kivik.HTTPStatus(err) == http.StatusPreconditionFailed {
			err = nil // another process was faster
		}
	}
	if err != nil {
		return nil, errors.Join(wrap(err, "open history", u.Host), s.Close())
	}
	s.db = s.client.DB(cfg.Database)
	return s, nil
}

// Close ends the connections.
func (s *Store) Close() error {
	err := s.client.Close()
	s.http.CloseIdleConnections()
	return err
}

func wrap(err error, op, what string) error {
	if err == nil {
		return nil
	}
	e := &disdel.Error{Kind: disdel.Unavailable, Op: op, Msg: what, Err: err}
	switch status := kivik.HTTPStatus(err); {
	case errors.Is(err, context.Canceled):
		e.Kind = disdel.Canceled
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Kind, e.Hint = disdel.Denied, "check user and password of the CouchDB URL"
	case status == http.StatusNotFound:
		e.Kind, e.Err = disdel.NotFound, nil
	case status == http.StatusConflict:
		e.Kind = disdel.Conflict
	default:
		e.Hint = "check that the history store runs and can be reached from here"
	}
	return e
}

// maxConflicts bounds how often a save starts again because somebody else wrote meanwhile.
const maxConflicts = 10

// Save writes a record under its id. A record that is there already, unchanged, is left alone; another one is replaced.
func (s *Store) Save(ctx context.Context, r *disdel.Record) error {
	body, err := fields(r)
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "save record", Job: r.ID, Err: err}
	}
	for range maxConflicts {
		err = s.save(ctx, r, body)
		if disdel.KindOf(err) != disdel.Conflict {
			return err
		}
	}
	return err
}

func (s *Store) save(ctx context.Context, r *disdel.Record, body map[string]any) error {
	old := map[string]any{}
	err := s.scan(ctx, r.ID, &old)
	switch {
	case err == nil:
		if v := old["apiVersion"]; v != disdel.APIVersion {
			return newer(string(r.ID), v)
		}
		rev := old["_rev"]
		delete(old, "_rev")
		delete(old, "_id")
		if reflect.DeepEqual(old, body) {
			return nil
		}
		body["_rev"] = rev
		defer delete(body, "_rev")
	case kivik.HTTPStatus(err) != http.StatusNotFound:
		return wrap(err, "save record", string(r.ID))
	}
	_, err = s.db.Put(ctx, string(r.ID), body)
	return wrap(err, "save record", string(r.ID))
}

// scan reads one document. kivik leaves the response open after a scan.
func (s *Store) scan(ctx context.Context, id disdel.JobID, v any) error {
	doc := s.db.Get(ctx, string(id))
	return errors.Join(doc.ScanDoc(v), doc.Close())
}

// fields is a record as CouchDB gives it back, so that two can be compared.
func fields(r *disdel.Record) (map[string]any, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(data, &out)
}

func newer(id string, version any) error {
	return &disdel.Error{
		Kind: disdel.Conflict, Op: "read record", Msg: fmt.Sprintf("%s was written by another version of disdel (%v)", id, version),
		Hint: "use the version of disdel that wrote it",
	}
}

// Get reads one record. It returns NotFound.
func (s *Store) Get(ctx context.Context, id disdel.JobID) (disdel.Record, error) {
	var raw json.RawMessage
	if err := s.scan(ctx, id, &raw); err != nil {
		err = wrap(err, "read record", "there is no job "+string(id))
		return disdel.Record{}, err
	}
	return decode(raw)
}

func decode(raw json.RawMessage) (disdel.Record, error) {
	var r disdel.Record
	var head struct {
		ID      string `json:"_id"`
		Version string `json:"apiVersion"`
	}
	if err := json.Unmarshal(raw, &head); err == nil && head.Version != disdel.APIVersion {
		return r, newer(head.ID, head.Version)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, &disdel.Error{Kind: disdel.Corrupt, Op: "read record", Msg: head.ID, Err: err}
	}
	return r, nil
}

// Query narrows a list; zero fields do not.
type Query struct {
	Limit   int // 0: 50
	Since   time.Time
	Model   string // network of the zoo, or output model
	Dataset string
	Status  disdel.Status
}

func (q *Query) matches(r *disdel.Record) bool {
	return (q.Model == "" || q.Model == r.Job.Model.Name || q.Model == r.Job.Output.Model) &&
		(q.Dataset == "" || q.Dataset == r.Data.Name) && (q.Status == disdel.StatusUnknown || q.Status == r.Status) &&
		!r.Created.Before(q.Since)
}

// pageSize is how many records are read at once.
const pageSize = 50

// prefix starts every job's id.
const prefix = "job-"

var jobID = regexp.MustCompile(`^job-[0-9a-z]{26}$`)

// each calls f with every record, newest first, until f returns false. Records of another version are passed over.
func (s *Store) each(ctx context.Context, f func(disdel.Record) bool) error {
	start, skip := prefix+"\ufff0", 0
	for {
		last, n, err := s.page(ctx, start, skip, f)
		if err != nil || n < pageSize {
			return err
		}
		start, skip = last, 1
	}
}

// page reads one page of each; n is 0 once f wants no more.
func (s *Store) page(ctx context.Context, start string, skip int, f func(disdel.Record) bool) (last string, n int, err error) {
	rows := s.db.AllDocs(ctx, kivik.Params(map[string]any{
		"descending": true, "include_docs": true, "limit": pageSize, "skip": skip, "startkey": start, "endkey": prefix,
	}))
	for rows.Next() {
		n++
		var raw json.RawMessage
		if err := rows.ScanDoc(&raw); err != nil {
			return "", 0, errors.Join(wrap(err, "list records", ""), rows.Close())
		}
		if last, err = rows.ID(); err != nil {
			return "", 0, errors.Join(wrap(err, "list records", ""), rows.Close())
		}
		if r, err := decode(raw); err == nil && !f(r) {
			return "", 0, rows.Close()
		}
	}
	return last, n, wrap(rows.Err(), "list records", "")
}

// List returns records, newest first.
func (s *Store) List(ctx context.Context, q Query) ([]disdel.Record, error) {
	if q.Limit == 0 {
		q.Limit = 50
	}
	out := []disdel.Record{}
	err := s.each(ctx, func(r disdel.Record) bool {
		if q.matches(&r) {
			out = append(out, r)
		}
		return len(out) < q.Limit
	})
	return out, err
}

// Resolve finds the job that a person means: an id, the start of one, "@last", or a job's name (its newest). It returns
// NotFound, and Conflict with the candidates for a start that several ids share.
func (s *Store) Resolve(ctx context.Context, ref string) (disdel.JobID, error) {
	if jobID.MatchString(ref) { // anything else may be a place of CouchDB's own
		if _, err := s.Get(ctx, disdel.JobID(ref)); err == nil {
			return disdel.JobID(ref), nil
		} else if disdel.KindOf(err) != disdel.NotFound {
			return "", err
		}
	}
	var byName disdel.JobID
	var byPrefix []string
	err := s.each(ctx, func(r disdel.Record) bool {
		id := string(r.ID)
		if byName == "" && (ref == "@last" || ref == r.Job.Metadata.Name) {
			byName = r.ID
		}
		if ref != "" && (strings.HasPrefix(id, ref) || strings.HasPrefix(id, prefix+ref)) {
			byPrefix = append(byPrefix, id)
		}
		return byName == ""
	})
	switch {
	case err != nil:
		return "", err
	case byName != "":
		return byName, nil
	case len(byPrefix) == 1:
		return disdel.JobID(byPrefix[0]), nil
	case len(byPrefix) > 1:
		slices.Sort(byPrefix)
		return "", &disdel.Error{
			Kind: disdel.Conflict, Op: "find job", Msg: fmt.Sprintf("%d jobs start with %q", len(byPrefix), ref),
			Hint: "one of: " + strings.Join(byPrefix[:min(5, len(byPrefix))], ", "),
		}
	default:
		return "", &disdel.Error{Kind: disdel.NotFound, Op: "find job", Msg: fmt.Sprintf("there is no job %q", ref), Hint: "disdel history lists them; disdel quickstart runs a first one"}
	}
}

// similarLimit bounds how many records a plan looks at.
const similarLimit = 100

// Similar returns records of the same network, data set, batch size and backend, newest first: one backend's durations say
// nothing of the other's.
func (s *Store) Similar(ctx context.Context, job disdel.Job) ([]disdel.Record, error) {
	selector := map[string]any{
		"job.data.source":        map[string]any{"$eq": job.Data.Source},
		"job.training.batchSize": map[string]any{"$eq": job.Training.BatchSize},
	}
	if job.Model.Name != "" {
		selector["job.model.name"] = map[string]any{"$eq": job.Model.Name}
	}
	rows := s.db.Find(ctx, map[string]any{"selector": selector, "limit": similarLimit})
	var out []disdel.Record
	for rows.Next() {
		var raw json.RawMessage
		if err := rows.ScanDoc(&raw); err != nil {
			rows.Close()
			return nil, wrap(err, "find similar jobs", "")
		}
		if r, err := decode(raw); err == nil && r.Job.Training.Backend == job.Training.Backend &&
			r.Job.Model.Custom == job.Model.Custom && reflect.DeepEqual(r.Job.Model.Layers, job.Model.Layers) {
			out = append(out, r)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, wrap(err, "find similar jobs", "")
	}
	slices.SortFunc(out, func(a, b disdel.Record) int { return strings.Compare(string(b.ID), string(a.ID)) })
	return out, nil
}

// Recent returns the newest records of jobs of any kind, newest first: what estimates and forecasts learn from where no job of
// the same kind has run.
func (s *Store) Recent(ctx context.Context, limit int) ([]disdel.Record, error) {
	return s.List(ctx, Query{Limit: limit})
}

// Delete removes a record. It returns NotFound.
func (s *Store) Delete(ctx context.Context, id disdel.JobID) error {
	var doc struct {
		Rev string `json:"_rev"`
	}
	err := s.scan(ctx, id, &doc) // PouchDB's server answers HEAD with an ETag that is no revision
	if err == nil {
		_, err = s.db.Delete(ctx, string(id), doc.Rev)
	}
	return wrap(err, "delete record", string(id))
}
