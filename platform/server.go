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

// Bounds on the time that a connection may take. There is none on a whole request: a blocking one waits for its action.
const (
	headerWait = 10 * time.Second
	idleWait   = 2 * time.Minute
	// strangerWait is the time for the body of a request that showed no valid key.
	strangerWait = time.Second
)

// bodyWait is the time for the body of a request with a key: a minute, and what it takes at 256 KB a second.
func bodyWait(length int64) time.Duration {
	const slowest = 256 << 10
	return time.Minute + time.Duration(max(0, length)/slowest)*time.Second
}

// Serve answers on l with h, which is Handler or something around it, until Close. It must be called once, before
// anything is invoked: containers are told its address.
func (p *Platform) Serve(l net.Listener, h http.Handler) {
	p.listener, p.served = l, make(chan struct{})
	p.pool.open()
	p.server = &http.Server{
		Handler: p.gate(h), ReadHeaderTimeout: headerWait, IdleTimeout: idleWait, ConnContext: withStranger,
	}
	go func() {
		defer close(p.served)
		p.server.Serve(newStrangers(l, maxStrangers, strangerMinAge)) //nolint:errcheck // ends with ErrServerClosed
	}()
}

func withStranger(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, strangerKey{}, c)
}

// patience bounds the time that a request's body may take: little before its sender showed a key, then enough for what
// it announced, and once it has been read, any, as the answer may take its time.
type patience struct {
	w http.ResponseWriter
	r *http.Request
}

// limit ends reading after d, 0 for never.
func (t patience) limit(d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	http.NewResponseController(t.w).SetReadDeadline(at) //nolint:errcheck // a recorder of tests has no deadlines
}

// known is called after a good key. The request that it returns is read by its bounds.
func known(w http.ResponseWriter, r *http.Request) *http.Request {
	t := patience{w, r}
	if s, ok := t.r.Context().Value(strangerKey{}).(*stranger); ok {
		s.known()
	}
	if t.r.ContentLength == 0 {
		t.limit(0)
	} else {
		t.limit(bodyWait(t.r.ContentLength))
	}
	timed := *r // a copy: the server looks at its own request's body
	timed.Body = &timedBody{ReadCloser: r.Body, patience: t, all: t.r.ContentLength == 0}
	return &timed
}

// refuse is called before the answer to who showed no key: what he still sends is not waited for.
func (t patience) refuse() {
	t.w.Header().Set("Connection", "close")
	t.limit(strangerWait)
}

// timedBody takes the bound away when all has been read: an end of reading would pass for the client's going away.
type timedBody struct {
	io.ReadCloser
	patience patience
	all      bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.all {
		b.all = true
		b.patience.limit(0)
	}
	return n, err
}

// The headers that OpenWhisk's preflights allow.
const (
	corsHeaders = "Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent"
	corsMethods = "GET, DELETE, POST, PUT, HEAD"
)

// gate lets in what no web page sent, before anything else looks at a request. A browser runs whatever any page says,
// on this machine and as this user, so that a platform that answers pages would run programs for every page that is
// open. Two headers tell of them that no page can forge: Origin says whose page asks, and Host which name it used,
// which is a foreign one where a page had its own name lead here. Pages of Config.Origins may call; they get the
// headers for it. Web actions are open to every page, under the platform's own names: whoever exports one says so.
func (p *Platform) gate(h http.Handler) http.Handler {
	if behind, ok := h.(gated); ok {
		return behind
	}
	return gated{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isWeb(r) {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Vary", "Origin")
		}
		patient := patience{w, r}
		patient.limit(headerWait)
		if err := p.inspect(r); err != nil {
			patient.refuse()
			p.serve(w, r, func(*http.Request) (int, any, error) { return 0, nil, err })
			return
		}
		if origin := r.Header.Get("Origin"); !isWeb(r) && slices.Contains(p.cfg.Origins, origin) {
			allowOrigin(w.Header(), r, origin)
		}
		h.ServeHTTP(w, r)
	})}
}

// gated is what a gate stands before.
type gated struct{ http.Handler }

func allowOrigin(h http.Header, r *http.Request, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Allow-Methods", corsMethods)
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
}

