package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service/tenant"
	"github.com/disdel/disdel/service/web"
)

// sender is the owner of a request's token, for the audit log. It is empty until a valid token was read.
type sender struct {
	from string // address of the client
	name string // of the tenant, or "operator"
	role tenant.Role
	job  disdel.JobID // that the request submitted
}

// senderKey is the key of the request's *sender in its context.
type senderKey struct{}

// noteSender tells the audit log whose token the request of ctx has.
func noteSender(ctx context.Context, name string, role tenant.Role) {
	if who, ok := ctx.Value(senderKey{}).(*sender); ok {
		who.name, who.role = name, role
	}
}

// noteJob tells the audit log which job the request of ctx submitted.
func noteJob(ctx context.Context, id disdel.JobID) {
	if who, ok := ctx.Value(senderKey{}).(*sender); ok {
		who.job = id
	}
}

// audited logs one line for each request that can change something, signs in, or is refused with 401 or 403. The line
// has the path without its query, and no header, so it never has a token or key. next may refuse a request before it
// reaches mux: audited asks mux for the route.
func (s *server) audited(mux *http.ServeMux, next http.Handler) http.Handler {
	if s.Log == nil && s.Audit == nil && s.SlowSignIn == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, seen := &sender{from: addressOf(r)}, &recorder{ResponseWriter: w}
		r = r.WithContext(context.WithValue(r.Context(), senderKey{}, who))
		defer func() {
			s.noteSignIn(r, who)
			s.sumUpRefusals(time.Now())
			if !wantsAudit(r, seen.status()) {
				return
			}
			if r.Pattern == "" {
				_, r.Pattern = mux.Handler(r)
			}
			s.writeAudit(r, who, seen.status())
		}()
		next.ServeHTTP(seen, r)
	})
}

// wantsAudit reports whether the audit log needs a line for a request that was answered with status.
func wantsAudit(r *http.Request, status int) bool {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	return !read || r.URL.Path == web.Enter || status == http.StatusUnauthorized || status == http.StatusForbidden
}

// mostAudited bounds the method and the path of an audit line, in bytes.
const mostAudited = 256

// shortened is a text of a client as an audit line has it.
func shortened(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), mostAudited)], "?")
}

// writeAudit writes the line of a request into the log and into the home's audit log. That has only a bounded number of
// lines of refused requests and of those without a token: nobody can drive its older lines out.
func (s *server) writeAudit(r *http.Request, who *sender, status int) {
	method, path, event := shortened(r.Method), shortened(r.URL.Path), auditEvent(r, status)
	if s.Log != nil {
		s.Log.WithFields(logrus.Fields{
			"tenant": who.name, "role": string(who.role), "route": r.Pattern, "method": method, "path": path,
			"status": status, "from": r.RemoteAddr,
		}).Info("request")
	}
	if (who.name == "" || event == tenant.AuditRefused) && !s.refusals.admit(who.name) {
		return
	}
	s.auditLine(tenant.AuditLine{
		Event: event, Tenant: who.name, Role: who.role, From: addressOf(r), Method: method, Status: status, Job: who.job,
		Path: strings.Map(func(c rune) rune {
			if c < ' ' {
				return '?' // JSON has six bytes for it
			}
			return c
		}, path),
	})
}

// refusals counts the refused requests of each tenant in the current minute; those without a token have the name "".
type refusals struct {
	mu     sync.Mutex
	minute int64          // guarded by mu
	counts map[string]int // guarded by mu
}

// mostRefusals is the number of refused requests of a tenant in a minute that have lines of their own.
const mostRefusals = 10

// admit counts a refused request. It reports whether the request has a line of its own.
func (f *refusals) admit(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts = map[string]int{}
	}
	f.counts[name]++
	return f.counts[name] <= mostRefusals
}

// ended returns the counts of the minute before now once, and then counts anew.
func (f *refusals) ended(now time.Time) (counts map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := now.Unix() / 60; m != f.minute {
		counts, f.minute, f.counts = f.counts, m, nil
	}
	return counts
}

