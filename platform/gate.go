package platform

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

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
		return problem{http.StatusMisdirectedRequest, textForeignHost(r.Host)}
	}
	if isWeb(r) {
		return nil // any page may call what was exported to the web, and nothing else is below that path
	}
	own := schemeOf(r) + "://" + r.Host
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		if (origin != own || r.Host == "") && !slices.Contains(p.cfg.Origins, origin) {
			return problem{http.StatusForbidden, textForeignOrigin(origin)}
		}
	}
	site := r.Header.Get("Sec-Fetch-Site") // of requests without Origin, such as images
	if len(origins) == 0 && (site == "cross-site" || site == "same-site") {
		return problem{http.StatusForbidden, textForeignOrigin(site)}
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
