package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-kivik/kivik/v4"
	"github.com/go-kivik/kivik/v4/couchdb"
	"github.com/go-kivik/kivik/v4/couchdb/chttp"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history/couchlite"
)

// Config is where the history is.
type Config struct {
	URL      string             // http(s)://user:password@host:port
	Database string             // empty: Database
	Logger   logrus.FieldLogger // nil: nobody reads it

	// Patience is how long a query waits for a view, which a server builds when it is first asked, before it does
	// without. 0: two seconds.
	Patience time.Duration
}

// Database is the one that records are in.
const Database = "disdel_history"

// Store is the history. It is safe for concurrent use.
type Store struct {
	log    logrus.FieldLogger
	client *kivik.Client
	http   *http.Client
	db     *kivik.DB
	tenant *string // whose records alone are seen; nil: everybody's
	view   *view
	told   *sync.Map // ids of documents that were named as unreadable
}

// Of is the same history as a tenant sees it: records of others are not there. It ends with the Store that it is of.
func (s *Store) Of(tenant string) *Store {
	out := *s
	out.tenant = &tenant
	return &out
}

// sees tells whether a record is one that this Store shows.
func (s *Store) sees(r *disdel.Record) bool { return s.tenant == nil || r.Tenant == *s.tenant }

// Open connects, and creates the database and its indexes if they are missing. It returns Invalid for an address that
// is none, Denied, Unavailable, and of the embedded history Corrupt and NoSpace.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "open history", Msg: "the address is no URL of a CouchDB",
			Hint: "write http://HOST:5984",
		}
	}
	if cfg.Logger == nil {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		cfg.Logger = quiet
	}
	if cfg.Database == "" {
		cfg.Database = Database
	}
	s := &Store{
		log: cfg.Logger, told: new(sync.Map), view: &view{patience: cmp.Or(cfg.Patience, viewPatience)},
		http: &http.Client{
			Transport:     &http.Transport{IdleConnTimeout: time.Minute, ResponseHeaderTimeout: 30 * time.Second},
			CheckRedirect: stay,
		},
	}
	options := []kivik.Option{couchdb.OptionHTTPClient(s.http)}
	if u.User != nil {
		password, _ := u.User.Password()
		options = append(options, couchdb.BasicAuth(u.User.Username(), password))
		u.User = nil
	}
	if s.client, err = kivik.New("couch", u.String(), options...); err != nil {
		return nil, wrap(err, "open history", u.Host)
	}
	s.db = s.client.DB(cfg.Database)
	if err := s.prepare(ctx, cfg.Database); err != nil {
		return nil, errors.Join(wrap(err, "open history", u.Host), s.Close())
	}
	return s, nil
}

// stay refuses every redirect: user and password go with each request, and are for the server that was named alone.
func stay(to *http.Request, _ []*http.Request) error {
	return &disdel.Error{
		Kind: disdel.Denied, Msg: "it redirects to " + to.URL.Scheme + "://" + to.URL.Host + ", which gets no password",
		Hint: "if that is the history, name its address",
	}
}

// design is the design document that the indexes are in. Whoever changes them gives it the next number: disdel-2 after
// disdel. Two versions of this program that share a history then have theirs each, where one document would be made
// anew by turns, and all its indexes with it.
const design = "disdel-2"

// indexes are what the queries below go by. CouchDB lists documents with all the fields alone, so that a job of layers,
// which has no network's name, is in the first but not in the second; the embedded history knows of every document
// which fields it has.
var indexes = map[string][]string{
	"kind":  {sourceField, batchField, "_id"},
	"exact": {sourceField, batchField, backendField, networkField, customField, layersField, "_id"},
	"name":  {nameField, "_id"},
	"whose": {tenantField, "_id"},
	"lists": {statusField, datasetField, networkField, outputField, "_id"},
}

// The fields of a record that queries name.
const (
	sourceField  = "job.data.source"
	batchField   = "job.training.batchSize"
	backendField = "job.training.backend"
	networkField = "job.model.name"
	customField  = "job.model.custom"
	layersField  = "job.model.layers"
	nameField    = "job.metadata.name"
	outputField  = "job.output.model"
	statusField  = "status"
	datasetField = "data.name"
	tenantField  = "tenant"
)

