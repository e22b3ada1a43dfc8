package api

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/exposition"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/web"
)

// Config is what a server works with.
type Config struct {
	Service *service.Service

	// Operator is the token of who runs the server, who sees the jobs of all tenants. "": nobody is.
	Operator string

	// Hosts are the names, without ports, that requests may come for, beside localhost and the loopback addresses: a
	// page of another site cannot have its own name mean this server.
	Hosts []string

	// PerMinute is how many requests a tenant may make in any minute. 0: 6,000.
	PerMinute int

	// MaxBody is how long a request's body may be. 0: 8 MiB.
	MaxBody int64

	// MaxUpload is how long the files of a data set may be together, as they come and unpacked. 0: 256 MiB.
	MaxUpload int64

	// Enter is a key that signs the operator in on the page, once: of who opens it himself. "": there is none.
	Enter string

	Log logrus.FieldLogger // nil: nobody reads it
}

// The defaults of Config, and how long anything may take that no job waits for.
const (
	defaultPerMinute = 6000
	defaultBody      = 8 << 20
	defaultUpload    = 256 << 20
	readWithin       = 30 * time.Second
	uploadWithin     = 10 * time.Minute
	idleFor          = 2 * time.Minute
)

//go:embed openapi.json
var description []byte

// Description is the server's own, in OpenAPI 3.1.
func Description() []byte { return slices.Clone(description) }

// Handler is the server as a handler of net/http.
func Handler(cfg Config) http.Handler { return newServer(context.Background(), cfg).handler() }

type server struct {
	Config
	pace     pace
	requests requests
	drains   context.Context // ends when the server is about to, and takes no more jobs
}

// newServer is one that drains when ctx ends.
func newServer(ctx context.Context, cfg Config) *server {
	cfg.PerMinute, cfg.MaxBody = cmp.Or(cfg.PerMinute, defaultPerMinute), cmp.Or(cfg.MaxBody, defaultBody)
	cfg.MaxUpload = cmp.Or(cfg.MaxUpload, defaultUpload)
	return &server{
		Config: cfg, drains: ctx, pace: pace{most: cfg.PerMinute, seen: map[string]int{}},
		requests: requests{seen: map[answered]int{}, took: map[string]*exposition.Histogram{}},
	}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, q *http.Request) {
			began, seen := time.Now(), &recorder{ResponseWriter: w}
			defer func() { s.requests.add(r.method+" "+r.path, seen.status(), time.Since(began)) }()
			s.serve(seen, q, r)
		})
	}
	mux.Handle(web.Root, web.Handler(web.Config{Sign: s.sign, Enter: s.Enter, Token: s.Operator, Drains: s.drains}))
	mux.Handle("GET /{$}", http.RedirectHandler(web.Root, http.StatusSeeOther))
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		fail(w, &disdel.Error{Kind: disdel.NotFound, Op: "find route", Msg: "there is no " + q.Method + " " + q.URL.Path})
	})
	return s.guard(http.NewCrossOriginProtection().Handler(mux))
}

// guard is what holds for every request.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		if !s.ours(r.Host) {
			failAs(w, http.StatusForbidden, &disdel.Error{
				Kind: disdel.Denied, Op: "find host", Msg: "this server has not the name " + r.Host,
				Hint: "start it with --host-name NAME if it has",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) ours(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback() || slices.Contains(s.Hosts, name)
}

// serve answers one request of a route.
func (s *server) serve(w http.ResponseWriter, r *http.Request, route route) {
	c := &call{w: w, Request: r, server: s, Service: s.Service}
	if route.upload {
		r.Body = http.MaxBytesReader(w, r.Body, s.MaxUpload)
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadWithin)) //nolint:errcheck // there is none then
	} else {
		r.Body = http.MaxBytesReader(w, r.Body, s.MaxBody)
	}
	if route.role != "" {
		if err := s.admit(c, route.role); err != nil {
			return
		}
	}
	status, body, err := route.answer(c)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		failAs(w, http.StatusRequestEntityTooLarge, &disdel.Error{
			Kind: disdel.OverLimit, Op: "read request", Msg: "the body is longer than " + disdel.Bytes(long.Limit).String(),
		})
	case err != nil:
		fail(w, err)
	case status != 0:
		write(w, status, body)
	}
}

