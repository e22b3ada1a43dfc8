package platform

import (
	"cmp"
	"errors"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// route is a path of the API with a handler for each method.
type route struct {
	path    string
	methods map[string]handler
	open    bool // needs no key
	anyType bool // ignores the Accept header
	shared  bool // other namespaces may read and invoke what is public
}

// routes is the whole API. A path that ends in {$} is a list with the trailing slash that OpenWhisk accepts.
func (p *Platform) routes() []route {
	const ns = "/api/v1/namespaces/{ns}"
	item := func(get, put, remove, post handler) map[string]handler {
		return map[string]handler{"GET": get, "PUT": put, "DELETE": remove, "POST": post}
	}
	list := func(f handler) map[string]handler { return map[string]handler{"GET": f} }
	out := []route{
		{path: "/{$}", methods: list(p.info), open: true},
		{path: "/ping", methods: list(ping), open: true},
		{path: "/metrics", methods: list(p.metrics), open: true, anyType: true},
		{path: "/api/v1/api-docs", methods: list(p.apiDocs), open: true},
		{path: "/api/v1", methods: list(p.apiInfo), open: true},
		{path: "/api/v1/{$}", methods: list(p.apiInfo), open: true},
		{path: ns + "/limits", methods: list(p.userLimits)},
		{
			path: ns + "/packages/{name}", methods: item(p.getPackage, p.putPackage, p.deletePackage, p.refreshPackages),
			shared: true,
		},
		{path: ns + "/actions/{name}", methods: item(p.getAction, p.putAction, p.deleteAction, p.invoke)},
		{path: ns + "/actions/{pkg}/{$}", methods: list(p.listActions), shared: true},
		{path: ns + "/actions/{pkg}/{name}", methods: item(p.getAction, p.putAction, p.deleteAction, p.invoke), shared: true},
		{path: ns + "/triggers/{name}", methods: item(p.getTrigger, p.putTrigger, p.deleteTrigger, p.fire)},
		{path: ns + "/rules/{name}", methods: item(p.getRule, p.putRule, p.deleteRule, p.setRule)},
		{path: ns + "/activations/{id}", methods: list(p.getActivation)},
		{path: ns + "/activations/{id}/logs", methods: list(p.getActivationLogs)},
		{path: ns + "/activations/{id}/result", methods: list(p.getActivationResult)},
	}
	for path, f := range map[string]handler{
		"/api/v1/namespaces": p.listNamespaces, ns + "/packages": p.listPackages, ns + "/actions": p.listActions,
		ns + "/triggers": p.listTriggers, ns + "/rules": p.listRules, ns + "/activations": p.listActivations,
	} {
		shared := path == ns+"/packages"
		out = append(out, route{path: path, methods: list(f), shared: shared},
			route{path: path + "/{$}", methods: list(f), shared: shared})
	}
	return out
}

func ping(*request) (int, any, error) { return httpDone, textBody("pong"), nil }

// Handler is the REST API. It refuses requests of foreign web pages.
func (p *Platform) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range p.routes() {
		mux.HandleFunc(rt.path, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, p.dispatch(&rt, w)) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.serve(w, r, func(*http.Request) (int, any, error) { return noRoute(w, r) })
	})
	return p.refuseForeignPages(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isWeb(r):
			p.web(w, r)
		case !isCleanPath(r):
			p.serve(w, r, func(*http.Request) (int, any, error) { return uncleanPath(w, r) })
		default:
			mux.ServeHTTP(w, r)
		}
	}))
}

// isCleanPath tells whether a path has no empty parts and no dots. OpenWhisk has no such routes, and http.ServeMux
// would redirect them.
func isCleanPath(r *http.Request) bool {
	value := r.URL.EscapedPath()
	clean := path.Clean(value)
	return value == clean || clean != "/" && value == clean+"/"
}

