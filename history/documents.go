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

// Note is a small document beside the records that several processes share: who serves, what a pool has granted, which
// key means which job, who may come in. Whoever writes one names the state that he read, so that of two who write at
// once only one succeeds.
type Note struct {
	Kind  string // one of the kinds below
	Name  string // among those of its kind: small letters, digits, dots and dashes
	Value json.RawMessage

	revision string // of the document; "": there is none yet
}

// The kinds of notes. They are the beginnings of documents' ids, where records have "job" and leases "lease".
const (
	NoteSession = "session" // a process that owns jobs, for as long as it is renewed
	NotePool    = "pool"    // who waits for a pool's room, and who has some
	NoteKey     = "key"     // an idempotency key, and the job that it means
	NoteTenant  = "tenant"  // who may come in, and with which tokens
	NoteRemark  = "remark"  // what people say of a job
	NoteHistory = "history" // what the history says of itself
)

var noteName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,127}$`)
})

type noteDocument struct {
	Revision string          `json:"_rev,omitempty"`
	Value    json.RawMessage `json:"value"`
}

// id is the document's, Invalid for a name that is none.
func (n *Note) id() (string, error) {
	if !noteName().MatchString(n.Name) {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "name note", Msg: fmt.Sprintf("%.80q is no name", n.Name)}
	}
	return n.Kind + "-" + n.Name, nil
}

// Note reads a note. It returns NotFound, and a note that can be written all the same.
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

// WriteNote writes the next state of a note: that of one that was read, or a new one. It returns Conflict where
// somebody else wrote meanwhile, and the note to continue with.
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

// DeleteNote takes a note away, in the state that was read. One that is not there any more is away; it returns Conflict
// where somebody else wrote meanwhile.
func (s *Store) DeleteNote(ctx context.Context, n Note) error {
	id, err := n.id()
	if err != nil {
		return err
	}
	if _, err = s.db.Delete(ctx, id, n.revision); err == nil {
		return nil
	}
	if _, gone := s.Note(ctx, n.Kind, n.Name); disdel.KindOf(gone) == disdel.NotFound { // some call that a conflict
		return nil
	}
	return wrap(err, "delete "+n.Kind, n.Name)
}

// Notes is all of a kind, by name.
func (s *Store) Notes(ctx context.Context, kind string) (out []Note, err error) {
	err = s.beside(ctx, kind+"-", func(id string, rows *kivik.ResultSet) error {
		var d noteDocument
		if err := rows.ScanDoc(&d); err != nil {
			return err
		}
		out = append(out, Note{Kind: kind, Name: strings.TrimPrefix(id, kind+"-"), Value: d.Value, revision: d.Revision})
		return nil
	})
	return out, err
}

// Identity is a text that no other history has, whoever asks and under whatever address: two machines that each have a
// CouchDB of their own may both call it localhost. It is made when it is first asked for.
func (s *Store) Identity(ctx context.Context) (id string, err error) {
	n, err := s.Note(ctx, NoteHistory, "identity")
	if disdel.KindOf(err) == disdel.NotFound {
		n.Value, _ = json.Marshal(ulid.Make().String()) // a text is never refused
		if n, err = s.WriteNote(ctx, n); disdel.KindOf(err) == disdel.Conflict {
			n, err = s.Note(ctx, n.Kind, n.Name) // somebody else has asked first
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

// besidePage is how many documents beside the records are read at once.
const besidePage = 500

// beside calls f with every document whose id begins with a prefix, in the order of their ids.
func (s *Store) beside(ctx context.Context, prefix string, f func(id string, rows *kivik.ResultSet) error) error {
	for from, more := prefix, true; more; {
		rows := s.db.AllDocs(ctx, kivik.Params(map[string]any{
			"startkey": from, "endkey": prefix + "\ufff0", "include_docs": true, "limit": besidePage,
		}))
		n := 0
		for ; rows.Next(); n++ {
			id, err := rows.ID()
			if err == nil && id != from { // a page begins with the one that the page before it ended with
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
		more = n == besidePage
	}
	return nil
}

// Owner is who runs a job.
type Owner struct {
	process.Mark
	Host  string `json:"host,omitempty"` // for a person: names of machines are not unique
	Token string `json:"token"`          // one process may run jobs for several: each has its own
}

// Lease says who runs a job and until when that is to be believed. It lies beside the job's record, as a document of
// its own, so that whoever saves the record need not know of it.
type Lease struct {
	Job   disdel.JobID
	Owner Owner
	Data  string // blob URL of the data sets that the job reads from

	// Place is the addresses that the owner runs jobs with, by the flags of the command line, without passwords. nil: not
	// known, as in leases of earlier versions.
	Place   []disdel.Option
	Expires time.Time // by the owner's clock
	Wish    *Wish     // what somebody else wants its owner to do; nil: nothing

	revision string // of the document: whoever writes has to name the one that he read
}

// Wish is what somebody asks of whoever runs a job.
type Wish struct {
	To    disdel.Status `json:"to"` // what the job is to become: paused or canceled
	Cause string        `json:"cause"`
}

// leasePrefix keeps leases apart from records, whose ids begin with "job-".
const leasePrefix = "lease-"

type leaseDocument struct {
	Revision string `json:"_rev,omitempty"`
	Owner    Owner  `json:"owner"`
	Data     string `json:"data,omitempty"`

	Place   []disdel.Option `json:"place,omitzero"`
	Expires time.Time       `json:"expires"`
	Wish    *Wish           `json:"wish,omitempty"`
}

// Lease reads who runs a job. It returns NotFound where nobody does, or where that is not known.
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
		Job: job, Owner: d.Owner, Data: d.Data, Place: d.Place, Expires: d.Expires, Wish: d.Wish, revision: d.Revision,
	}
}

// Take writes a lease: a new one where l was made by the caller, the next state of one that was read or taken before.
// It returns Conflict where somebody else wrote meanwhile, and the lease to continue with.
func (s *Store) Take(ctx context.Context, l Lease) (Lease, error) {
	if err := checkLease(l.Job); err != nil {
		return l, err
	}
	d := leaseDocument{l.revision, l.Owner, l.Data, l.Place, l.Expires, l.Wish}
	revision, err := s.db.Put(ctx, leasePrefix+string(l.Job), d)
	if err != nil {
		return l, wrap(err, "take lease", string(l.Job))
	}
	l.revision = revision
	return l, nil
}

// Release gives a lease back. One that is not there any more is released; it returns Conflict where somebody else has
// it.
func (s *Store) Release(ctx context.Context, l Lease) error {
	_, err := s.db.Delete(ctx, leasePrefix+string(l.Job), l.revision)
	if err == nil || kivik.HTTPStatus(err) == http.StatusNotFound {
		return nil
	}
	if _, gone := s.Lease(ctx, l.Job); disdel.KindOf(gone) == disdel.NotFound { // some call that a conflict
		return nil
	}
	return wrap(err, "release lease", string(l.Job))
}

func checkLease(job disdel.JobID) error {
	if !job.Valid() {
		return &disdel.Error{Kind: disdel.Invalid, Op: "take lease", Msg: fmt.Sprintf("%.80q is no job's id", job)}
	}
	return nil
}

// Leases is all that there are, those that have expired too.
func (s *Store) Leases(ctx context.Context) (out []Lease, err error) {
	err = s.beside(ctx, leasePrefix, func(id string, rows *kivik.ResultSet) error {
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

// Remark is what people say of a job. It is apart from the record, which is its owner's alone while the job runs.
type Remark struct {
	Tags []string `json:"tags,omitempty"` // by the alphabet, each once
	Text string   `json:"note,omitempty"`
}

// remarkDocument is a remark with whose job it is of.
type remarkDocument struct {
	Tenant string `json:"tenant,omitempty"`
	Remark
}

// What a remark may have.
const (
	mostTags   = 50
	mostRemark = 4000 // characters
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
			return bad("%.80q is no tag", tag)
		}
	}
	switch {
	case len(r.Tags) > mostTags:
		return bad("%d tags, and %d are the most", len(r.Tags), mostTags)
	case utf8.RuneCountInString(r.Text) > mostRemark || !utf8.ValidString(r.Text):
		return bad("a note has %d characters at most", mostRemark)
	}
	return nil
}

// SetRemark says anew what there is to say of a job; nothing takes it away. It returns NotFound for a job that is not
// there, and Invalid for words that are no tags.
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

// Remarks is all that was said of the jobs that this Store shows.
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

// unremark takes away what was said of a job that is no more.
func (s *Store) unremark(ctx context.Context, id disdel.JobID) error {
	n, err := s.Note(ctx, NoteRemark, string(id))
	if disdel.KindOf(err) == disdel.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return s.DeleteNote(ctx, n)
}
