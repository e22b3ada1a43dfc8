package api

import (
	"context"
	"net/http"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel/service/tenant"
	"github.com/disdel/disdel/service/web"
)

// sender is the owner of a request's token, for the audit log. It is empty until a valid token was read.
type sender struct {
	name string // of the tenant, or "operator"
	role tenant.Role
}

// senderKey is the key of the request's *sender in its context.
type senderKey struct{}

// noteSender tells the audit log whose token the request of ctx has.
func noteSender(ctx context.Context, name string, role tenant.Role) {
	if who, ok := ctx.Value(senderKey{}).(*sender); ok {
		*who = sender{name, role}
	}
}

// audited logs one line for each request that can change something, signs in, or is refused with 401 or 403. The line
// has the path without its query, and no header, so it never has a token or key. next may refuse a request before it
// reaches mux: audited asks mux for the route.
func (s *server) audited(mux *http.ServeMux, next http.Handler) http.Handler {
	if s.Log == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, seen := &sender{}, &recorder{ResponseWriter: w}
		r = r.WithContext(context.WithValue(r.Context(), senderKey{}, who))
		defer func() {
			if !wantsAudit(r, seen.status()) {
				return
			}
			if r.Pattern == "" {
				_, r.Pattern = mux.Handler(r)
			}
			s.Log.WithFields(logrus.Fields{
				"tenant": who.name, "role": string(who.role), "route": r.Pattern, "method": r.Method, "path": r.URL.Path,
				"status": seen.status(), "from": r.RemoteAddr,
			}).Info("request")
		}()
		next.ServeHTTP(seen, r)
	})
}

// wantsAudit reports whether the audit log needs a line for a request that was answered with status.
func wantsAudit(r *http.Request, status int) bool {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	return !read || r.URL.Path == web.Enter || status == http.StatusUnauthorized || status == http.StatusForbidden
}
