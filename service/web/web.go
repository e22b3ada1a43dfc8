// Package web serves the pages of a server for a browser: the list of jobs, a job, comparisons of jobs, models, data
// sets, the pool, and what admins look after.
//
// The server renders the pages, and they work without a script. The script only loads a page again after an event, and
// replaces what has changed, so that scrolling, filters and marks stay. The content security policy allows only the
// page's own style and script.
//
// A user signs in with a token of the API. The cookie of a session is sent only to these pages, and no script can read
// it. Every request checks the token of its session, so that a revoked token opens nothing. A tenant sees what its own
// Service shows.
package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

// Config configures the pages.
type Config struct {
	// Sign returns the Service and the role of a token. It returns Denied for an unknown one. It is called for every
	// request of a session, also for signing out.
	Sign func(ctx context.Context, token string) (*service.Service, tenant.Role, error)

	// Hold reserves memory for a page until free is called. For a page with live events, end is called once the token
	// is revoked; end is nil for other pages. Hold returns Unavailable if there is no memory. nil: nothing is reserved.
	Hold func(ctx context.Context, own *service.Service, token string, end func()) (free func(), err error)

	// Watch is Service.Watch with memory reserved until free is called. It also returns Unavailable if there is no
	// memory. nil: Service.Watch.
	Watch func(ctx context.Context, own *service.Service, job string) (run *service.Run, free func(), err error)

	// Read reads a job file that a user sends. It refuses what the server does not run. nil: it refuses only faults.
	Read func(text string) (service.Request, error)

	// Started is called for each job that a page has started. nil: nothing is called.
	Started func(ctx context.Context, job disdel.JobID)

	// Enter is a key that signs in once, without a token, for a page that its own program opens. "": there is none.
	Enter string
	// Token is the token of a session that Enter begins.
	Token string

	Drains context.Context // what a page waits for ends with it; nil: never
}

// Root is the path of the pages.
const Root = "/ui/"

// Enter is the path whose query has the key that signs in once, see Config.
const Enter = Root + "enter"

