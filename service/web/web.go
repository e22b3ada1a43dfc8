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
)

// Config is what the pages work with.
type Config struct {
	// Sign is the Service that a token opens, and what it allows. It returns Denied for one that is none. It is called
	// for every request of a session, also for the one that signs out.
	Sign func(ctx context.Context, token string) (*service.Service, service.Role, error)

	// Hold is room for a page of whoever a Service is of, until free is called. Of a page that lasts, which is told what
	// happens, end is called once the token opens nothing any more; end is nil for others. Hold returns Unavailable where
	// there is no room. nil: all pages have room.
	Hold func(ctx context.Context, own *service.Service, token string, end func()) (free func(), err error)

	// Watch looks at a job of a Service, with room for that until free is called. It returns what Service.Watch does, and
	// Unavailable where there is no room. nil: all looks have room.
	Watch func(ctx context.Context, own *service.Service, job string) (run *service.Run, free func(), err error)

	// Enter is a key that signs in once, without a token: of a page that its own program opens. "": there is none.
	Enter string
	// Token is what Enter signs in with.
	Token string

	Drains context.Context // what a page waits for ends with it; nil: never
}

// Root is where the pages are.
const Root = "/ui/"

// Enter is the path whose query has the key that signs in once, see Config.
const Enter = Root + "enter"

// policy is what a browser may do with a page: what comes from this server, and no script in the page itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Handler serves the pages below Root. Requests that other sites make, and those for other hosts, are for who mounts it
// to refuse.
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
		"GET /ui/{$}":                   {role: service.RoleRead, show: toJobs},
		"GET /ui/jobs":                  {role: service.RoleRead, show: jobsPage},
		"GET /ui/jobs/{job}":            {role: service.RoleRead, show: jobPage},
		"POST /ui/jobs/{job}/cancel":    {role: service.RoleSubmit, show: ask(disdel.StatusCanceled)},
		"POST /ui/jobs/{job}/pause":     {role: service.RoleSubmit, show: ask(disdel.StatusPaused)},
		"GET /ui/compare":               {role: service.RoleRead, show: comparePage},
		"GET /ui/models":                {role: service.RoleRead, show: modelsPage},
		"GET /ui/datasets":              {role: service.RoleRead, show: datasetsPage},
		"GET /ui/pool":                  {role: service.RoleRead, show: poolPage},
		"GET /ui/live/jobs":             {role: service.RoleRead, show: liveJobs, lasts: true},
		"GET /ui/live/jobs/{job}":       {role: service.RoleRead, show: liveJob, lasts: true},
		"GET " + Root + "{anything...}": {role: service.RoleRead, show: nowhere},
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

// page is what the site does for a role.
type page struct {
	role  service.Role
	show  func(v *visit) error
	lasts bool // it is told what happens, until it is closed
}

// site is the pages of a server.
type site struct {
	Config
	sessions *sessions
	boards   boards
	rows     *history.RecordCache[row]                // of lists of jobs
	parts    *history.RecordCache[report.ComparedJob] // of comparisons
}

// How much is remembered of records: a row takes about 2 kB, the curves of a long job 60 kB.
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
	s := &site{
		Config: cfg, sessions: newSessions(cfg.Enter), rows: history.NewRecordCache(mostRows, rowOf),
		parts: history.NewRecordCache(mostParts, func(r *disdel.Record) report.ComparedJob { return report.ComparedJobOf(r).Thin() }),
	}
	s.boards = boards{all: map[*service.Service]*board{}, rows: s.rows}
	return s
}

// visit is one request of somebody who is signed in.
type visit struct {
	*http.Request
	w    http.ResponseWriter
	site *site
	s    *service.Service
	role service.Role
}

// serve answers a request of somebody who is signed in, and sends others to where they can.
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
			Kind: disdel.Denied, Op: "sign in", Msg: "your token looks and nothing else", Hint: "it takes the role " +
				string(p.role),
		}
	}
	if err == nil {
		err = v.held(token, p)
	}
	if err != nil {
		v.fail(err)
	}
}

// held shows a page while there is room for it.
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

// away sends somebody to the page for signing in, and tells a script that it has to.
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

func toJobs(v *visit) error {
	http.Redirect(v.w, v.Request, Root+"jobs", http.StatusSeeOther)
	return nil
}

func nowhere(v *visit) error {
	return &disdel.Error{Kind: disdel.NotFound, Op: "find page", Msg: "there is no such page"}
}

// mostForm bounds what is read of a form.
const mostForm = 64 << 10

// ask has a job become something else, and shows it again.
func ask(to disdel.Status) func(v *visit) error {
	return func(v *visit) error {
		job := v.PathValue("job")
		if err := v.s.Ask(v.Context(), job, to, "asked for on the page"); err != nil {
			return err
		}
		http.Redirect(v.w, v.Request, jobAddress(disdel.JobID(job)), http.StatusSeeOther)
		return nil
	}
}

// statuses are the kinds of errors as HTTP has them; others are the server's own.
var statuses = map[disdel.Kind]int{
	disdel.Invalid: http.StatusBadRequest, disdel.NotFound: http.StatusNotFound, disdel.Denied: http.StatusForbidden,
	disdel.Conflict: http.StatusConflict, disdel.Unavailable: http.StatusServiceUnavailable,
}

// fail shows what went wrong.
func (v *visit) fail(err error) {
	if errors.Is(err, context.Canceled) && v.Context().Err() != nil {
		return // nobody is there any more
	}
	status, known := statuses[disdel.KindOf(err)]
	if !known {
		status = http.StatusInternalServerError
	}
	v.write(status, "failure", view{Title: "Not shown", Body: disdel.AsError(err)})
}

// slow is how long a browser may take to read a part of a stream.
const slow = 20 * time.Second
