package api

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/promtext"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
	"github.com/disdel/disdel/service/web"
)

// Config configures a server.
type Config struct {
	Service *service.Service

	// Operator is the token of the operator, who sees the jobs of all tenants. "": there is no operator.
	Operator string

	// Hosts are the host names, without ports, that requests may have besides localhost and the loopback addresses. A
	// page of another site cannot reach this server under its own name.
	Hosts []string

	// PerMinute bounds the requests of a tenant in a minute. 0: 6,000.
	PerMinute int

	// MaxBody bounds the body of a request, in bytes. 0: 8 MiB.
	MaxBody int64

	// MaxUpload bounds the files of a data set together, in bytes, packed and unpacked. 0: 256 MiB.
	MaxUpload int64

	// Share bounds the memory of the requests of one tenant at once. 0: 128 MiB.
	Share disdel.Bytes

	// Enter is a key that signs the operator in on the page, once, for a browser that the program opens. "": there is
	// none.
	Enter string

	// SlowSignIn bounds the delay of the answer to a wrong token. Each failure from an address doubles it. 0: no delay.
	SlowSignIn time.Duration

	Audit *tenant.Audit      // nil: none is written
	Log   logrus.FieldLogger // nil: nothing is logged
}

// The defaults of Config, and time limits of requests.
const (
	defaultPerMinute = 6000
	defaultBody      = 8 << 20
	defaultUpload    = 256 << 20
	defaultShare     = 128 << 20
	readWithin       = 30 * time.Second
	uploadWithin     = 10 * time.Minute
	answerWithin     = time.Minute
	idleFor          = 2 * time.Minute
)

//go:embed openapi.json
var description []byte

// Description is the description of the API in OpenAPI 3.1.
func Description() []byte { return slices.Clone(description) }

// Handler returns the server as a handler of net/http.
func Handler(cfg Config) http.Handler { return newServer(context.Background(), cfg).handler() }

type server struct {
	Config
	pace     pace
	requests requests
	budget   *budget
	tokens   *tokens
	signIns  signIns
	failures failures
	refusals refusals
	drains   context.Context // ends when the server is about to, and takes no more jobs
}

// newServer returns a server that drains when ctx ends.
func newServer(ctx context.Context, cfg Config) *server {
	cfg.PerMinute, cfg.MaxBody = cmp.Or(cfg.PerMinute, defaultPerMinute), cmp.Or(cfg.MaxBody, defaultBody)
	cfg.MaxUpload = cmp.Or(cfg.MaxUpload, defaultUpload)
	return &server{
		budget: newBudget(int64(cmp.Or(cfg.Share, defaultShare)), cfg.Service),
		tokens: newTokens(cfg.Service.Tenants().Identify),
		Config: cfg, drains: ctx, pace: pace{maximum: cfg.PerMinute, seen: map[string]int{}},
		requests: requests{seen: map[answered]int{}, took: map[string]*promtext.Histogram{}},
	}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, q *http.Request) {
			began, seen := time.Now(), &recorder{ResponseWriter: w}
			c := &call{w: seen, Request: q, server: s, Service: s.Service, out: http.NewResponseController(seen)}
			defer func() { s.requests.add(r.method+" "+r.path, seen.status(), time.Since(began)) }()
			s.serve(c, r)
		})
	}
	mux.Handle(web.Root, web.Handler(web.Config{
		Sign: s.sign, Hold: s.hold, Watch: s.watch, Enter: s.Enter, Token: s.Operator, Drains: s.drains,
		Read: fromPage, Started: noteJob,
	}))
	mux.Handle("GET /{$}", http.RedirectHandler(web.Root, http.StatusSeeOther))
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		fail(w, &disdel.Error{Kind: disdel.NotFound, Op: "find route", Msg: "there is no " + q.Method + " " + q.URL.Path})
	})
	return s.audited(mux, s.guard(http.NewCrossOriginProtection().Handler(mux)))
}