// sumUpRefusals writes one line for the refused requests of the last minute that have no lines of their own.
func (s *server) sumUpRefusals(now time.Time) {
	for name, n := range s.refusals.ended(now) {
		if n > mostRefusals {
			s.auditLine(tenant.AuditLine{
				Event: tenant.AuditRefused, Tenant: name, What: fmt.Sprintf("%d more requests in a minute", n-mostRefusals),
			})
		}
	}
}

// auditLine writes a line into the home's audit log. A failure is only logged.
func (s *server) auditLine(line tenant.AuditLine) {
	if s.Audit == nil {
		return
	}
	if err := s.Audit.Write(line); err != nil && s.Log != nil {
		s.Log.WithError(err).Warn("the audit log lacks a line")
	}
}

// auditEvent is the event of a request that was answered with status.
func auditEvent(r *http.Request, status int) string {
	path := r.URL.Path
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return tenant.AuditRefused
	case path == web.Enter || path == web.Root+"login":
		return tenant.AuditSignIn
	case strings.HasPrefix(path, "/api/v1/shares/"):
		return tenant.AuditShare
	case r.Method == http.MethodDelete:
		return tenant.AuditDeletion
	case r.Pattern == "POST /api/v1/jobs", r.Pattern == "POST /ui/submit",
		strings.HasSuffix(r.Pattern, "/resume"), strings.HasSuffix(r.Pattern, "/retry"):
		return tenant.AuditSubmission
	default:
		return tenant.AuditChange
	}
}

// addressOf is the client's address without its port.
func addressOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// signIns remembers which tenants have signed in lately, and from where.
type signIns struct {
	mu   sync.Mutex
	seen map[signIn]time.Time // guarded by mu
}

type signIn struct{ name, role, from string }

// Bounds of signIns and failures: how long a sign-in counts, and how many addresses are remembered.
const (
	signedInFor   = time.Hour
	mostAddresses = 10_000
)

// noteSignIn writes a line for the first request in an hour of a tenant, a role and an address.
func (s *server) noteSignIn(r *http.Request, who *sender) {
	if who.name == "" {
		return
	}
	key, now := signIn{who.name, string(who.role), addressOf(r)}, time.Now()
	s.signIns.mu.Lock()
	last, known := s.signIns.seen[key]
	fresh := !known || now.Sub(last) > signedInFor
	if fresh {
		if s.signIns.seen == nil || len(s.signIns.seen) >= mostAddresses {
			s.signIns.seen = map[signIn]time.Time{}
		}
		s.signIns.seen[key] = now
	}
	s.signIns.mu.Unlock()
	if fresh {
		s.auditLine(tenant.AuditLine{Event: tenant.AuditSignIn, Tenant: who.name, Role: who.role, From: key.from})
	}
}

// failures counts the wrong tokens of each address in the current minute.
type failures struct {
	mu      sync.Mutex
	minute  int64          // guarded by mu
	counts  map[string]int // guarded by mu
	waiting int            // guarded by mu: answers that are delayed now
}

// firstDelay is the delay after the second wrong token. mostDelayed bounds the answers that are delayed at once.
const (
	firstDelay  = 50 * time.Millisecond
	mostDelayed = 100
)

// begin counts a failure. It returns how long its answer waits; end is called after that.
func (f *failures) begin(address string, maximum time.Duration, now time.Time) (wait time.Duration, end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := now.Unix() / 60; m != f.minute || len(f.counts) >= mostAddresses {
		f.minute, f.counts = m, map[string]int{}
	}
	f.counts[address]++
	if f.waiting >= mostDelayed || f.counts[address] == 1 {
		return 0, func() {}
	}
	wait = min(maximum, firstDelay<<min(f.counts[address]-2, 10))
	f.waiting++
	return wait, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waiting--
	}
}

// slow delays the answer to a wrong token. Requests with a valid token never wait.
func (s *server) slow(ctx context.Context) {
	who, known := ctx.Value(senderKey{}).(*sender)
	if s.SlowSignIn == 0 || !known {
		return
	}
	wait, end := s.failures.begin(who.from, s.SlowSignIn, time.Now())
	defer end()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}
