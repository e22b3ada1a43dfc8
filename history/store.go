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

// Config is the address of the history.
type Config struct {
	URL      string             // http(s)://user:password@host:port
	Database string             // empty: the constant Database
	Logger   logrus.FieldLogger // nil: no log

	// Patience is how long a query waits for a view that the server is building, before it uses a selector. 0: two
	// seconds.
	Patience time.Duration

	Transport http.RoundTripper // nil: connections of its own
}

// Database is the default database.
const Database = "disdel_history"

// Store is the history of jobs. It is safe for concurrent use.
type Store struct {
	log    logrus.FieldLogger
	client *kivik.Client
	http   *http.Client
	db     *kivik.DB
	raw    *chttp.Client // for answers that kivik would parse too slowly
	tenant *string       // the only tenant whose records are visible; nil: all
	view   *view
	warned *sync.Map // ids of unreadable documents that were logged

	database string
}

// ForTenant returns the same history with only one tenant's records. It is closed together with s.
func (s *Store) ForTenant(tenant string) *Store {
	out := *s
	out.tenant = &tenant
	return &out
}

// sees tells whether this Store shows a record.
func (s *Store) sees(r *disdel.Record) bool { return s.tenant == nil || r.Tenant == *s.tenant }

// Open connects, and creates the database and its indexes if they are missing. It returns Invalid for a bad address,
// Denied, Unavailable, and Corrupt and NoSpace for the embedded history.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "open history", Msg: "the address is not the URL of a CouchDB",
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
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{IdleConnTimeout: time.Minute, ResponseHeaderTimeout: 30 * time.Second}
	}
	s := &Store{
		log: cfg.Logger, warned: new(sync.Map), database: cfg.Database,
		view: &view{patience: cmp.Or(cfg.Patience, viewPatience)},
		http: &http.Client{Transport: cfg.Transport, CheckRedirect: refuseRedirect},
	}
	options := []kivik.Option{couchdb.OptionHTTPClient(s.http)}
	access := kivik.Params(nil)
	if u.User != nil {
		password, _ := u.User.Password()
		access = couchdb.BasicAuth(u.User.Username(), password)
		options = append(options, access)
		u.User = nil
	}
	if s.client, err = kivik.New("couch", u.String(), options...); err != nil {
		return nil, wrap(err, "open history", u.Host)
	}
	own := *s.http // which gets the password
	if s.raw, err = chttp.New(&own, u.String(), access); err != nil {
		return nil, wrap(err, "open history", u.Host)
	}
	s.db = s.client.DB(cfg.Database)
	if err := s.prepare(ctx, cfg.Database); err != nil {
		return nil, errors.Join(wrap(err, "open history", u.Host), s.Close())
	}
	return s, nil
}

// refuseRedirect refuses every redirect, because each request has the user and password of the configured server.
func refuseRedirect(to *http.Request, _ []*http.Request) error {
	return &disdel.Error{
		Kind: disdel.Denied, Msg: "it redirects to " + to.URL.Scheme + "://" + to.URL.Host + ", which gets no password",
		Hint: "if that server is the history, use its address",
	}
}

// design is the design document with the indexes. A change of the indexes needs a new number, as disdel-2 followed
// disdel: two versions of disdel that share a history then do not overwrite each other's indexes.
const design = "disdel-2"

// indexes are used by the queries below. An index of CouchDB lists only documents that have all its fields: a job with
// layers has no network name and so is in the first index but not in the second. couchlite has all documents in all
// indexes.
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
	programField = "job.model.python.file"
	entryField   = "job.model.python.entry"
	nameField    = "job.metadata.name"
	outputField  = "job.output.model"
	statusField  = "status"
	datasetField = "data.name"
	tenantField  = "tenant"
)