// guard checks the Host of every request, and sets the headers of every answer.
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
func (s *server) serve(c *call, route route) {
	w, r := c.w, c.Request
	maximum := min(s.MaxBody, s.budget.longest(route.cost))
	if route.upload {
		maximum = s.MaxUpload
	}
	r.Body = http.MaxBytesReader(w, r.Body, maximum)
	if route.role != "" {
		free, err := s.enter(c, route, maximum)
		if err != nil {
			return
		}
		defer free()
	}
	defer c.free()
	up := &steady{ReadCloser: r.Body, out: c.out, until: time.Now().Add(uploadWithin)}
	if route.upload { // only uploads that may run get more time than other requests
		r.Body = up
		if !c.operator {
			defer s.tokens.join(bearer(r), up.revoke)()
		}
	}
	status, body, err := route.answer(c)
	if !route.cost.lasting {
		c.out.SetWriteDeadline(time.Now().Add(answerWithin)) //nolint:errcheck // there is none then
	}
	var long *http.MaxBytesError
	switch {
	case err != nil && (up.isRevoked() || errors.Is(err, errTokenGone)):
		failAs(w, http.StatusUnauthorized, errTokenGone)
	case errors.As(err, &long):
		failAs(w, http.StatusRequestEntityTooLarge, &disdel.Error{
			Kind: disdel.OverLimit, Op: "read request", Msg: "the body is longer than " + disdel.Bytes(long.Limit).String(),
		})
	case err != nil:
		refuse(w, err)
	case status != 0:
		write(w, status, body)
	}
}

// enter checks the sender of a request, and waits for memory; free gives that back. The body of a refused request is
// not read.
func (s *server) enter(c *call, route route, maximum int64) (free func(), err error) {
	if c.ContentLength != 0 {
		c.w.Header().Set("Connection", "close")
		defer func() {
			if err == nil {
				c.w.Header().Del("Connection")
			}
		}()
	}
	if err := s.admit(c, route.role); err != nil {
		return nil, err
	}
	body := min(c.ContentLength, maximum)
	if body < 0 { // its length is unknown
		body = maximum
	}
	if free, err = s.budget.take(c.Context(), c.Service, route.cost, body); err != nil {
		refuse(c.w, err)
		return nil, errRefused
	}
	c.held, c.computes = s.budget.bytes(route.cost, body), route.cost.computes
	return free, nil
}

// refuse answers a request for which there is no memory.
func refuse(w http.ResponseWriter, err error) {
	var none *full
	if !errors.As(err, &none) {
		fail(w, err)
		return
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	failAs(w, none.status, none.why)
}

// steady is a body whose sender must keep sending. Reading fails after quietFor without a byte, at until in any case,
// and once the sender's token is revoked.
type steady struct {
	io.ReadCloser
	out   *http.ResponseController
	until time.Time

	mu      sync.Mutex
	revoked bool // guarded by mu
}

// quietFor is how long the sender of an upload may send nothing.
const quietFor = 20 * time.Second

func (s *steady) Read(p []byte) (int, error) {
	next := time.Now().Add(quietFor)
	if next.After(s.until) {
		next = s.until
	}
	if !s.allow(next) {
		return 0, errTokenGone
	}
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && s.isRevoked() {
		err = errTokenGone
	}
	return n, err
}

// allow lets the sender send until a time. It returns false once the token is revoked.
func (s *steady) allow(until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.revoked {
		s.out.SetReadDeadline(until) //nolint:errcheck // there is none then
	}
	return !s.revoked
}

// revoke ends the Read that waits, and all later ones.
func (s *steady) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = true
	s.out.SetReadDeadline(time.Now()) //nolint:errcheck // there is none then
}

func (s *steady) isRevoked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revoked
}

var errRefused = errors.New("refused")

// hold reserves more memory until the request is answered.
func (c *call) hold(bytes int64) error {
	if err := c.server.budget.overShare(c.held+bytes, "send less at once"); err != nil {
		return err
	}
	free, err := c.server.budget.hold(c.Context(), c.Service, bytes)
	if err == nil {
		c.frees, c.held = append(c.frees, free), c.held+bytes
	}
	return err
}

// compute waits for one of the tenant's places to compute, unless the request has one from its start. done gives it
// back. Other tenants' requests would wait for the processors if a tenant could compute any number of answers at once.
func (c *call) compute() (done func(), err error) {
	if c.computes {
		return func() {}, nil
	}
	return c.server.budget.take(c.Context(), c.Service, costCompute, 0)
}

// free gives back what the request holds.
func (c *call) free() {
	for _, free := range c.frees {
		free()
	}
}

// pieces is an answer of any length. The client must read each piece in time; the whole answer has no time limit.
type pieces struct {
	io.Writer
	out *http.ResponseController
}

func (p pieces) Write(data []byte) (int, error) {
	p.out.SetWriteDeadline(time.Now().Add(slow)) //nolint:errcheck // there is none then
	return p.Writer.Write(data)
}

