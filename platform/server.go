package platform

import (
	"container/list"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// Time limits of connections. A whole request has none, because a blocking invocation waits for its action.
const (
	headerWait = 10 * time.Second
	idleWait   = 2 * time.Minute
	// unauthBodyWait bounds reading the body of a request without a valid key.
	unauthBodyWait = time.Second
)

// bodyWait bounds reading the body of a request with a key: a minute, and the time for length bytes at 256 KB/s.
func bodyWait(length int64) time.Duration {
	const slowest = 256 << 10
	return time.Minute + time.Duration(max(0, length)/slowest)*time.Second
}

// Serve answers on l with h, which is Handler or a wrapper of it, until Close. Call it once, before the first
// invocation: containers get its address.
func (p *Platform) Serve(l net.Listener, h http.Handler) {
	p.listener, p.served = l, make(chan struct{})
	p.pool.open()
	p.server = &http.Server{
		Handler: p.refuseForeignPages(h), ReadHeaderTimeout: headerWait, IdleTimeout: idleWait, ConnContext: withConn,
	}
	go func() {
		defer close(p.served)
		p.server.Serve(limitUnauthenticated(l, maxUnauthConns, unauthMinAge)) //nolint:errcheck // ends with ErrServerClosed
	}()
}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, unauthConnKey{}, c)
}

// bodyDeadline bounds reading a request's body. The time is short until the sender shows a key, and then enough for the
// announced length. After the body is read there is no bound, so that the answer may take its time.
type bodyDeadline struct {
	w http.ResponseWriter
	r *http.Request
}

// set ends reading after d; 0 means never.
func (t bodyDeadline) set(d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	http.NewResponseController(t.w).SetReadDeadline(at) //nolint:errcheck // a recorder of tests has no deadlines
}

// authenticated is called after a valid key. It returns a request whose body has the time limit of an authenticated
// one.
func authenticated(w http.ResponseWriter, r *http.Request) *http.Request {
	t := bodyDeadline{w, r}
	if s, ok := t.r.Context().Value(unauthConnKey{}).(*unauthConn); ok {
		s.authenticated()
	}
	if t.r.ContentLength == 0 {
		t.set(0)
	} else {
		t.set(bodyWait(t.r.ContentLength))
	}
	timed := *r // a copy: the server looks at its own request's body
	timed.Body = &timedBody{ReadCloser: r.Body, deadline: t, done: t.r.ContentLength == 0}
	return &timed
}

// closeSoon is called before a request without a key is answered: the rest of its body is not awaited.
func (t bodyDeadline) closeSoon() {
	t.w.Header().Set("Connection", "close")
	t.set(unauthBodyWait)
}

// timedBody removes the deadline once the body is read, because a deadline that passes later looks like a client that
// went away.
type timedBody struct {
	io.ReadCloser
	deadline bodyDeadline
	done     bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.done {
		b.done = true
		b.deadline.set(0)
	}
	return n, err
}

// The headers that OpenWhisk's answers to preflight requests allow.
const (
	corsHeaders = "Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent"
	corsMethods = "GET, DELETE, POST, PUT, HEAD"
)

// refuseForeignPages refuses requests of web pages before anything else sees them. A browser runs what any page says,
// on this machine and as this user, so an open platform would run programs for every open page. Two headers cannot be
// forged by a page: Origin names the page, and Host the name that it used, which is foreign if the page's own name
// points here. Pages of Config.Origins may call and get the CORS headers. Web actions are open to every page under the
// platform's own host names.
func (p *Platform) refuseForeignPages(h http.Handler) http.Handler {
	if behind, ok := h.(gatedHandler); ok {
		return behind
	}
	return gatedHandler{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isWeb(r) {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Vary", "Origin")
		}
		patient := bodyDeadline{w, r}
		patient.set(headerWait)
		if err := p.checkOrigin(r); err != nil {
			patient.closeSoon()
			p.serve(w, r, func(*http.Request) (int, any, error) { return 0, nil, err })
			return
		}
		if origin := r.Header.Get("Origin"); !isWeb(r) && slices.Contains(p.cfg.Origins, origin) {
			allowOrigin(w.Header(), r, origin)
		}
		h.ServeHTTP(w, r)
	})}
}

// gatedHandler marks a handler that checks origins already.
type gatedHandler struct{ http.Handler }

func allowOrigin(h http.Header, r *http.Request, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Allow-Methods", corsMethods)
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
}

// checkOrigin returns why a request may not pass, or nil.
func (p *Platform) checkOrigin(r *http.Request) error {
	if !p.servesHost(r) {
		return errForeignHost(r.Host)
	}
	if isWeb(r) {
		return nil // any page may call exported actions, and this path has nothing else
	}
	own := schemeOf(r) + "://" + r.Host
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		if (origin != own || r.Host == "") && !slices.Contains(p.cfg.Origins, origin) {
			return errForeignOrigin(origin)
		}
	}
	site := r.Header.Get("Sec-Fetch-Site") // browsers send it with requests that have no Origin, such as images
	if len(origins) == 0 && (site == "cross-site" || site == "same-site") {
		return errForeignOrigin(site)
	}
	return nil
}