// prepare creates what is missing. Users without write permission use no indexes; their queries are slower.
func (s *Store) prepare(ctx context.Context, name string) error {
	_, err := s.db.Stats(ctx)
	if kivik.HTTPStatus(err) == http.StatusNotFound {
		err = s.client.CreateDB(ctx, name)
		if kivik.HTTPStatus(err) == http.StatusPreconditionFailed {
			err = nil // another process created it
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

// wrap makes an Error of kivik's error. Errors of the embedded history about its file are complete and name the file.
func wrap(err error, op, what string) error {
	if err == nil {
		return nil
	}
	e := &disdel.Error{Kind: disdel.Unavailable, Op: op, Msg: what, Err: err}
	var away *disdel.Error
	switch status := kivik.HTTPStatus(err); {
	case errors.As(err, &away): // a refused redirect
		e.Kind, e.Err, e.Hint = away.Kind, away, away.Hint
	case errors.Is(err, context.Canceled):
		e.Kind = disdel.Canceled
	case status == couchlite.StatusDamaged:
		e.Kind, e.Msg, e.Err = disdel.Corrupt, serverReason(err), nil
		e.Hint = "disdel jobs repair keeps what can be read; the damaged file stays beside it"
	case status == couchlite.StatusReadOnly:
		e.Kind, e.Msg, e.Err, e.Hint = disdel.Denied, serverReason(err), nil, "name a folder you can write to with --home"
	case status == couchlite.StatusNoSpace:
		e.Kind, e.Msg, e.Err, e.Hint = disdel.NoSpace, serverReason(err), nil,
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

// serverReason is the reason in a server's answer.
func serverReason(err error) string {
	var httpErr *chttp.HTTPError
	if errors.As(err, &httpErr) && httpErr.Reason != "" {
		return httpErr.Reason
	}
	return err.Error()
}

// maxConflicts bounds how often a save retries after a conflict with another writer.
const maxConflicts = 10

// Save stores a record under its id. It skips an unchanged record.
func (s *Store) Save(ctx context.Context, r *disdel.Record) error {
	if !r.ID.Valid() {
		return &disdel.Error{Kind: disdel.Invalid, Op: "save record", Msg: fmt.Sprintf("%.80q is no job's id", r.ID)}
	}
	if !s.sees(r) {
		return noJob(r.ID)
	}
	body, err := encodeRecord(r)
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
	apart := conflictRevisions(old[conflictsField])
	switch {
	case err == nil:
		version, _ := old["apiVersion"].(string)
		if err := disdel.CheckVersion("read record", string(r.ID), version); err != nil {
			return err
		}
		rev := old["_rev"]
		for _, field := range []string{"_rev", "_id", conflictsField} {
			delete(old, field)
		}
		if reflect.DeepEqual(old, body) {
			s.deleteRevisions(ctx, r.ID, apart)
			return nil
		}
		body["_rev"] = rev
		defer delete(body, "_rev")
	case kivik.HTTPStatus(err) != http.StatusNotFound:
		return wrap(err, "save record", string(r.ID))
	}
	if _, err = s.db.Put(ctx, string(r.ID), body); err == nil {
		s.deleteRevisions(ctx, r.ID, apart)
	}
	return wrap(err, "save record", string(r.ID))
}

// scan reads one document. kivik leaves the response open after a scan.
func (s *Store) scan(ctx context.Context, id disdel.JobID, v any, how ...kivik.Option) error {
	doc := s.db.Get(ctx, string(id), how...)
	return errors.Join(doc.ScanDoc(v), doc.Close())
}

// Get reads one record. It returns NotFound.
func (s *Store) Get(ctx context.Context, id disdel.JobID) (disdel.Record, error) {
	r, _, err := s.GetSized(ctx, id)
	return r, err
}

// GetSized is Get that also returns the size of the stored record.
func (s *Store) GetSized(ctx context.Context, id disdel.JobID) (disdel.Record, disdel.Bytes, error) {
	if !id.Valid() { // other ids may be CouchDB's own documents
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
		r = s.mostAdvanced(ctx, r, raw)
	} else { // the tenant may be readable nevertheless; else it is the home's owner
		r.Tenant = tenantOf(raw)
	}
	if !s.sees(&r) {
		return disdel.Record{}, 0, noJob(id)
	}
	return r, size, err
}

// tenantOf returns the tenant of a document, even of an unreadable one.
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

// decode reads a document as a record. The record's id must be the document's id, because it becomes part of paths and
// commands.
func decode(raw json.RawMessage) (disdel.Record, error) {
	var d struct {
		Key string `json:"_id"`
		disdel.Record
	}
	if err := json.Unmarshal(restoreIntegers(raw), &d); err != nil || d.APIVersion != disdel.APIVersion {
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

// unreadable is the error of a document that this version cannot read.
func unreadable(raw json.RawMessage, err error) error {
	var head struct {
		ID      string `json:"_id"`
		Version any    `json:"apiVersion"`
	}
	if json.Unmarshal(raw, &head) == nil {
		version, _ := head.Version.(string)
		if other := disdel.CheckVersion("read record", head.ID, version); other != nil {
			return other
		}
	}
	return &disdel.Error{
		Kind: disdel.Corrupt, Code: disdel.CodeUnreadable, Op: "read record", Msg: head.ID, Err: err,
		Hint: "disdel jobs delete " + head.ID,
	}
}

// Delete removes a record and the remark of its job. It returns NotFound.
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
		s.deleteRevisions(ctx, id, doc.Apart) // a remaining revision would replace the deleted one
		_, err = s.db.Delete(ctx, string(id), doc.Rev)
	}
	if err != nil {
		return wrap(err, "delete record", string(id))
	}
	return s.deleteRemark(ctx, id)
}

// Two servers that were disconnected, or two nodes of one, may each have another revision of a record. CouchDB shows
// one of them, chosen by its revision number: a finished job can look as if it runs. Here the revision with the most
// progress counts. Reading shows it, and the next save deletes the others.

// conflictsField is the field of a document with its conflicting revisions.
const conflictsField = "_conflicts"

var withConflicts = kivik.Param("conflicts", true)

// conflictRevisions are the revisions in conflictsField.
func conflictRevisions(v any) (out []string) {
	list, _ := v.([]any)
	for _, one := range list {
		if rev, ok := one.(string); ok {
			out = append(out, rev)
		}
	}
	return out
}

// deleteRevisions deletes conflicting revisions after a save. The next save retries failures.
func (s *Store) deleteRevisions(ctx context.Context, id disdel.JobID, apart []string) {
	for _, rev := range apart {
		if _, err := s.db.Delete(ctx, string(id), rev); err != nil {
			s.log.WithError(err).WithField("job", id).Debug("a conflicting revision was not deleted")
		}
	}
}

// mostAdvanced returns the revision with the most progress: the shown one or a conflicting one. It skips unreadable
// revisions.
func (s *Store) mostAdvanced(ctx context.Context, shown disdel.Record, raw json.RawMessage) disdel.Record {
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
		if r, err := decode(other); err == nil && compareProgress(&r, &shown) > 0 {
			shown = r
		}
	}
	return shown
}

// compareProgress compares the progress of two revisions of one job's record.
func compareProgress(a, b *disdel.Record) int {
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

// Servers that store numbers like JavaScript round integers above 2^53, for example PouchDB's. A rounded seed is
// another seed, and one above 2^63 cannot be read. So a document stores such an integer as an object with one field,
// whose value is the integer's text. Documents of earlier versions have plain numbers.

// integerField is the field of an object that stands for an integer.
const integerField = "$integer"

var storedInteger = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\s*"\$integer"\s*:\s*"(-?[0-9]{1,20})"\s*\}`)
})

// encodeRecord returns a record as a server returns it, so that two can be compared. All numbers in it are exact as
// float64.
func encodeRecord(r *disdel.Record) (map[string]any, error) {
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
		if out[name], err = encodeValue(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// encodeValue replaces the integers in a JSON value that are not exact as float64.
func encodeValue(v any) (out any, err error) {
	switch x := v.(type) {
	case map[string]any:
		for name := range x {
			if x[name], err = encodeValue(x[name]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range x {
			if x[i], err = encodeValue(x[i]); err != nil {
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

// rounded tells whether a number is an integer that a float64 would print differently.
func rounded(text string, f float64) bool {
	const exact = 1 << 53 // every integer up to it is a float64
	if -exact < f && f < exact {
		return false
	}
	for _, c := range text {
		if c != '-' && (c < '0' || c > '9') {
			return false // not an integer
		}
	}
	return strconv.FormatFloat(f, 'f', -1, 64) != text
}

// restoreIntegers replaces the objects that stand for integers by numbers. Quotes inside JSON strings are escaped, so
// the pattern finds only objects.
func restoreIntegers(document json.RawMessage) json.RawMessage {
	if !bytes.Contains(document, []byte(integerField)) {
		return document
	}
	return storedInteger().ReplaceAll(document, []byte("$1"))
}

// SizeCache keeps the sizes of records as JSON, so that a record is read once for each of its revisions. Its zero value
// is ready. It is safe for concurrent use.
type SizeCache struct {
	mu    sync.Mutex
	sizes map[Revision]disdel.Bytes // guarded by mu
}

// Total returns the size of all records that s shows. It returns the errors of Store.List.
func (c *SizeCache) Total(ctx context.Context, s *Store) (all disdel.Bytes, err error) {
	marks, err := s.Revisions(ctx, mostRecords)
	if err != nil {
		return 0, err
	}
	var missing []string
	c.mu.Lock()
	for _, m := range marks {
		size, ok := c.sizes[m]
		if all += size; !ok {
			missing = append(missing, string(m.ID))
		}
	}
	c.mu.Unlock()
	for page := range slices.Chunk(missing, cachePage) {
		documents, err := s.byIDs(ctx, page)
		if err != nil {
			return 0, err
		}
		all += c.put(marks, documents)
	}
	return all, nil
}

// put keeps the sizes of documents, and returns their sum.
func (c *SizeCache) put(marks []Revision, documents map[string]json.RawMessage) (sum disdel.Bytes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sizes == nil || len(c.sizes) > mostSizes {
		c.sizes = map[Revision]disdel.Bytes{}
	}
	for _, m := range marks {
		if raw, ok := documents[string(m.ID)]; ok {
			c.sizes[m] = disdel.Bytes(len(raw))
			sum += disdel.Bytes(len(raw))
		}
	}
	return sum
}

// Bounds of a SizeCache: the sizes that are kept, older revisions among them, and the records that count.
const (
	mostSizes   = 100_000
	mostRecords = 1 << 30
)
