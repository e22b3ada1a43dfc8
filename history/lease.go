package history

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-kivik/kivik/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/process"
)

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