// admit identifies the sender, and refuses one that may not use the route.
func (s *server) admit(c *call, asked tenant.Role) error {
	tenant, role, err := s.whose(c.Context(), c.Request)
	switch {
	case disdel.KindOf(err) == disdel.Denied:
		c.w.Header().Set("WWW-Authenticate", "Bearer")
		failAs(c.w, http.StatusUnauthorized, err)
		return errRefused
	case err != nil:
		fail(c.w, err)
		return errRefused
	}
	switch {
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

// whose returns the tenant and the role of a request; the tenant is "" for the operator.
func (s *server) whose(ctx context.Context, r *http.Request) (string, tenant.Role, error) {
	token := bearer(r)
	if token == "" {
		return "", "", &disdel.Error{
			Kind: disdel.Denied, Op: "sign in", Msg: "the request has no bearer token",
			Hint: "send Authorization: Bearer TOKEN; disdel tenant create NAME makes one",
		}
	}
	return s.owner(ctx, token)
}

// bearer is the token of a request, "" for none.
func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// owner returns the tenant and the role of a token; the tenant is "" for the operator.
func (s *server) owner(ctx context.Context, token string) (string, tenant.Role, error) {
	if tenant.SameToken(token, s.Operator) {
		noteSender(ctx, "operator", tenant.RoleAdmin)
		return "", tenant.RoleAdmin, nil
	}
	tenant, role, err := s.Service.Tenants().Identify(ctx, token)
	switch disdel.KindOf(err) {
	case disdel.UnknownKind:
		noteSender(ctx, tenant, role)
	case disdel.Denied:
		s.slow(ctx)
	}
	return tenant, role, err
}

// sign returns the service that a token opens on the page.
func (s *server) sign(ctx context.Context, token string) (*service.Service, tenant.Role, error) {
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

// hold reserves memory for an open page, see web.Config.
func (s *server) hold(ctx context.Context, own *service.Service, token string, end func()) (free func(), err error) {
	kind := costList
	if end != nil {
		kind = costStream
	}
	free, err = s.budget.take(ctx, own, kind, 0)
	if err != nil || end == nil || own == s.Service {
		return free, err
	}
	leave := s.tokens.join(token, end)
	return func() { leave(); free() }, nil
}

// heldOfRecord is the memory of a reader of a job for each byte of its stored record: the record as it was read and
// decoded, its events, and the answer.
const heldOfRecord = 6

// watch opens a job, and reserves memory for it until free is called. It reads only a few records at once, because
// their size is unknown before.
func (s *server) watch(ctx context.Context, own *service.Service, job string) (
	run *service.Run, free func(), err error,
) {
	reading := costRecord
	reading.computes = false // the page's own request computes already
	read, err := s.budget.take(ctx, own, reading, 0)
	if err != nil {
		return nil, nil, err
	}
	defer read()
	if run, err = own.Watch(ctx, job); err != nil {
		return nil, nil, err
	}
	needs := heldOfRecord * int64(run.Stored())
	hint := "read the record itself, which needs less: disdel jobs show " + string(run.ID())
	if err := s.budget.overShare(needs, hint); err != nil {
		return nil, nil, err
	}
	free, err = s.budget.hold(ctx, own, needs)
	return run, free, err
}

// pace counts the requests of each tenant in the current minute.
type pace struct {
	maximum int

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
	return p.seen[tenant] <= p.maximum
}

// Serve serves at a listener until ctx ends. Then it takes no more jobs, ends streams and waits, and gives other
// requests the time drain.
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

// lasting returns a context for a stream or a wait. It ends when the client goes away, the server shuts down, or the
// client's token is revoked.
func (c *call) lasting() (context.Context, func()) {
	ctx, stop := context.WithCancelCause(c.Context())
	end := func() { stop(nil) }
	unlink := context.AfterFunc(c.server.drains, end)
	leave := func() {}
	if !c.operator {
		leave = c.server.tokens.join(bearer(c.Request), func() { stop(errTokenGone) })
	}
	return ctx, func() { leave(); unlink(); end() }
}

// errTokenGone ends the streams of a revoked token.
var errTokenGone = &disdel.Error{Kind: disdel.Denied, Op: "sign in", Msg: "the token was taken away"}

// draining returns Unavailable once the server is shutting down.
func (c *call) draining() error {
	if c.server.drains.Err() == nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Unavailable, Op: "serve", Msg: "the server is about to end", Hint: "try again in a while",
	}
}