// uncleanPath answers paths with empty parts or dots. A dot in the place of an entity's name is an illegal name: wsk
// writes packages/./a:b for the package a:b, because a:b alone would be a URL.
func uncleanPath(w http.ResponseWriter, r *http.Request) (int, any, error) {
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v1/namespaces/"), "/")
	if _, _, known := r.BasicAuth(); known && len(parts) == 4 && parts[2] == "." {
		return 0, nil, errNameIllegal
	}
	return noRoute(w, r)
}

// noRoute answers unknown paths. Outside the API OpenWhisk answers only preflight requests.
func noRoute(w http.ResponseWriter, r *http.Request) (int, any, error) {
	if r.URL.Path == "/api/v1" || strings.HasPrefix(r.URL.Path, "/api/v1/") {
		return 0, nil, errNoRoute
	}
	if r.Method == http.MethodOptions {
		return httpDone, textBody("OK"), nil
	}
	return 0, nil, notAllowed(w, "OPTIONS")
}

func notAllowed(w http.ResponseWriter, allowed string) error {
	w.Header().Set("Allow", allowed)
	return errMethod(allowed)
}

// request is a request of an authenticated user. ns is the namespace in its path: the user's own, or another one whose
// packages may be public.
type request struct {
	*http.Request
	user *user
	ns   string
}

func (q *request) own() bool { return q.ns == q.user.Name }

// withActivationID is a body together with the id of its activation, which the answer's header names.
type withActivationID struct {
	id   string
	body any
}

type handler func(*request) (int, any, error)

// acceptsJSON tells whether the client accepts JSON.
func acceptsJSON(r *http.Request) bool {
	return accepts(r, "*/*", "application/*", "application/json")
}

// accepts tells whether a request accepts one of these media types. A request without Accept accepts all.
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

