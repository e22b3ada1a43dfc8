package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/go-kivik/kivik/v4"
	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
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