func schemeOf(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// servesHost tells whether a request's Host is a name of this platform: localhost, the address of the connection, or
// one of Config.Hosts. If the connection's address is not a loopback address, any IP address counts, because a router
// in front may have it. A request without Host does not come from a browser.
func (p *Platform) servesHost(r *http.Request) bool {
	host := hostOf(r.Host)
	if host == "" || host == "localhost" || slices.Contains(p.cfg.Hosts, host) {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	here := addressIP(local)
	return ip.IsLoopback() || here != nil && !here.IsLoopback()
}

// hostOf is the name in a Host header, in lower case, without port, brackets and final dot.
func hostOf(hostport string) string {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

func addressIP(a net.Addr) net.IP {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.IP
	}
	return nil
}

// validateGate checks Origins and Hosts.
func (c *Config) validateGate() error {
	bad := func(msg string) error { return &disdel.Error{Kind: disdel.Invalid, Op: "configure platform", Msg: msg} }
	for _, origin := range c.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			return bad(fmt.Sprintf("%q is not an origin: write http://HOST:PORT, without a path", origin))
		}
	}
	for _, host := range c.Hosts {
		if host == "" || hostOf(host) != host {
			return bad(fmt.Sprintf("%q is not a host name: write it in lower case, without a port", host))
		}
	}
	return nil
}

// Bounds on connections without a valid key. A client with a key shows it within milliseconds, so an older connection
// may be closed when the places are taken.
const (
	maxUnauthConns = 1024
	unauthMinAge   = time.Second
)

// unauthListener is a listener that bounds the connections without a valid key: anybody who reaches the port can open
// them, and they cost descriptors and memory. When all places are taken it closes the oldest connection, once that is
// minAge old. So a flood is closed as it comes, and clients with keys get through.
type unauthListener struct {
	net.Listener
	max    int
	minAge time.Duration

	mu     sync.Mutex
	byAge  *list.List    // of *unauthConn, oldest first
	freed  chan struct{} // signals that a connection closed or showed a key
	closed *closeOnce
}

// unauthConn is a connection that has not shown a valid key yet.
type unauthConn struct {
	net.Conn
	listener *unauthListener
	opened   time.Time
	element  *list.Element // nil once it showed a key or is closed
}

type unauthConnKey struct{}

func limitUnauthenticated(l net.Listener, maximum int, minAge time.Duration) *unauthListener {
	return &unauthListener{
		Listener: l, max: maximum, minAge: minAge, byAge: list.New(), freed: make(chan struct{}, 1),
		closed: newOnce(),
	}
}

func (s *unauthListener) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for wait := s.makeRoom(); wait > 0; wait = s.makeRoom() {
		select {
		case <-time.After(wait):
		case <-s.freed:
		case <-s.closed.c:
			c.Close()
			return nil, net.ErrClosed
		}
	}
	return s.add(c), nil
}

func (s *unauthListener) Close() error {
	s.closed.close()
	return s.Listener.Close()
}

// makeRoom closes the oldest connection if all places are taken. It returns how long to wait if that one is too young.
func (s *unauthListener) makeRoom() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byAge.Len() < s.max {
		return 0
	}
	oldest := s.byAge.Front().Value.(*unauthConn)
	if young := s.minAge - time.Since(oldest.opened); young > 0 {
		return young
	}
	s.remove(oldest)
	go oldest.Conn.Close() // not under the lock
	return 0
}

func (s *unauthListener) add(c net.Conn) *unauthConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &unauthConn{Conn: c, listener: s, opened: time.Now()}
	out.element = s.byAge.PushBack(out)
	return out
}

// remove removes a connection from the list. The caller holds the lock.
func (s *unauthListener) remove(c *unauthConn) {
	if c.element == nil {
		return
	}
	s.byAge.Remove(c.element)
	c.element = nil
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// authenticated is called when the connection showed a valid key.
func (c *unauthConn) authenticated() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.remove(c)
}

func (c *unauthConn) Close() error {
	c.authenticated()
	return c.Conn.Close()
}

// CloseWrite lets the server close its side after an answer, as on a plain connection.
func (c *unauthConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// LogRequests wraps h and logs every request at level info: method, path, status, duration and the transaction id, by
// which OpenWhisk's clients name a failed request. It leaves queries out, because they may hold secrets.
func LogRequests(h http.Handler, log logrus.FieldLogger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin, seen := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(seen, r)
		log.WithFields(logrus.Fields{
			"method": r.Method, "path": r.URL.Path, "status": seen.status,
			"duration": time.Since(begin).Round(time.Microsecond), "transaction": w.Header().Get("X-Request-ID"),
		}).Info("request")
	})
}

// statusWriter remembers the status of the answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (s *statusWriter) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the wrapped writer.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