// checkContent refuses a body that is not declared as JSON.
func checkContent(r *http.Request) error {
	if r.ContentLength == 0 || r.Method != http.MethodPut && r.Method != http.MethodPost {
		return nil
	}
	value := cmp.Or(r.Header.Get("Content-Type"), "application/octet-stream")
	kind, _, _ := strings.Cut(value, ";")
	if strings.TrimSpace(strings.ToLower(kind)) != "application/json" {
		return errContentType(value)
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

// dispatch authenticates the caller and calls the handler of the method. Preflight requests need no key.
func (p *Platform) dispatch(rt *route, w http.ResponseWriter) func(*http.Request) (int, any, error) {
	return func(r *http.Request) (int, any, error) {
		if r.Method == http.MethodOptions {
			return httpDone, textBody("OK"), nil
		}
		q := &request{Request: r}
		if !rt.open {
			if err := p.authorize(q, rt.shared); err != nil {
				return 0, nil, err
			}
			q.Request = authenticated(w, r)
			defer discardBody(q.Request)
		}
		f := rt.methods[r.Method]
		switch {
		case f == nil && rt.open:
			return 0, nil, notAllowed(w, "GET, OPTIONS")
		case f == nil:
			return 0, nil, errNoRoute
		case !rt.anyType && !acceptsJSON(r):
			return 0, nil, errNotAcceptable("application/json")
		}
		for _, check := range []func(*http.Request) error{checkNames, checkFlags, checkContent} {
			if err := check(r); err != nil {
				return 0, nil, err
			}
		}
		return f(q)
	}
}

// authorize checks the key and the namespace. Handlers of shared paths check themselves what is public.
func (p *Platform) authorize(q *request, shared bool) error {
	name, key, ok := q.BasicAuth()
	if !ok {
		return errNoKey
	}
	if q.user = p.userOf(name + ":" + key); q.user == nil {
		return errWrongKey
	}
	q.ns = q.PathValue("ns")
	if q.ns == "" || q.ns == "_" {
		q.ns = q.user.Name
	}
	readable := shared && (q.Method == http.MethodGet || q.Method == http.MethodPost)
	if !q.own() && !readable {
		return errForbidden(q.resource())
	}
	return nil
}

// resource names what a request is about, for refusals.
func (q *request) resource() string {
	parts := []string{q.ns, q.PathValue("pkg"), q.PathValue("name")}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
}

// serve writes the answer of one request: the header X-Request-ID, JSON, and errors as {error, code}.
func (p *Platform) serve(w http.ResponseWriter, r *http.Request, f func(*http.Request) (int, any, error)) {
	id := r.Header.Get("X-Request-ID")
	if id == "" || strings.HasPrefix(id, "sid_") {
		id = newID()
	}
	status, body, err := f(r)
	if err != nil {
		refusal, ok := diskError(err).(apiError)
		if !ok {
			refusal = errInternal
			if errors.Is(err, disdel.Corrupt) {
				refusal = errDamaged(err)
			}
			p.cfg.Logger.WithError(err).Error("request failed")
		}
		status, body = refusal.status, map[string]any{"error": refusal.text, "code": id}
	}
	h := w.Header()
	h.Set("X-Request-ID", id)
	if a, ok := body.(withActivationID); ok {
		h.Set("x-openwhisk-activation-id", a.id)
		body = a.body
	}
	if failure, ok := body.(activationError); ok {
		body = map[string]any{"error": string(failure), "code": id}
	}
	if status == errNoKey.status && !isWeb(r) { // not for web actions: a browser would ask its user for a password
		bodyDeadline{w, r}.closeSoon()
		h.Set("WWW-Authenticate", `Basic realm="OpenWhisk secure realm",charset=UTF-8`)
	}
	writeJSON(w, status, body)
}

func flag(r *http.Request, name string) bool {
	return slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(r.URL.Query().Get(name)))
}

// checkFlags refuses query parameters that are not Boolean.
func checkFlags(r *http.Request) error {
	q := r.URL.Query()
	for _, name := range []string{"overwrite", "blocking", "result", "code", "count", "docs", "force"} {
		v := q.Get(name)
		if v != "" && !slices.Contains([]string{"true", "yes", "on", "false", "no", "off"}, strings.ToLower(v)) {
			return errQueryFlag(name, v)
		}
	}
	return nil
}

// maxList is the most entries of a list. A limit of 0 asks for as many.
const maxList = 200

// pageOptions reads limit and skip of a list; the defaults are 30 and 0.
func pageOptions(r *http.Request, collection string) (limit, skip int, err error) {
	if limit, err = queryInteger(r, "limit", 30, collection); err != nil {
		return 0, 0, err
	}
	if skip, err = queryInteger(r, "skip", 0, collection); err != nil {
		return 0, 0, err
	}
	if limit < 0 || limit > maxList {
		return 0, 0, errQueryLimit(limit, collection)
	}
	if skip < 0 {
		return 0, 0, errQuerySkip(skip, collection)
	}
	if limit == 0 {
		limit = maxList
	}
	return limit, skip, nil
}

func queryInteger(r *http.Request, name string, otherwise int, collection string) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, errQueryInteger(name, text, collection)
	}
	return n, nil
}

func pageOf[T any](list []T, limit, skip int) []T {
	list = list[min(skip, len(list)):]
	return list[:min(limit, len(list))]
}

// entity is what lists are sorted by.
type entity interface {
	changed() int64
	path() string
}

// newestFirst sorts by the last change, then by name, so that pages do not overlap.
func newestFirst[T entity](list []T) {
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(cmp.Compare(b.changed(), a.changed()), cmp.Compare(a.path(), b.path()))
	})
}

// listOf answers a list request: a count, or a page of brief of each entity.
func listOf[T entity](r *http.Request, collection string, list []T, brief func(T) any) (int, any, error) {
	limit, skip, err := pageOptions(r, collection)
	if err != nil {
		return 0, nil, err
	}
	if flag(r, "count") {
		return httpDone, map[string]int{collection: max(0, len(list)-skip)}, nil
	}
	newestFirst(list)
	out := []any{}
	for _, v := range pageOf(list, limit, skip) {
		out = append(out, brief(v))
	}
	return httpDone, out, nil
}
