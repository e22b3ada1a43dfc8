package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-kivik/kivik/v4"

	"github.com/disdel/disdel"
)

// Resolve finds the job that a person means: an id, the start of one, "@last", or a job's name (its newest). It returns
// NotFound, and Conflict with the candidates for a start that several ids share. A record that cannot be read is found
// by its id.
func (s *Store) Resolve(ctx context.Context, ref string) (disdel.JobID, error) {
	if id := disdel.JobID(ref); id.Valid() {
		_, err := s.Get(ctx, id)
		if err == nil || disdel.AsError(err).Code == disdel.CodeUnreadable {
			return id, nil
		} else if disdel.KindOf(err) != disdel.NotFound {
			return "", err
		}
	}
	if id, err := s.newest(ctx, ref); id != "" || err != nil {
		return id, err
	}
	list, err := s.startingWith(ctx, ref)
	switch {
	case err != nil:
		return "", err
	case len(list) == 1:
		return disdel.JobID(list[0]), nil
	case len(list) > 1:
		return "", &disdel.Error{
			Kind: disdel.Conflict, Op: "find job", Msg: fmt.Sprintf("%s jobs start with %q", countText(len(list)), ref),
			Hint: "one of: " + strings.Join(list[:min(5, len(list))], ", "),
		}
	default:
		return "", &disdel.Error{
			Kind: disdel.NotFound, Code: disdel.CodeNoJob, Op: "find job", Msg: fmt.Sprintf("there is no job %q", ref),
			Hint: "disdel history lists them; disdel quickstart runs a first one",
		}
	}
}

// maxCandidates bounds how many ids that start alike are looked at.
const maxCandidates = 1000

func countText(n int) string {
	if n >= maxCandidates {
		return fmt.Sprintf("%d and more", maxCandidates)
	}
	return fmt.Sprint(n)
}

// newest is the newest job of all, or that of a name.
func (s *Store) newest(ctx context.Context, ref string) (id disdel.JobID, err error) {
	named := search{selector: map[string]any{nameField: equal(ref)}, by: order{nameField}}
	switch ref {
	case "":
		return "", nil
	case "@last":
		named = s.searchFor(&Query{})
	}
	err = s.each(ctx, named, 1, func(r disdel.Record, _ int) int {
		id = r.ID
		return 0
	})
	return id, err
}

// startingWith is the ids that start with a text, "job-" left out or not, in order.
func (s *Store) startingWith(ctx context.Context, ref string) ([]string, error) {
	if ref == "" || len(ref) > len(prefix)+26 {
		return nil, nil
	}
	if !strings.HasPrefix(ref, prefix) {
		if strings.HasPrefix(prefix, ref) {
			ref = prefix // "j": every job
		} else {
			ref = prefix + ref
		}
	}
	rows := s.db.AllDocs(ctx,
		kivik.Params(map[string]any{"limit": maxCandidates, "startkey": ref, "endkey": ref + "\ufff0"}))
	var out []string
	for rows.Next() {
		id, err := rows.ID()
		if err != nil {
			return nil, errors.Join(wrap(err, "find job", ""), rows.Close())
		}
		if disdel.JobID(id).Valid() {
			out = append(out, id)
		}
	}
	if err := rows.Err(); err != nil || s.tenant == nil {
		return out, wrap(err, "find job", "")
	}
	return slices.DeleteFunc(out, func(id string) bool {
		_, err := s.Get(ctx, disdel.JobID(id))
		return err != nil && disdel.AsError(err).Code != disdel.CodeUnreadable
	}), nil
}
