package history

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/disdel/disdel"
)

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