// inspect says why a request may not pass, nil if it may.
func (p *Platform) inspect(r *http.Request) error {
	if !p.servesHost(r) {
		return errForeignHost(r.Host)
	}
	if isWeb(r) {
		return nil // any page may call what was exported to the web, and nothing else is below that path
	}
	own := schemeOf(r) + "://" + r.Host
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		if (origin != own || r.Host == "") && !slices.Contains(p.cfg.Origins, origin) {
			return errForeignOrigin(origin)
		}
	}
	site := r.Header.Get("Sec-Fetch-Site") // of requests without Origin, such as images
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

// servesHost tells whether a request's Host is a name of this platform: localhost, the address that the connection came
// in on, or one of Config.Hosts. Where that address is no loopback one, any address will do: it may be that of a router
// in front, and no name of an attacker's can lead here under it. A request without Host is no browser's.
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

// hostOf is a Host header's name, in lower case, without port, brackets and final dot.
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

// validateGate is the part of validate that is about web pages.
func (c *Config) validateGate() error {
	bad := func(msg string) error { return &disdel.Error{Kind: disdel.Invalid, Op: "configure platform", Msg: msg} }
	for _, origin := range c.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			return bad(fmt.Sprintf("%q is no origin of pages: write http://HOST:PORT, without a path", origin))
		}
	}
	for _, host := range c.Hosts {
		if host == "" || hostOf(host) != host {
			return bad(fmt.Sprintf("%q is no name of a host: write it in lower case, without a port", host))
		}
	}
	return nil
}

// Bounds on connections that showed no key yet. One with a key shows it in its first milliseconds, so that what has
// been silent for longer may go when the places are taken.
const (
	maxStrangers   = 1024
	strangerMinAge = time.Second
)

// strangers is a listener that bounds the connections without a valid key: they cost descriptors and memory, and
// anybody who reaches the port can make them. When all places are taken, the oldest goes for a new one; one that is too
// young to tell is given its time first. So a flood is closed as it comes, and clients with keys get through.
type strangers struct {
	net.Listener
	most   int
	minAge time.Duration

	mu    sync.Mutex
	byAge *list.List    // of *stranger, the oldest first
	left  chan struct{} // signals that one went or became known
	ended *once
}

// stranger is a connection that may become known.
type stranger struct {
	net.Conn
	of    *strangers
	since time.Time
	place *list.Element // nil once it is known or closed
}

type strangerKey struct{}

func newStrangers(l net.Listener, most int, minAge time.Duration) *strangers {
	return &strangers{
		Listener: l, most: most, minAge: minAge, byAge: list.New(), left: make(chan struct{}, 1),
		ended: newOnce(),
	}
}

func (s *strangers) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for wait := s.room(); wait > 0; wait = s.room() {
		select {
		case <-time.After(wait):
		case <-s.left:
		case <-s.ended.c:
			c.Close()
			return nil, net.ErrClosed
		}
	}
	return s.add(c), nil
}

func (s *strangers) Close() error {
	s.ended.close()
	return s.Listener.Close()
}

// room closes the oldest if there is no place, or returns for how long that one may still stay.
func (s *strangers) room() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byAge.Len() < s.most {
		return 0
	}
	oldest := s.byAge.Front().Value.(*stranger)
	if young := s.minAge - time.Since(oldest.since); young > 0 {
		return young
	}
	s.forget(oldest)
	go oldest.Conn.Close() // not under the lock
	return 0
}

func (s *strangers) add(c net.Conn) *stranger {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &stranger{Conn: c, of: s, since: time.Now()}
	out.place = s.byAge.PushBack(out)
	return out
}

// forget takes one out; the caller holds the lock.
func (s *strangers) forget(c *stranger) {
	if c.place == nil {
		return
	}
	s.byAge.Remove(c.place)
	c.place = nil
	select {
	case s.left <- struct{}{}:
	default:
	}
}

// known is called when the connection showed a valid key.
func (c *stranger) known() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.forget(c)
}

func (c *stranger) Close() error {
	c.known()
	return c.Conn.Close()
}

// CloseWrite lets the server send an answer and then its end, as it does for what is a plain connection.
func (c *stranger) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// LogRequests is h with a line in log, at level info, for every request: method, path, status, duration and the
// transaction id, by which OpenWhisk's clients name a request that failed. Queries stay out: they may hold what is not
// for a log.
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

// statusWriter remembers the status that was answered.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (s *statusWriter) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer below.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
