package platform

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// problem is an error as the API answers it.
type problem struct {
	status int
	text   string
}

// wrong is what OpenWhisk says of a part of a body that is not as it should be, in its words.
type wrong string

func (w wrong) Error() string { return string(w) }

func (p problem) Error() string { return p.text }

// request is one of a known user, who names a namespace: his own, or another's whose packages may be public.
type request struct {
	*http.Request
	user *user
	ns   string
}

func (q *request) own() bool { return q.ns == q.user.Name }

// answer is a body with the id of the activation it is about.
type answer struct {
	id   string
	body any
}

type handler func(*request) (int, any, error)

// acceptsJSON tells whether a client takes the only representation that there is.
func acceptsJSON(r *http.Request) bool {
	return accepts(r, "*/*", "application/*", "application/json")
}

// accepts tells whether a request takes any of some kinds of answers; one that says nothing takes all.
func accepts(r *http.Request, kinds ...string) bool {
	accept := r.Header.Get("Accept")
	if accept == "" {
		return true
	}
	for part := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(part, ";")
		if slices.Contains(kinds, strings.TrimSpace(strings.ToLower(kind))) {
			return true
		}
	}
	return false
}

// checkContent refuses a body that is not said to be JSON.
func checkContent(r *http.Request) error {
	if r.ContentLength == 0 || r.Method != http.MethodPut && r.Method != http.MethodPost {
		return nil
	}
	given := cmp.Or(r.Header.Get("Content-Type"), "application/octet-stream")
	kind, _, _ := strings.Cut(given, ";")
	if strings.TrimSpace(strings.ToLower(kind)) != "application/json" {
		return problem{415, textContentType(given)}
	}
	return nil
}

// checkNames refuses names that no entity can have.
func checkNames(r *http.Request) error {
	for _, part := range []string{"pkg", "name"} {
		if name := r.PathValue(part); name != "" {
			if err := checkName(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// dispatch finds the caller and the method; a preflight request carries no key.
func (p *Platform) dispatch(rt *route, w http.ResponseWriter) func(*http.Request) (int, any, error) {
	return func(r *http.Request) (int, any, error) {
		if r.Method == http.MethodOptions {
			return 200, plain("OK"), nil
		}
		q := &request{Request: r}
		if !rt.open {
			if err := p.authorize(q, rt.shared); err != nil {
				return 0, nil, err
			}
			q.Request = known(w, r)
			defer readRest(q.Request)
		}
		f := rt.methods[r.Method]
		switch {
		case f == nil && rt.open:
			return 0, nil, notAllowed(w, "GET, OPTIONS")
		case f == nil:
			return 0, nil, problem{404, textNoRoute}
		case !rt.anyType && !acceptsJSON(r):
			return 0, nil, problem{406, textNotAcceptable}
		}
		for _, check := range []func(*http.Request) error{checkNames, checkFlags, checkContent} {
			if err := check(r); err != nil {
				return 0, nil, err
			}
		}
		return f(q)
	}
}

// authorize checks the key and the namespace. What of another namespace is public, the handlers of shared paths know.
func (p *Platform) authorize(q *request, shared bool) error {
	name, key, ok := q.BasicAuth()
	if !ok {
		return problem{401, textNoAuth}
	}
	if q.user = p.userOf(name + ":" + key); q.user == nil {
		return problem{401, textBadAuth}
	}
	q.ns = q.PathValue("ns")
	if q.ns == "" || q.ns == "_" {
		q.ns = q.user.Name
	}
	readable := shared && (q.Method == http.MethodGet || q.Method == http.MethodPost)
	if !q.own() && !readable {
		return problem{403, textForbidden(q.resource())}
	}
	return nil
}

// resource is what a request is about, as refusals name it.
func (q *request) resource() string {
	parts := []string{q.ns, q.PathValue("pkg"), q.PathValue("name")}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
}

// serve answers one request: X-Request-ID, JSON, and errors as {error, code}.
func (p *Platform) serve(w http.ResponseWriter, r *http.Request, f func(*http.Request) (int, any, error)) {
	id := r.Header.Get("X-Request-ID")
	if id == "" || strings.HasPrefix(id, "sid_") {
		id = newID()
	}
	status, body, err := f(r)
	if err != nil {
		pr, ok := unwritable(err).(problem)
		if !ok {
			pr = problem{500, textInternal}
			if errors.Is(err, disdel.Corrupt) {
				pr.text = textDamaged(err)
			}
			p.cfg.Logger.WithError(err).Error("request failed")
		}
		status, body = pr.status, map[string]any{"error": pr.text, "code": id}
	}
	h := w.Header()
	h.Set("X-Request-ID", id)
	if a, ok := body.(answer); ok {
		h.Set("x-openwhisk-activation-id", a.id)
		body = a.body
	}
	if told, ok := body.(refused); ok {
		body = map[string]any{"error": string(told), "code": id}
	}
	if status == http.StatusUnauthorized && !isWeb(r) { // of a web action, a browser would ask its user for a password
		patience{w, r}.refuse()
		h.Set("WWW-Authenticate", `Basic realm="OpenWhisk secure realm",charset=UTF-8`)
	}
	writeJSON(w, status, body)
}

func flag(r *http.Request, name string) bool {
	return slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(r.URL.Query().Get(name)))
}

// checkFlags refuses what is no truth value, with the text of the library that reads OpenWhisk's query parameters.
func checkFlags(r *http.Request) error {
	q := r.URL.Query()
	for _, name := range []string{"overwrite", "blocking", "result", "code", "count", "docs", "force"} {
		v := q.Get(name)
		if v != "" && !slices.Contains([]string{"true", "yes", "on", "false", "no", "off"}, strings.ToLower(v)) {
			return problem{400, textQuery(name, "'"+v+"' is not a valid Boolean value")}
		}
	}
	return nil
}
