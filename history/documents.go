package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-kivik/kivik/v4"
	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/process"
)

// Note is a small shared document beside the records: sessions, pool grants, idempotency keys, tenants, remarks. A
// writer names the revision that it read, so of two concurrent writers only one succeeds.
type Note struct {
	Kind  string // one of the constants below
	Name  string // unique in its kind: lower-case letters, digits, dots and dashes
	Value json.RawMessage

	revision string // revision of the document; "": it is new
}

// The kinds of notes, which start their documents' ids. Records start with "job", leases with "lease".
const (
	NoteSession = "session" // a process that owns jobs, while it is renewed
	NotePool    = "pool"    // who waits for a pool's memory, and who has some
	NoteKey     = "key"     // an idempotency key and its job
	NoteTenant  = "tenant"  // a tenant and its tokens
	NoteRemark  = "remark"  // tags and note of a job
	NoteShare   = "share"   // what a tenant shares with others
	NoteHistory = "history" // about the history itself
)

var noteName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,127}$`)
})

type noteDocument struct {
	Revision string          `json:"_rev,omitempty"`
	Value    json.RawMessage `json:"value"`
}

// id is the document's id. It returns Invalid for a bad name.
func (n *Note) id() (string, error) {
	if !noteName().MatchString(n.Name) {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "name note", Msg: fmt.Sprintf("%.80q is no name", n.Name)}
	}
	return n.Kind + "-" + n.Name, nil
}

// Note reads a note. It returns NotFound together with a new note that can be written.
func (s *Store) Note(ctx context.Context, kind, name string) (Note, error) {
	n := Note{Kind: kind, Name: name}
	id, err := n.id()
	if err != nil {
		return n, err
	}
	var d noteDocument
	doc := s.db.Get(ctx, id)
	if err := errors.Join(doc.ScanDoc(&d), doc.Close()); err != nil {
		return n, wrap(err, "read "+kind, "there is no "+kind+" "+name)
	}
	n.Value, n.revision = d.Value, d.Revision
	return n, nil
}

// WriteNote writes a note that was read, or a new one, and returns it with its new revision. It returns Conflict if
// another writer was faster.
func (s *Store) WriteNote(ctx context.Context, n Note) (Note, error) {
	id, err := n.id()
	if err != nil {
		return n, err
	}
	revision, err := s.db.Put(ctx, id, noteDocument{n.revision, n.Value})
	if err != nil {
		return n, wrap(err, "write "+n.Kind, n.Name)
	}
	n.revision = revision
	return n, nil
}

// DeleteNote deletes a note that was read. Deleting a missing note succeeds. It returns Conflict if another writer was
// faster.
func (s *Store) DeleteNote(ctx context.Context, n Note) error {
	id, err := n.id()
	if err != nil {
		return err
	}
	if _, err = s.db.Delete(ctx, id, n.revision); err == nil {
		return nil
	}
	// some servers answer Conflict for a missing document
	if _, gone := s.Note(ctx, n.Kind, n.Name); disdel.KindOf(gone) == disdel.NotFound {
		return nil
	}
	return wrap(err, "delete "+n.Kind, n.Name)
}

// Notes lists all notes of a kind by name.
func (s *Store) Notes(ctx context.Context, kind string) (out []Note, err error) {
	err = s.forEachWithPrefix(ctx, kind+"-", func(id string, rows *kivik.ResultSet) error {
		var d noteDocument
		if err := rows.ScanDoc(&d); err != nil {
			return err
		}
		out = append(out, Note{Kind: kind, Name: strings.TrimPrefix(id, kind+"-"), Value: d.Value, revision: d.Revision})
		return nil
	})
	return out, err
}

// Identity is a unique text of this history, independent of its address: two machines may each call their own CouchDB
// localhost. The first call creates it.
func (s *Store) Identity(ctx context.Context) (id string, err error) {
	n, err := s.Note(ctx, NoteHistory, "identity")
	if disdel.KindOf(err) == disdel.NotFound {
		n.Value, _ = json.Marshal(ulid.Make().String()) // a string is always valid JSON
		if n, err = s.WriteNote(ctx, n); disdel.KindOf(err) == disdel.Conflict {
			n, err = s.Note(ctx, n.Kind, n.Name) // another process created it
		}
	}
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(n.Value, &id); err != nil {
		return "", &disdel.Error{Kind: disdel.Corrupt, Op: "read identity of history", Err: err}
	}
	return id, nil
}

// prefixPage is how many documents one request reads.
const prefixPage = 500

// forEachWithPrefix calls f with every document whose id starts with prefix, in the order of ids.
func (s *Store) forEachWithPrefix(ctx context.Context, prefix string,
	f func(id string, rows *kivik.ResultSet) error,
) error {
	for from, more := prefix, true; more; {
		rows := s.db.AllDocs(ctx, kivik.Params(map[string]any{
			"startkey": from, "endkey": prefix + "\ufff0", "include_docs": true, "limit": prefixPage,
		}))
		n := 0
		for ; rows.Next(); n++ {
			id, err := rows.ID()
			if err == nil && id != from { // a page starts with the last document of the page before
				err = f(id, rows)
			}
			if err != nil {
				return errors.Join(wrap(err, "list "+strings.TrimSuffix(prefix, "-")+"s", ""), rows.Close())
			}
			from = id
		}
		if err := rows.Err(); err != nil {
			return wrap(err, "list "+strings.TrimSuffix(prefix, "-")+"s", "")
		}
		more = n == prefixPage
	}
	return nil
}

// Owner is the process that runs a job.
type Owner struct {
	process.Mark
	Host  string `json:"host,omitempty"` // for people only, because host names are not unique
	Token string `json:"token"`          // distinguishes several services in one process
}

// Lease names the process that runs a job, until it expires. It is a separate document, so that whoever saves the
// record need not know it.
type Lease struct {
	Job   disdel.JobID
	Owner Owner
	Data  string // blob URL of the job's data sets

	// Addresses are the addresses that the owner uses, as flags of the command line without passwords. nil: unknown, as
	// in leases of earlier versions.
	Addresses   []disdel.Option
	Expires     time.Time    // by the owner's clock
	StopRequest *StopRequest // what another process asks the owner to do; nil: nothing

	revision string // revision of the document, which a writer has to name
}

// StopRequest asks the owner of a job to stop it.
type StopRequest struct {
	To    disdel.Status `json:"to"` // the requested status: paused or canceled
	Cause string        `json:"cause"`
}

// leasePrefix separates leases from records, whose ids start with "job-".
const leasePrefix = "lease-"

type leaseDocument struct {
	Revision string `json:"_rev,omitempty"`
	Owner    Owner  `json:"owner"`
	Data     string `json:"data,omitempty"`

	Addresses   []disdel.Option `json:"place,omitzero"`
	Expires     time.Time       `json:"expires"`
	StopRequest *StopRequest    `json:"wish,omitempty"`
}

// Lease reads the lease of a job. It returns NotFound if nobody runs the job.
func (s *Store) Lease(ctx context.Context, job disdel.JobID) (Lease, error) {
	if err := checkLease(job); err != nil {
		return Lease{}, err
	}
	var d leaseDocument
	doc := s.db.Get(ctx, leasePrefix+string(job))
	if err := errors.Join(doc.ScanDoc(&d), doc.Close()); err != nil {
		return Lease{}, wrap(err, "read lease", "nobody runs "+string(job))
	}
	return d.lease(job), nil
}

func (d *leaseDocument) lease(job disdel.JobID) Lease {
	return Lease{
		Job: job, Owner: d.Owner, Data: d.Data, Addresses: d.Addresses, Expires: d.Expires,
		StopRequest: d.StopRequest, revision: d.Revision,
	}
}

// Take writes a new lease, or the next state of one that was read or taken, and returns it with its new revision. It
// returns Conflict if another process was faster.
func (s *Store) Take(ctx context.Context, l Lease) (Lease, error) {
	if err := checkLease(l.Job); err != nil {
		return l, err
	}
	d := leaseDocument{l.revision, l.Owner, l.Data, l.Addresses, l.Expires, l.StopRequest}
	revision, err := s.db.Put(ctx, leasePrefix+string(l.Job), d)
	if err != nil {
		return l, wrap(err, "take lease", string(l.Job))
	}
	l.revision = revision
	return l, nil
}

// Release deletes a lease. Releasing a missing lease succeeds. It returns Conflict if another process has it. Any other
// error leaves open whether the lease still exists.
func (s *Store) Release(ctx context.Context, l Lease) error {
	_, err := s.db.Delete(ctx, leasePrefix+string(l.Job), l.revision)
	switch {
	case err == nil || kivik.HTTPStatus(err) == http.StatusNotFound:
		return nil
	case kivik.HTTPStatus(err) != http.StatusConflict && l.revision != "":
		return wrap(err, "release lease", string(l.Job))
	}
	// some servers answer Conflict for a missing document, and a lease without a revision was never read: only a read
	// tells whether it exists
	switch _, gone := s.Lease(ctx, l.Job); {
	case gone == nil:
		return wrap(err, "release lease", string(l.Job))
	case disdel.KindOf(gone) == disdel.NotFound:
		return nil
	default:
		return gone
	}
}

func checkLease(job disdel.JobID) error {
	if !job.Valid() {
		return &disdel.Error{Kind: disdel.Invalid, Op: "take lease", Msg: fmt.Sprintf("%.80q is no job's id", job)}
	}
	return nil
}

// Leases lists all leases, including expired ones.
func (s *Store) Leases(ctx context.Context) (out []Lease, err error) {
	err = s.forEachWithPrefix(ctx, leasePrefix, func(id string, rows *kivik.ResultSet) error {
		var d leaseDocument
		if err := rows.ScanDoc(&d); err != nil {
			return err
		}
		if job := disdel.JobID(strings.TrimPrefix(id, leasePrefix)); job.Valid() {
			out = append(out, d.lease(job))
		}
		return nil
	})
	return out, err
}

// Remark is a job's tags and note. It is separate from the record, which only the job's owner writes.
type Remark struct {
	Tags []string `json:"tags,omitempty"` // sorted, each once
	Text string   `json:"note,omitempty"`
}

// remarkDocument is a stored remark with the job's tenant.
type remarkDocument struct {
	Tenant string `json:"tenant,omitempty"`
	Remark
}

// Limits of a remark.
const (
	maxTags   = 50
	maxRemark = 4000 // characters
)

var tagForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._=/-]{0,62}$`)
})