// prepare makes what is missing. Who may only read does without indexes: his queries take longer.
func (s *Store) prepare(ctx context.Context, name string) error {
	_, err := s.db.Stats(ctx)
	if kivik.HTTPStatus(err) == http.StatusNotFound {
		err = s.client.CreateDB(ctx, name)
		if kivik.HTTPStatus(err) == http.StatusPreconditionFailed {
			err = nil // another process was faster
		}
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(indexes)) {
		if err := s.db.CreateIndex(ctx, design, name, map[string]any{"fields": indexes[name]}); err != nil {
			if kivik.HTTPStatus(err) == couchlite.StatusDamaged || ctx.Err() != nil {
				return err
			}
			s.log.WithError(err).Debug("the history has no index, its queries take longer")
			return nil
		}
	}
	return nil
}

// Close ends the connections.
func (s *Store) Close() error {
	err := s.client.Close()
	s.http.CloseIdleConnections()
	return err
}

// wrap makes an Error of kivik's. What the embedded history says of its file is whole already, and names the file.
func wrap(err error, op, what string) error {
	if err == nil {
		return nil
	}
	e := &disdel.Error{Kind: disdel.Unavailable, Op: op, Msg: what, Err: err}
	var away *disdel.Error
	switch status := kivik.HTTPStatus(err); {
	case errors.As(err, &away): // a redirect
		e.Kind, e.Err, e.Hint = away.Kind, away, away.Hint
	case errors.Is(err, context.Canceled):
		e.Kind = disdel.Canceled
	case status == couchlite.StatusDamaged:
		e.Kind, e.Msg, e.Err = disdel.Corrupt, reason(err), nil
		e.Hint = "disdel history repair keeps what can be read; the damaged file stays beside it"
	case status == couchlite.StatusReadOnly:
		e.Kind, e.Msg, e.Err, e.Hint = disdel.Denied, reason(err), nil, "name a folder you can write to with --home"
	case status == couchlite.StatusNoSpace:
		e.Kind, e.Msg, e.Err, e.Hint = disdel.NoSpace, reason(err), nil,
			"free some space, or name a folder on another disk with --home"
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

// reason is what the server said.
func reason(err error) string {
	var said *chttp.HTTPError
	if errors.As(err, &said) && said.Reason != "" {
		return said.Reason
	}
	return err.Error()
}

// maxConflicts bounds how often a save starts again because somebody else wrote meanwhile.
const maxConflicts = 10

// Save writes a record under its id. A record that is there already, unchanged, is left alone; another one is replaced.
func (s *Store) Save(ctx context.Context, r *disdel.Record) error {
	if !r.ID.Valid() {
		return &disdel.Error{Kind: disdel.Invalid, Op: "save record", Msg: fmt.Sprintf("%.80q is no job's id", r.ID)}
	}
	if !s.sees(r) {
		return noJob(r.ID)
	}
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
	err := s.scan(ctx, r.ID, &old, withConflicts)
	apart := revisions(old[conflictsField])
	switch {
	case err == nil:
		if v := old["apiVersion"]; v != disdel.APIVersion {
			return newer(string(r.ID), v)
		}
		rev := old["_rev"]
		for _, of := range []string{"_rev", "_id", conflictsField} {
			delete(old, of)
		}
		if reflect.DeepEqual(old, body) {
			s.drop(ctx, r.ID, apart)
			return nil
		}
		body["_rev"] = rev
		defer delete(body, "_rev")
	case kivik.HTTPStatus(err) != http.StatusNotFound:
		return wrap(err, "save record", string(r.ID))
	}
	if _, err = s.db.Put(ctx, string(r.ID), body); err == nil {
		s.drop(ctx, r.ID, apart)
	}
	return wrap(err, "save record", string(r.ID))
}

// scan reads one document. kivik leaves the response open after a scan.
func (s *Store) scan(ctx context.Context, id disdel.JobID, v any, how ...kivik.Option) error {
	doc := s.db.Get(ctx, string(id), how...)
	return errors.Join(doc.ScanDoc(v), doc.Close())
}

func newer(id string, version any) error {
	return &disdel.Error{
		Kind: disdel.Conflict, Code: disdel.CodeUnreadable, Op: "read record",
		Msg:  fmt.Sprintf("%s was written by another version of disdel (%v)", id, version),
		Hint: "use the version of disdel that wrote it",
	}
}

// Get reads one record. It returns NotFound.
func (s *Store) Get(ctx context.Context, id disdel.JobID) (disdel.Record, error) {
	r, _, err := s.GetSized(ctx, id)
	return r, err
}

// GetSized is Get, with how many bytes the history keeps for the record.
func (s *Store) GetSized(ctx context.Context, id disdel.JobID) (disdel.Record, disdel.Bytes, error) {
	if !id.Valid() { // anything else may be a place of CouchDB's own
		return disdel.Record{}, 0, noJob(id)
	}
	var raw json.RawMessage
	if err := s.scan(ctx, id, &raw, withConflicts); err != nil {
		err = wrap(err, "read record", "there is no job "+string(id))
		return disdel.Record{}, 0, err
	}
	size := disdel.Bytes(len(raw))
	r, err := decode(raw)
	if err == nil {
		r = s.furthest(ctx, r, raw)
	} else { // whose it is can be read all the same, else it is the home's own
		r.Tenant = tenantOf(raw)
	}
	if !s.sees(&r) {
		return disdel.Record{}, 0, noJob(id)
	}
	return r, size, err
}

// tenantOf returns the tenant that a document names, readable or not.
func tenantOf(raw json.RawMessage) string {
	var d struct {
		Tenant string `json:"tenant"`
	}
	if json.Unmarshal(raw, &d) != nil {
		return ""
	}
	return d.Tenant
}

func noJob(id disdel.JobID) error {
	return &disdel.Error{Kind: disdel.NotFound, Op: "read record", Msg: "there is no job " + string(id)}
}

// decode reads a document. What it says of itself is believed only where it is the document's own id: a record's id is
// part of paths and commands.
func decode(raw json.RawMessage) (disdel.Record, error) {
	var d struct {
		Key string `json:"_id"`
		disdel.Record
	}
	if err := json.Unmarshal(plain(raw), &d); err != nil || d.APIVersion != disdel.APIVersion {
		return disdel.Record{}, unreadable(raw, err)
	}
	if string(d.ID) != d.Key || !d.ID.Valid() {
		return disdel.Record{}, &disdel.Error{
			Kind: disdel.Corrupt, Code: disdel.CodeUnreadable, Op: "read record",
			Msg:  fmt.Sprintf("document %.80q of the history says that it is job %.80q", d.Key, d.ID),
			Hint: "disdel did not write it: delete it from the history",
		}
	}
	return d.Record, nil
}

// unreadable says why a document is no record of this version's.
func unreadable(raw json.RawMessage, err error) error {
	var head struct {
		ID      string `json:"_id"`
		Version any    `json:"apiVersion"`
	}
	if json.Unmarshal(raw, &head) == nil && head.Version != disdel.APIVersion {
		return newer(head.ID, head.Version)
	}
	return &disdel.Error{
		Kind: disdel.Corrupt, Code: disdel.CodeUnreadable, Op: "read record", Msg: head.ID, Err: err,
		Hint: "disdel history delete " + head.ID,
	}
}

// Delete removes a record, and what was said of its job. It returns NotFound.
func (s *Store) Delete(ctx context.Context, id disdel.JobID) error {
	var doc struct {
		Rev    string   `json:"_rev"`
		Tenant string   `json:"tenant"`
		Apart  []string `json:"_conflicts"`
	}
	err := s.scan(ctx, id, &doc, withConflicts) // PouchDB's server answers HEAD with an ETag that is no revision
	if err == nil && !s.sees(&disdel.Record{Tenant: doc.Tenant}) {
		return noJob(id)
	}
	if err == nil {
		s.drop(ctx, id, doc.Apart) // one that stayed would be shown in the place of what is deleted
		_, err = s.db.Delete(ctx, string(id), doc.Rev)
	}
	if err != nil {
		return wrap(err, "delete record", string(id))
	}
	return s.unremark(ctx, id)
}

// Two servers that were apart, or the nodes of one, may each have taken another state of a record. CouchDB then shows
// one of them, and not by what it says: a job that has ended may run again for whoever reads. What counts here is the
// state that is furthest. A record that is read is shown in it; the next save, which knows more than all of them, takes
// the others away.

// conflictsField is where a document names its other states.
const conflictsField = "_conflicts"

var withConflicts = kivik.Param("conflicts", true)

// revisions is what a document has in conflictsField.
func revisions(v any) (out []string) {
	list, _ := v.([]any)
	for _, one := range list {
		if rev, ok := one.(string); ok {
			out = append(out, rev)
		}
	}
	return out
}

// drop deletes states of a record that another one was saved over. One that stays is dropped by the next save.
func (s *Store) drop(ctx context.Context, id disdel.JobID, apart []string) {
	for _, rev := range apart {
		if _, err := s.db.Delete(ctx, string(id), rev); err != nil {
			s.log.WithError(err).WithField("job", id).Debug("another state of the record stays")
		}
	}
}

// furthest is the record in the state that is furthest, of that which the server shows and those that it names beside
// it. One of them that cannot be read does not count.
func (s *Store) furthest(ctx context.Context, shown disdel.Record, raw json.RawMessage) disdel.Record {
	var head struct {
		Apart []string `json:"_conflicts"`
	}
	if json.Unmarshal(raw, &head) != nil {
		return shown
	}
	for _, rev := range head.Apart {
		var other json.RawMessage
		if s.scan(ctx, shown.ID, &other, kivik.Rev(rev)) != nil {
			continue
		}
		if r, err := decode(other); err == nil && further(&r, &shown) > 0 {
			shown = r
		}
	}
	return shown
}

// further compares how far two states of one job's record are.
func further(a, b *disdel.Record) int {
	over := func(r *disdel.Record) int {
		if r.Status.Unfinished() {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Resumes, b.Resumes), cmp.Compare(over(a), over(b)),
		cmp.Compare(len(a.Rounds), len(b.Rounds)), cmp.Compare(len(a.Transitions), len(b.Transitions)),
		cmp.Compare(a.Status, b.Status))
}

// A server that keeps numbers as JavaScript does rounds integers above 2^53: PouchDB's is one. A seed that was rounded
// is another seed, and one above 2^63 cannot be read at all. A record's document has such an integer as an object of
// one field, whose value is the integer's text. Documents of earlier versions have the number itself.

// integerField is the field of an object that stands for an integer.
const integerField = "$integer"

var storedInteger = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\s*"\$integer"\s*:\s*"(-?[0-9]{1,20})"\s*\}`)
})

// fields returns a record as a server gives it back, so that two can be compared. Every number in it is the same
// number as a float64.
func fields(r *disdel.Record) (map[string]any, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	out := map[string]any{}
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	for name, v := range out {
		if out[name], err = storable(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// storable returns a JSON value with numbers that every server keeps.
func storable(v any) (out any, err error) {
	switch x := v.(type) {
	case map[string]any:
		for name := range x {
			if x[name], err = storable(x[name]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range x {
			if x[i], err = storable(x[i]); err != nil {
				return nil, err
			}
		}
	case json.Number:
		f, err := x.Float64()
		if err == nil && rounded(string(x), f) {
			return map[string]any{integerField: string(x)}, nil
		}
		return f, err
	}
	return v, nil
}

// rounded reports whether a number is an integer that a float64 writes otherwise.
func rounded(text string, f float64) bool {
	const exact = 1 << 53 // every integer up to it is a float64
	if -exact < f && f < exact {
		return false
	}
	for _, c := range text {
		if c != '-' && (c < '0' || c > '9') {
			return false // a float64 from the start
		}
	}
	return strconv.FormatFloat(f, 'f', -1, 64) != text
}

// plain returns a document with its integers as numbers. In valid JSON no text has an unescaped quote, so that the
// pattern finds objects only.
func plain(document json.RawMessage) json.RawMessage {
	if !bytes.Contains(document, []byte(integerField)) {
		return document
	}
	return storedInteger().ReplaceAll(document, []byte("$1"))
}