var errRefused = errors.New("refused")

// admit finds out who asks, and refuses who may not.
func (s *server) admit(c *call, asked service.Role) error {
	tenant, role, err := s.whose(c.Context(), c.Request)
	switch {
	case disdel.KindOf(err) == disdel.Denied:
		c.w.Header().Set("WWW-Authenticate", "Bearer")
		failAs(c.w, http.StatusUnauthorized, err)
		return errRefused
	case err != nil:
		fail(c.w, err)
		return errRefused
	case !role.Allows(asked):
		failAs(c.w, http.StatusForbidden, &disdel.Error{
			Kind: disdel.Denied, Op: "sign in", Msg: "a token of the role " + string(role) + " does not allow this",
			Hint: "it takes the role " + string(asked),
		})
		return errRefused
	case !s.pace.take(tenant, time.Now()):
		c.w.Header().Set("Retry-After", "60")
		failAs(c.w, http.StatusTooManyRequests, &disdel.Error{
			Kind: disdel.Unavailable, Op: "count requests", Msg: "too many requests in this minute", Hint: "wait a minute",
		})
		return errRefused
	}
	c.operator = tenant == ""
	if !c.operator {
		c.Service = s.Service.Tenant(tenant)
	}
	return nil
}

// whose is the tenant that a request comes from, "" for the operator.
func (s *server) whose(ctx context.Context, r *http.Request) (string, service.Role, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return "", "", &disdel.Error{
			Kind: disdel.Denied, Op: "sign in", Msg: "the request has no bearer token",
			Hint: "send Authorization: Bearer TOKEN; disdel tenant create NAME makes one",
		}
	}
	return s.owner(ctx, token)
}

// owner is the tenant that a token is of, "" for the operator.
func (s *server) owner(ctx context.Context, token string) (string, service.Role, error) {
	if service.SameToken(token, s.Operator) {
		return "", service.RoleAdmin, nil
	}
	return s.Service.Identify(ctx, token)
}

// sign is the service that a token opens on the page.
func (s *server) sign(ctx context.Context, token string) (*service.Service, service.Role, error) {
	tenant, role, err := s.owner(ctx, token)
	switch {
	case err != nil:
		return nil, "", err
	case !s.pace.take(tenant, time.Now()):
		return nil, "", &disdel.Error{
			Kind: disdel.Unavailable, Op: "count requests", Msg: "too many requests in this minute", Hint: "wait a minute",
		}
	case tenant == "":
		return s.Service, role, nil
	default:
		return s.Service.Tenant(tenant), role, nil
	}
}

// pace counts the requests of each tenant in the minute that runs.
type pace struct {
	most int

	mu     sync.Mutex
	minute int64          // guarded by mu
	seen   map[string]int // guarded by mu
}

func (p *pace) take(tenant string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := now.Unix() / 60; m != p.minute {
		p.minute = m
		clear(p.seen)
	}
	p.seen[tenant]++
	return p.seen[tenant] <= p.most
}

// Serve serves at a listener until ctx ends. Then it takes no more jobs, ends what clients only wait for, and lets
// other requests come to their end for as long as drain says.
func Serve(ctx context.Context, l net.Listener, cfg Config, drain time.Duration) error {
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	srv := &http.Server{
		Handler: newServer(ctx, cfg).handler(), ReadHeaderTimeout: readWithin, ReadTimeout: readWithin, IdleTimeout: idleFor,
		MaxHeaderBytes: 1 << 16, BaseContext: func(net.Listener) context.Context { return base },
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limited, done := context.WithTimeout(base, drain)
	defer done()
	if srv.Shutdown(limited) != nil {
		srv.Close() //nolint:errcheck // it has had its time
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// lasting is the time that a client may wait for something: until he goes away, or the server is about to end.
func (c *call) lasting() (context.Context, func()) {
	ctx, stop := context.WithCancel(c.Context())
	unlink := context.AfterFunc(c.server.drains, stop)
	return ctx, func() { unlink(); stop() }
}

// draining returns Unavailable once the server is about to end.
func (c *call) draining() error {
	if c.server.drains.Err() == nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Unavailable, Op: "serve", Msg: "the server is about to end", Hint: "try again in a while",
	}
}
