package platform

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
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

// plain is a body that is text, not JSON.
type plain string

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

// route is what a path answers, by method.
type route struct {
	path    string
	methods map[string]handler
	open    bool // to everyone, without a key
	anyType bool // whatever types of answers its client takes
	shared  bool // to other namespaces, which may read and invoke what is public
}

// routes is the API. A path that ends in {$} is a list's with the slash that OpenWhisk lets it have.
func (p *Platform) routes() []route {
	const ns = "/api/v1/namespaces/{ns}"
	item := func(get, put, remove, post handler) map[string]handler {
		return map[string]handler{"GET": get, "PUT": put, "DELETE": remove, "POST": post}
	}
	list := func(f handler) map[string]handler { return map[string]handler{"GET": f} }
	out := []route{
		{path: "/{$}", methods: list(p.info), open: true},
		{path: "/ping", methods: list(func(*request) (int, any, error) { return 200, plain("pong"), nil }), open: true},
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

// Handler is the REST API, behind a gate that keeps web pages out.
func (p *Platform) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range p.routes() {
		mux.HandleFunc(rt.path, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, p.dispatch(&rt, w)) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.serve(w, r, func(*http.Request) (int, any, error) { return nowhere(w, r) })
	})
	return p.gate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isWeb(r) {
			p.web(w, r)
		} else {
			mux.ServeHTTP(w, r)
		}
	}))
}

// nowhere answers paths that there are not. Outside of the API the real one knows preflights everywhere, and nothing
// else.
func nowhere(w http.ResponseWriter, r *http.Request) (int, any, error) {
	if r.URL.Path == "/api/v1" || strings.HasPrefix(r.URL.Path, "/api/v1/") {
		return 0, nil, problem{404, textNoRoute}
	}
	if r.Method == http.MethodOptions {
		return 200, plain("OK"), nil
	}
	return 0, nil, notAllowed(w, "OPTIONS")
}

func notAllowed(w http.ResponseWriter, allowed string) error {
	w.Header().Set("Allow", allowed)
	return problem{405, textMethods(allowed)}
}

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
		case rt.open && !rt.anyType && !acceptsJSON(r):
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
	p.cfg.Logger.WithField("status", status).WithField("request", r.Method+" "+r.URL.Path).Trace("served")
}

// writeJSON sends a body, if there is one.
func writeJSON(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	if text, ok := body.(plain); ok {
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		w.WriteHeader(status)
		io.WriteString(w, string(text)) //nolint:errcheck // the client went away
		return
	}
	if made, ok := body.(webPage); ok {
		made.write(w, status)
		return
	}
	data, err := json.Marshal(body)
	if err != nil {
		status, data = 500, []byte(`{"error":"`+textInternal+`"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}

// readBody reads a bounded body without the blanks around it.
func readBody(r *http.Request, limit disdel.Bytes) ([]byte, error) {
	if disdel.Bytes(r.ContentLength) > limit {
		return nil, problem{413, textTooLarge("Request", r.ContentLength, limit)}
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return nil, problem{400, textMalformed(err.Error())}
	}
	if disdel.Bytes(len(data)) > limit {
		return nil, problem{413, textTooLarge("Request", max(r.ContentLength, int64(len(data))), limit)}
	}
	return bytes.TrimSpace(data), nil
}

// restAtMost bounds what is read of a body that was refused: more than any client of OpenWhisk may send.
const restAtMost = 64 << 20

// readRest reads what a refusal left of a body. A connection that is closed before all was read is reset, and a client
// that still sends then loses the answer. A client that asked first sends nothing once it has the answer.
func readRest(r *http.Request) {
	if r.Header.Get("Expect") == "" {
		io.CopyN(io.Discard, r.Body, restAtMost) //nolint:errcheck // what cannot be read is not missed
	}
}

// readJSON reads a bounded body.
func readJSON(r *http.Request, limit disdel.Bytes, v any) error {
	data, err := readBody(r, limit)
	if err != nil {
		return err
	}
	return parseJSON(data, v)
}

// parseJSON reads a document. What is wrong with it is said as spray-json says it, which OpenWhisk reads with.
func parseJSON(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return problem{400, textMalformed(textSyntax(data, syntax))}
	default:
		return problem{400, textMalformed(err.Error())}
	}
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
