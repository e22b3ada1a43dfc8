package platform

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// problem is an error as the API answers it.
type problem struct {
	status int
	text   string
}

func (p problem) Error() string { return p.text }

// Handler is the REST API.
func (p *Platform) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(r *http.Request) (int, any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, f) })
	}
	const ns = "/api/v1/namespaces/{ns}"
	handle("GET /{$}", p.info)
	handle("GET /api/v1", p.apiInfo)
	handle("GET /api/v1/{$}", p.apiInfo)
	handle("GET /api/v1/namespaces", p.authorized(p.listNamespaces))
	handle("GET /api/v1/namespaces/{$}", p.authorized(p.listNamespaces))
	handle("GET "+ns+"/limits", p.authorized(p.userLimits))
	handle("GET "+ns+"/packages", p.authorized(p.listPackages))
	handle("GET "+ns+"/packages/{name}", p.authorized(p.getPackage))
	handle("PUT "+ns+"/packages/{name}", p.authorized(p.putPackage))
	handle("DELETE "+ns+"/packages/{name}", p.authorized(p.deletePackage))
	handle("GET "+ns+"/actions", p.authorized(p.listActions))
	handle("GET "+ns+"/actions/{$}", p.authorized(p.listActions))
	handle("GET "+ns+"/actions/{pkg}/{$}", p.authorized(p.listActions))
	for _, path := range []string{"/actions/{name}", "/actions/{pkg}/{name}"} {
		handle("GET "+ns+path, p.authorized(p.getAction))
		handle("PUT "+ns+path, p.authorized(p.putAction))
		handle("DELETE "+ns+path, p.authorized(p.deleteAction))
		handle("POST "+ns+path, p.authorized(p.invoke))
	}
	handle("GET "+ns+"/activations", p.authorized(p.listActivations))
	handle("GET "+ns+"/activations/{id}", p.authorized(p.getActivation))
	handle("GET "+ns+"/activations/{id}/{part}", p.authorized(p.getActivation))
	for _, empty := range []string{"/triggers", "/rules"} {
		handle("GET "+ns+empty, p.authorized(func(*http.Request) (int, any, error) { return 200, []any{}, nil }))
	}
	handle("/", func(*http.Request) (int, any, error) { return 0, nil, problem{404, textNoRoute} })
	return mux
}

