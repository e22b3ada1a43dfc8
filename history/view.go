package history

import (
	"context"
	_ "embed" // the view's map
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-kivik/kivik/v4"
)

// viewDesign is the design document that the view is in. It changes its name with it, as design does, and is made by
// the first query that wants it.
const (
	viewDesign = "disdel-view"
	viewName   = "records"
)

// viewMap makes the rows. All are of one view: PouchDB evaluates a document anew for each that there is.
//
//go:embed view.js
var viewMap string

// viewDocument is the design document.
func viewDocument() map[string]any {
	return map[string]any{
		"language": "javascript", "views": map[string]any{viewName: map[string]string{"map": viewMap}},
	}
}

// view is what is known of a server's view. Where it cannot be asked, selectors find the same records, only later: the
// embedded history has none, a user may be allowed none, and one that is new to a large history is built first.
type view struct {
	none     atomic.Bool
	resting  atomic.Int64  // Unix time in ms until which it is not asked
	patience time.Duration // that a query has with one that does not answer
}

const (
	viewPatience = 2 * time.Second
	viewRest     = 10 * time.Second
)

// errBuilding ends a query that the server answers when it has built the view.
var errBuilding = errors.New("the view is being built")

// viewRows is the rows of a view before an id, newest first, and what ends the query; false where the view cannot be
// asked now.
func (s *Store) viewRows(ctx context.Context, q search, before string, limit int) (*kivik.ResultSet, func(), bool) {
	if q.key == nil || s.view.none.Load() || time.Now().UnixMilli() < s.view.resting.Load() {
		return nil, nil, false
	}
	for made := false; ; made = true {
		rows, end, err := s.askView(ctx, q, before, limit)
		if err == nil {
			return rows, end, true
		}
		end()
		switch status := kivik.HTTPStatus(err); {
		case status == http.StatusNotFound && !made && s.makeView(ctx):
			continue
		case status >= 400 && status < 500 && ctx.Err() == nil:
			s.view.none.Store(true)
		default: // being built, or out of order; the selector's query says which
			s.view.resting.Store(time.Now().Add(viewRest).UnixMilli())
		}
		s.log.WithError(err).Debug("the history's view is not asked, its queries take longer")
		return nil, nil, false
	}
}

// askView asks for rows, and does not wait for a view that is being built: the server continues with that by itself.
func (s *Store) askView(ctx context.Context, q search, before string, limit int) (*kivik.ResultSet, func(), error) {
	ctx, stop := context.WithCancelCause(ctx)
	late := time.AfterFunc(s.view.patience, func() { stop(errBuilding) })
	rows := s.db.Query(ctx, viewDesign, viewName, kivik.Params(map[string]any{
		"startkey": slices.Concat(q.key, []any{before}), "endkey": slices.Concat(q.key, []any{prefix}),
		"descending": true, "limit": limit,
	}))
	err := rows.Err()
	if !late.Stop() {
		err = errBuilding
	}
	return rows, func() {
		rows.Close() //nolint:errcheck // what it had to say has been said
		stop(nil)
	}, err
}

// makeView writes the design document; false where that is not allowed, or not known there.
func (s *Store) makeView(ctx context.Context) bool {
	_, err := s.db.Put(ctx, "_design/"+viewDesign, viewDocument())
	return err == nil || kivik.HTTPStatus(err) == http.StatusConflict // another process was faster
}
