package platform

import (
	"net/http"
	"path"
	"strings"
)

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
		switch {
		case isWeb(r):
			p.web(w, r)
		case !plainPath(r):
			p.serve(w, r, func(*http.Request) (int, any, error) { return unclean(w, r) })
		default:
			mux.ServeHTTP(w, r)
		}
	}))
}

// plainPath tells whether a path has no parts that are empty or dots. Those lead nowhere in OpenWhisk, and the
// multiplexer would send its clients elsewhere.
func plainPath(r *http.Request) bool {
	given := r.URL.EscapedPath()
	clean := path.Clean(given)
	return given == clean || clean != "/" && given == clean+"/"
}

// unclean answers paths with parts that are empty or dots. A dot where an entity's name stands is a name with illegal
// characters: wsk writes packages/./a:b for the package a:b, since a:b alone would be an address.
func unclean(w http.ResponseWriter, r *http.Request) (int, any, error) {
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v1/namespaces/"), "/")
	if _, _, known := r.BasicAuth(); known && len(parts) == 4 && parts[2] == "." {
		return 0, nil, problem{400, textNameIllegal}
	}
	return nowhere(w, r)
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