// serve answers one request: X-Request-ID, JSON, and errors as {error, code}.
func (p *Platform) serve(w http.ResponseWriter, r *http.Request, f func(*http.Request) (int, any, error)) {
	id := r.Header.Get("X-Request-ID")
	if id == "" || strings.HasPrefix(id, "sid_") {
		id = newID()
	}
	status, body, err := f(r)
	if err != nil {
		pr, ok := err.(problem)
		if !ok {
			pr = problem{500, "There was an internal server error."}
			p.cfg.Logger.WithError(err).Error("request failed")
		}
		status, body = pr.status, map[string]any{"error": pr.text, "code": id}
	}
	h := w.Header()
	if a, ok := body.(invoked); ok {
		h.Set("x-openwhisk-activation-id", a.ID)
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Basic realm="OpenWhisk secure realm"`)
	}
	h.Set("X-Request-ID", id)
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Content-Type", "application/json")
	data, err := json.Marshal(body)
	if err != nil {
		status, data = 500, []byte(`{"error":"There was an internal server error."}`)
	}
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
	p.cfg.Logger.WithField("status", status).WithField("request", r.Method+" "+r.URL.Path).Trace("served")
}

// authorized checks the key and the namespace before f.
func (p *Platform) authorized(f func(*http.Request) (int, any, error)) func(*http.Request) (int, any, error) {
	return func(r *http.Request) (int, any, error) {
		user, key, ok := r.BasicAuth()
		if !ok {
			return 0, nil, problem{401, textNoAuth}
		}
		if subtle.ConstantTimeCompare([]byte(user+":"+key), []byte(p.cfg.AuthKey)) != 1 {
			return 0, nil, problem{401, textBadAuth}
		}
		if ns := r.PathValue("ns"); ns != "" && ns != "_" && ns != p.cfg.Namespace {
			return 0, nil, problem{403, textForbidden}
		}
		return f(r)
	}
}

// readJSON reads a bounded body; an empty one leaves v as it is.
func readJSON(r *http.Request, limit disdel.Bytes, v any) error {
	data, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return problem{400, "The request content was malformed:\n" + err.Error()}
	}
	if disdel.Bytes(len(data)) > limit {
		return problem{413, textTooLarge(max(r.ContentLength, int64(len(data))), limit)}
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return problem{400, "The request content was malformed:\n" + err.Error()}
	}
	return nil
}

// page is limit and skip of a list: 30 and 0, 200 at most, and 0 means 200.
func page(r *http.Request) (limit, skip int, err error) {
	limit, skip = 30, 0
	for name, v := range map[string]*int{"limit": &limit, "skip": &skip} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		if *v, err = strconv.Atoi(text); err != nil || *v < 0 {
			return 0, 0, problem{400, fmt.Sprintf("The query parameter '%s' was malformed:\n'%s' is not a valid value", name, text)}
		}
	}
	if limit > 200 {
		return 0, 0, problem{400, fmt.Sprintf("The value of 'limit' must not be greater than 200, but was %d.", limit)}
	}
	if limit == 0 {
		limit = 200
	}
	return limit, skip, nil
}

func cut[T any](list []T, limit, skip int) []T {
	list = list[min(skip, len(list)):]
	return list[:min(limit, len(list))]
}

func flag(r *http.Request, name string) bool { return r.URL.Query().Get(name) == "true" }

func (p *Platform) info(*http.Request) (int, any, error) {
	l := p.cfg.Limits
	kinds := make([]map[string]any, 0, len(p.cfg.Kinds))
	for k := range p.cfg.Kinds {
		kinds = append(kinds, map[string]any{"kind": k, "image": "embedded", "deprecated": false, "default": len(kinds) == 0, "attached": false, "requireMain": false})
	}
	return 200, map[string]any{
		"description": "OpenWhisk", "api_paths": []string{"/api/v1"},
		"support": map[string]string{"github": "https://github.com/apache/openwhisk/issues", "slack": "http://slack.openwhisk.org"},
		"limits": map[string]any{
			"actions_per_minute": l.InvocationsPerMinute, "triggers_per_minute": l.InvocationsPerMinute, "concurrent_actions": l.ConcurrentInvocations, "sequence_length": 50,
			"min_action_duration": l.Timeout.Min.Milliseconds(), "max_action_duration": l.Timeout.Max.Milliseconds(),
			"min_action_memory": l.Memory.Min, "max_action_memory": l.Memory.Max,
			"min_action_logs": disdel.Bytes(l.LogsMB.Min) * disdel.MB, "max_action_logs": disdel.Bytes(l.LogsMB.Max) * disdel.MB,
			"default_min_action_duration": l.Timeout.Min.Milliseconds(), "default_max_action_duration": l.Timeout.Max.Milliseconds(),
			"default_min_action_memory": l.Memory.Min, "default_max_action_memory": l.Memory.Max,
			"default_min_action_logs": disdel.Bytes(l.LogsMB.Min) * disdel.MB, "default_max_action_logs": disdel.Bytes(l.LogsMB.Max) * disdel.MB,
		},
		"runtimes": map[string]any{"disdel": kinds},
	}, nil
}

func (p *Platform) apiInfo(*http.Request) (int, any, error) {
	return 200, map[string]any{
		"description": "OpenWhisk API", "api_version": "1.0.0", "api_version_path": "v1", "build": "embedded", "buildno": "disdel",
		"swagger_paths": map[string]string{"ui": "/docs", "api-docs": "/api-docs"},
	}, nil
}

func (p *Platform) listNamespaces(*http.Request) (int, any, error) {
	return 200, []string{p.cfg.Namespace}, nil
}

func (p *Platform) userLimits(*http.Request) (int, any, error) {
	l := p.cfg.Limits
	return 200, map[string]int{"invocationsPerMinute": l.InvocationsPerMinute, "concurrentInvocations": l.ConcurrentInvocations, "firesPerMinute": l.InvocationsPerMinute}, nil
}