func (r *Remark) check() error {
	bad := func(format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "remark on job", Msg: fmt.Sprintf(format, args...),
			Hint: "a tag is a word of letters, digits and . _ = / -",
		}
	}
	for _, tag := range r.Tags {
		if !tagForm().MatchString(tag) {
			return bad("%.80q is not a tag", tag)
		}
	}
	switch {
	case len(r.Tags) > maxTags:
		return bad("%d tags, but at most %d are allowed", len(r.Tags), maxTags)
	case utf8.RuneCountInString(r.Text) > maxRemark || !utf8.ValidString(r.Text):
		return bad("a note has at most %d characters", maxRemark)
	}
	return nil
}

// SetRemark replaces a job's remark; an empty one deletes it. It returns NotFound for an unknown job, and Invalid for
// bad tags.
func (s *Store) SetRemark(ctx context.Context, id disdel.JobID, r Remark) error {
	r.Tags = slices.Compact(slices.Sorted(slices.Values(r.Tags)))
	if err := r.check(); err != nil {
		return err
	}
	rec, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	value, err := json.Marshal(remarkDocument{rec.Tenant, r})
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "remark on job", Job: id, Err: err}
	}
	for range maxConflicts {
		n, found := s.Note(ctx, NoteRemark, string(id))
		if found != nil && disdel.KindOf(found) != disdel.NotFound {
			return found
		}
		switch n.Value = value; {
		case len(r.Tags) > 0 || r.Text != "":
			_, err = s.WriteNote(ctx, n)
		case found == nil:
			err = s.DeleteNote(ctx, n)
		}
		if disdel.KindOf(err) != disdel.Conflict {
			return err
		}
	}
	return err
}

// Remarks returns the remarks of the jobs that this Store shows.
func (s *Store) Remarks(ctx context.Context) (map[disdel.JobID]Remark, error) {
	notes, err := s.Notes(ctx, NoteRemark)
	if err != nil {
		return nil, err
	}
	out := map[disdel.JobID]Remark{}
	for _, n := range notes {
		var d remarkDocument
		if json.Unmarshal(n.Value, &d) == nil && s.sees(&disdel.Record{Tenant: d.Tenant}) {
			out[disdel.JobID(n.Name)] = d.Remark
		}
	}
	return out, nil
}

// deleteRemark deletes the remark of a deleted job.
func (s *Store) deleteRemark(ctx context.Context, id disdel.JobID) error {
	n, err := s.Note(ctx, NoteRemark, string(id))
	if disdel.KindOf(err) == disdel.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return s.DeleteNote(ctx, n)
}
