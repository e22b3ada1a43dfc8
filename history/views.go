package history

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-kivik/kivik/v4"
)

// viewsDesign is the design document that the views are in. It changes its name with them, as design does, and is made
// by the first query that wants it.
const viewsDesign = "disdel-views"

// The views. Rows of kinds have what a plan learns from a record, those of lists what a list chooses by; the keys of
// both end with a record's id, so that the rows of one kind, or of one condition, come in the order of time.
const (
	kindsView = "kinds"
	listsView = "lists"
)

//go:embed views/kinds.js views/lists.js
var viewFiles embed.FS

// viewsDocument is the design document.
func viewsDocument() (map[string]any, error) {
	views := map[string]any{}
	for _, name := range []string{kindsView, listsView} {
		text, err := viewFiles.ReadFile("views/" + name + ".js")
		if err != nil {
			return nil, err
		}
		views[name] = map[string]string{"map": string(text)}
	}
	return map[string]any{"language": "javascript", "views": views}, nil
}

// views is what is known of a server's views. Where they cannot be asked, selectors find the same records, only later:
// the embedded history has none, a user may be allowed none, and one that is new to a large history is built first.
type views struct {
	none     atomic.Bool
	resting  atomic.Int64  // Unix time in ms until which they are not asked
	patience time.Duration // that a query has with a view that does not answer
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
	if q.view == "" || s.views.none.Load() || time.Now().UnixMilli() < s.views.resting.Load() {
		return nil, nil, false
	}
	for made := false; ; made = true {
		rows, end, err := s.askView(ctx, q, before, limit)
		if err == nil {
			return rows, end, true
		}
		end()
		switch status := kivik.HTTPStatus(err); {
		case status == http.StatusNotFound && !made && s.makeViews(ctx):
			continue
		case status >= 400 && status < 500 && ctx.Err() == nil:
			s.views.none.Store(true)
		default: // being built, or out of order; the selector's query says which
			s.views.resting.Store(time.Now().Add(viewRest).UnixMilli())
		}
		s.log.WithError(err).Debug("the history's views are not asked, its queries take longer")
		return nil, nil, false
	}
}

// askView asks for rows, and does not wait for a view that is being built: the server goes on with that by itself.
func (s *Store) askView(ctx context.Context, q search, before string, limit int) (*kivik.ResultSet, func(), error) {
	ctx, stop := context.WithCancelCause(ctx)
	late := time.AfterFunc(s.views.patience, func() { stop(errBuilding) })
	rows := s.db.Query(ctx, viewsDesign, q.view, kivik.Params(map[string]any{
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

// makeViews writes the design document; false where that is not allowed, or not known there.
func (s *Store) makeViews(ctx context.Context) bool {
	doc, err := viewsDocument()
	if err == nil {
		_, err = s.db.Put(ctx, "_design/"+viewsDesign, doc)
	}
	return err == nil || kivik.HTTPStatus(err) == http.StatusConflict // another process was faster
}