// policy is the content security policy: everything comes from this server, and the page has no inline script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Handler serves the pages below Root. The caller refuses requests of other sites and for other hosts.
func Handler(cfg Config) http.Handler {
	if cfg.Drains == nil {
		cfg.Drains = context.Background()
	}
	s := newSite(cfg)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ui/app.js", asset("text/javascript; charset=utf-8", script))
	mux.HandleFunc("GET /ui/icon.svg", asset("image/svg+xml", icon))
	mux.HandleFunc("GET /ui/style.css", asset("text/css; charset=utf-8", style()))
	mux.HandleFunc("GET /ui/login", s.loginPage)
	mux.HandleFunc("POST /ui/login", s.login)
	mux.HandleFunc("GET "+Enter, s.enter)
	mux.HandleFunc("POST /ui/logout", s.logout)
	for pattern, p := range map[string]page{
		"GET /ui/{$}":                     {role: tenant.RoleRead, show: homePage},
		"GET /ui/jobs":                    {role: tenant.RoleRead, show: jobsPage},
		"GET /ui/jobs/{job}":              {role: tenant.RoleRead, show: jobPage},
		"GET /ui/jobs/{job}/files/{file}": {role: tenant.RoleRead, show: jobFile},
		"POST /ui/jobs/{job}/cancel":      {role: tenant.RoleSubmit, show: ask(disdel.StatusCanceled)},
		"POST /ui/jobs/{job}/pause":       {role: tenant.RoleSubmit, show: ask(disdel.StatusPaused)},
		"POST /ui/jobs/{job}/resume":      {role: tenant.RoleSubmit, show: resumeJob},
		"GET /ui/submit":                  {role: tenant.RoleSubmit, show: submitPage},
		"POST /ui/submit":                 {role: tenant.RoleSubmit, show: submitJob},
		"POST /ui/quickstart":             {role: tenant.RoleSubmit, show: quickstart},
		"GET /ui/schema":                  {role: tenant.RoleSubmit, show: jobSchema},
		"POST /ui/check":                  {role: tenant.RoleSubmit, show: checkForm},
		"GET /ui/compare":                 {role: tenant.RoleRead, show: comparePage},
		"GET /ui/models":                  {role: tenant.RoleRead, show: modelsPage},
		"GET /ui/models/{model}":          {role: tenant.RoleRead, show: modelPage},
		"POST /ui/models/{model}":         {role: tenant.RoleSubmit, show: tryModel},
		"POST /ui/models/{model}/tag":     {role: tenant.RoleSubmit, show: promoteModel},
		"GET /ui/models/{model}/onnx":     {role: tenant.RoleRead, show: modelONNX},
		"GET /ui/datasets":                {role: tenant.RoleRead, show: datasetsPage},
		"POST /ui/datasets":               {role: tenant.RoleSubmit, show: uploadTable},
		"GET /ui/pool":                    {role: tenant.RoleRead, show: poolPage},
		"GET /ui/admin":                   {role: tenant.RoleAdmin, show: adminPage},
		"GET /ui/live/jobs":               {role: tenant.RoleRead, show: liveJobs, lasts: true},
		"GET /ui/live/jobs/{job}":         {role: tenant.RoleRead, show: liveJob, lasts: true},
		"GET " + Root + "{anything...}":   {role: tenant.RoleRead, show: nowhere},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, p) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// page is a route of the pages.
type page struct {
	role  tenant.Role
	show  func(v *visit) error
	lasts bool // it gets events until it is closed
}

// site is the pages of a server.
type site struct {
	Config
	sessions *sessions
	boards   boards
	rows     *history.RecordCache[row]                // of lists of jobs
	parts    *history.RecordCache[report.ComparedJob] // of comparisons
}

// Sizes of the caches: a row takes about 2 kB, the curves of a long job 60 kB.
const (
	mostRows  = 20_000
	mostParts = 500
)

func newSite(cfg Config) *site {
	if cfg.Watch == nil {
		cfg.Watch = func(ctx context.Context, own *service.Service, job string) (*service.Run, func(), error) {
			run, err := own.Watch(ctx, job)
			return run, func() {}, err
		}
	}
	if cfg.Read == nil {
		cfg.Read = readJob
	}
	s := &site{
		Config: cfg, sessions: newSessions(cfg.Enter), rows: history.NewRecordCache(mostRows, rowOf),
		parts: history.NewRecordCache(mostParts,
			func(r *disdel.Record) report.ComparedJob { return report.ComparedJobOf(r).Thin() }),
	}
	s.boards = boards{all: map[*service.Service]*board{}, rows: s.rows, parts: s.parts}
	return s
}

// visit is one request of a signed-in user.
type visit struct {
	*http.Request
	w    http.ResponseWriter
	site *site
	s    *service.Service
	role tenant.Role
}

// serve answers a request of a signed-in user, and redirects others to the page for signing in.
func (s *site) serve(w http.ResponseWriter, r *http.Request, p page) {
	token, ok := s.sessions.token(r)
	if !ok {
		s.away(w, r)
		return
	}
	own, role, err := s.Sign(r.Context(), token)
	if disdel.KindOf(err) == disdel.Denied {
		s.sessions.end(w, r)
		s.away(w, r)
		return
	}
	v := &visit{Request: r, w: w, site: s, s: own, role: role}
	if err == nil && !role.Allows(p.role) {
		err = &disdel.Error{
			Kind: disdel.Denied, Op: "sign in", Msg: "a token of the role " + string(role) + " does not allow this",
			Hint: "sign in with a token of the role " + string(p.role) + ", or ask whoever runs the server for one",
		}
	}
	if err == nil {
		err = v.held(token, p)
	}
	if err != nil {
		v.fail(err)
	}
}

// held shows a page if there is memory for it.
func (v *visit) held(token string, p page) error {
	if v.site.Hold == nil {
		return p.show(v)
	}
	var end func()
	if p.lasts {
		ctx, stop := context.WithCancel(v.Context())
		defer stop()
		v.Request, end = v.WithContext(ctx), stop
	}
	free, err := v.site.Hold(v.Context(), v.s, token, end)
	if err != nil {
		return err
	}
	defer free()
	return p.show(v)
}

// away redirects to the page for signing in, and tells a script to do so.
func (s *site) away(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Sec-Fetch-Dest") == "empty" || r.Header.Get("Accept") == "text/event-stream" {
		http.Error(w, "signed out", http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, Root+"login", http.StatusSeeOther)
}

func asset(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Write([]byte(text)) //nolint:errcheck // the browser went away
	}
}

func nowhere(v *visit) error {
	return &disdel.Error{Kind: disdel.NotFound, Op: "find page", Msg: "there is no such page"}
}

// mostForm bounds the length of a form.
const mostForm = 64 << 10

// ask asks for a job to be paused or canceled, and shows its page again.
func ask(to disdel.Status) func(v *visit) error {
	return func(v *visit) error {
		job := v.PathValue("job")
		if err := v.s.RequestStop(v.Context(), job, to, "asked for on the page"); err != nil {
			return err
		}
		outcome := "pause"
		if to == disdel.StatusCanceled {
			outcome = "cancel"
		}
		v.done(outcome, jobAddress(disdel.JobID(job)))
		return nil
	}
}

// statuses are the HTTP statuses of the kinds of errors; any other kind is an internal error.
var statuses = map[disdel.Kind]int{
	disdel.Invalid: http.StatusBadRequest, disdel.NotFound: http.StatusNotFound, disdel.Denied: http.StatusForbidden,
	disdel.Conflict: http.StatusConflict, disdel.Unavailable: http.StatusServiceUnavailable,
}

// fail shows an error.
func (v *visit) fail(err error) {
	if errors.Is(err, context.Canceled) && v.Context().Err() != nil {
		return // the browser went away
	}
	status, known := statuses[disdel.KindOf(err)]
	if !known {
		status = http.StatusInternalServerError
	}
	title := "Not shown"
	if v.Method == http.MethodPost {
		title = "Not done"
	}
	v.write(status, "failure", view{Title: title, Body: disdel.AsError(err)})
}

// slow is how long a browser may take to read a part of a stream.
const slow = 20 * time.Second
