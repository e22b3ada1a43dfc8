package platform

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
)

// webPrefix is the path of web actions, which anybody may call by any method. An action is there if its annotation
// web-export is true.
const webPrefix = "/api/v1/web/"

// The headers that preflight requests of web actions allow, for every page.
const (
	webHeaders = corsHeaders
	webMethods = "OPTIONS, GET, DELETE, POST, PUT, HEAD, PATCH"
)

// isWeb tells whether a request is for a web action, with any dots in its path resolved.
func isWeb(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, webPrefix) && strings.HasPrefix(path.Clean(r.URL.Path), webPrefix)
}

// webTarget is what a path names: an action, the form of the answer, and the rest of the path.
type webTarget struct {
	ns, pkg, name string
	form          webForm
	rest          string // as sent, with the slash
}

// parseWebPath reads NAMESPACE/PACKAGE/NAME[.EXTENSION][/REST]. The package "default" means none.
func parseWebPath(r *http.Request) (webTarget, bool) {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.EscapedPath(), webPrefix), "/", 4)
	if len(parts) < 3 {
		return webTarget{}, false
	}
	for i, part := range parts[:3] {
		name, err := url.PathUnescape(part)
		if err != nil || checkName(name) != nil {
			return webTarget{}, false
		}
		parts[i] = name
	}
	out := webTarget{ns: parts[0], pkg: parts[1]}
	if out.pkg == "default" {
		out.pkg = ""
	}
	out.name, out.form = webFormOf(parts[2])
	if len(parts) > 3 {
		out.rest = "/" + parts[3]
	}
	return out, checkName(out.name) == nil
}

func (t *webTarget) path() pathName {
	if t.pkg == "" {
		return pathName{t.ns, t.name}
	}
	return pathName{t.ns + "/" + t.pkg, t.name}
}

// web answers a request for a web action.
func (p *Platform) web(w http.ResponseWriter, r *http.Request) {
	p.serve(w, r, func(r *http.Request) (int, any, error) {
		target, ok := parseWebPath(r)
		if !ok || !webMethod(r.Method) {
			return 0, nil, errNoRoute
		}
		owner, found, err := p.exported(&target)
		if err != nil {
			return 0, nil, target.missing(err)
		}
		if !isAnnotationTrue(found.Annotations, "web-custom-options") {
			allowEveryPage(w.Header(), r)
			if r.Method == http.MethodOptions {
				return httpDone, webPage{}, nil
			}
		}
		caller := p.callerOf(r)
		if r.Method != http.MethodOptions && !mayCall(found.Annotations, r, caller) {
			return 0, nil, errWebNoKey
		}
		call := webCall{Request: withDeadline(w, r), target: &target, caller: caller}
		defer discardBody(call.Request)
		call.raw = isAnnotationTrue(found.Annotations, "raw-http")
		return p.invokeWeb(&call, owner, found)
	})
}

func webMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodDelete, http.MethodPost, http.MethodPut, http.MethodHead, http.MethodOptions,
		http.MethodPatch:
		return true
	}
	return false
}

// allowEveryPage sets the CORS headers that OpenWhisk sends for actions without web-custom-options.
func allowEveryPage(h http.Header, r *http.Request) {
	allowed := webHeaders
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		allowed = asked
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", webMethods)
	h.Set("Access-Control-Allow-Headers", allowed)
}

// exported finds a web action and its owner. The refusal does not tell whether an action exists that is not exported.
func (p *Platform) exported(target *webTarget) (*user, *resolved, error) {
	owner := p.namespace(target.ns)
	if owner == nil {
		return nil, nil, errNoEntity
	}
	found, err := p.findAction(owner, target.path())
	var pr apiError
	switch {
	case errors.As(err, &pr):
		return nil, nil, errNoEntity
	case err != nil:
		return nil, nil, err
	case !isAnnotationTrue(found.Annotations, "web-export"):
		return nil, nil, errNoEntity
	}
	return owner, found, nil
}

// missing is the refusal of an action that does not exist. `wsk api` manages the API gateway by web actions of
// the package apimgmt, so it gets its own text.
func (t *webTarget) missing(err error) error {
	if t.ns == CatalogNamespace && t.pkg == "apimgmt" && err == error(errNoEntity) {
		return errNoGateway
	}
	return err
}

// isAnnotationTrue tells whether an annotation is the JSON value true.
func isAnnotationTrue(list []keyValue, key string) bool {
	for _, a := range list {
		if a.Key == key {
			return string(a.Value) == "true"
		}
	}
	return false
}

// callerOf is the user of a request's key; nil without a valid key.
func (p *Platform) callerOf(r *http.Request) *user {
	name, key, ok := r.BasicAuth()
	if !ok {
		return nil
	}
	return p.userOf(name + ":" + key)
}

// mayCall checks the annotation require-whisk-auth: true asks for a user's key, a text or number for the same value in
// a header.
func mayCall(annotations []keyValue, r *http.Request, caller *user) bool {
	for _, a := range annotations {
		if a.Key != "require-whisk-auth" {
			continue
		}
		parameters := []byte(r.Header.Get("X-Require-Whisk-Auth"))
		var text string
		var number json.Number
		switch {
		case string(a.Value) == "true":
			return caller != nil
		case json.Unmarshal(a.Value, &text) == nil && string(a.Value) != "null":
			return len(parameters) > 0 && subtle.ConstantTimeCompare(parameters, []byte(text)) == 1
		case json.Unmarshal(a.Value, &number) == nil && number != "":
			return subtle.ConstantTimeCompare(parameters, []byte(number)) == 1
		default:
			return false
		}
	}
	return true
}

// withDeadline bounds the time to read a request's body.
func withDeadline(w http.ResponseWriter, r *http.Request) *http.Request {
	t := bodyDeadline{w, r}
	if r.ContentLength == 0 {
		t.set(0)
	} else {
		t.set(bodyWait(r.ContentLength))
	}
	out := *r // a copy: the server looks at its own request's body
	out.Body = &timedBody{ReadCloser: r.Body, deadline: t}
	return &out
}

// invokeWeb runs a web action as its owner and turns the result into a page.
func (p *Platform) invokeWeb(call *webCall, owner *user, found *resolved) (int, any, error) {
	payload, err := call.arguments(p.cfg.Limits.Payload)
	if err != nil {
		return 0, nil, err
	}
	if !call.raw && (call.overridesReserved || found.isFinal() && found.setsParameter(call.parameters)) {
		return 0, nil, errParameterSet
	}
	run, err := p.begin(owner, found, payload, true)
	if err != nil {
		return 0, nil, err
	}
	if !p.await(call.Context(), run, p.cfg.BlockingWait) {
		return httpRunning, withActivationID{run.id, activationError(textNotReady)}, nil
	}
	status, body, err := call.page(run.record)
	var pr apiError
	if errors.As(err, &pr) {
		return pr.status, withActivationID{run.id, activationError(pr.text)}, nil
	}
	return status, withActivationID{run.id, body}, err
}

// acceptable refuses a page whose type the client does not accept.
func acceptable(r *http.Request, status int, made webPage) error {
	contentType := made.header.Get("Content-Type")
	if len(made.body) == 0 || status >= http.StatusBadRequest || contentType == "" {
		return nil
	}
	kind, _, _ := strings.Cut(contentType, ";")
	main, _, _ := strings.Cut(kind, "/")
	if accepts(r, "*/*", main+"/*", strings.ToLower(strings.TrimSpace(kind))) {
		return nil
	}
	return errNotAcceptable(contentType)
}

// webCall is a request for a web action.
type webCall struct {
	*http.Request
	target *webTarget
	caller *user // nil: no valid key
	raw    bool  // the action gets query and body unparsed

	parameters        json.RawMessage // object with the parameters from query and body
	overridesReserved bool
}

// reserved are the arguments that describe the request. Query and body cannot set them.
var reserved = []string{"__ow_method", "__ow_headers", "__ow_path", "__ow_user", "__ow_query", "__ow_body"}

// arguments are the action's parameters. Unless the action is raw it gets the fields of query and body, or as __ow_body
// a body that has no fields.
func (c *webCall) arguments(limit disdel.Bytes) (json.RawMessage, error) {
	data, err := readWhole(c.Request, limit)
	if err != nil {
		return nil, err
	}
	fields, body, err := c.readBody(data)
	if err != nil {
		return nil, err
	}
	args := map[string]any{}
	if c.raw {
		args["__ow_query"], args["__ow_body"] = c.URL.RawQuery, ""
	} else {
		for name, values := range c.URL.Query() {
			args[name] = values[len(values)-1]
		}
		maps.Copy(args, fields)
		c.overridesReserved = slices.ContainsFunc(reserved, func(name string) bool { _, set := args[name]; return set })
		if c.parameters, err = json.Marshal(args); err != nil {
			return nil, err
		}
	}
	if body != nil {
		args["__ow_body"] = body
	}
	args["__ow_method"], args["__ow_path"] = strings.ToLower(c.Method), c.target.rest
	args["__ow_headers"] = c.headers(len(data) > 0)
	if c.caller != nil {
		args["__ow_user"] = c.caller.Name
	}
	return json.Marshal(args)
}

// readWhole reads a body of at most limit bytes with its white space.
func readWhole(r *http.Request, limit disdel.Bytes) ([]byte, error) {
	if disdel.Bytes(r.ContentLength) > limit {
		return nil, errTooLarge("Request", r.ContentLength, limit)
	}
	var data bytes.Buffer
	n, err := data.ReadFrom(http.MaxBytesReader(nil, r.Body, int64(limit)))
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return data.Bytes(), nil
	case errors.As(err, &large):
		return nil, errTooLarge("Request", max(r.ContentLength, n+1), limit)
	default:
		return nil, errMalformed(err.Error())
	}
}

// readBody returns the fields of a body that is an object or a form, or its value. A body that is not text becomes
// base64.
func (c *webCall) readBody(data []byte) (fields map[string]any, body any, err error) {
	typed := c.Header.Get("Content-Type")
	if len(data) == 0 && typed == "" {
		return nil, nil, nil
	}
	kind, _, err := mime.ParseMediaType(cmp.Or(typed, octets))
	if err != nil {
		kind = octets
	}
	switch {
	case jsonFamily(kind) && !c.raw:
		return readJSONBody(data)
	case kind == "application/x-www-form-urlencoded" && !c.raw:
		form, err := url.ParseQuery(string(data))
		if err != nil {
			return nil, nil, errMalformed(err.Error())
		}
		fields = map[string]any{}
		for name, values := range form {
			fields[name] = values[len(values)-1]
		}
		return fields, nil, nil
	case kind == "application/json" || !isText(typed) || !utf8.Valid(data):
		return nil, base64.StdEncoding.EncodeToString(data), nil
	default:
		return nil, string(data), nil
	}
}

func readJSONBody(data []byte) (fields map[string]any, body any, err error) {
	data = bytes.TrimSpace(toUTF8(data))
	if len(data) == 0 {
		return nil, nil, nil
	}
	if err := checkJSON(data); err != nil {
		return nil, nil, err
	}
	value := json.RawMessage(data)
	var object map[string]json.RawMessage
	if value[0] != '{' || json.Unmarshal(value, &object) != nil {
		return nil, value, nil
	}
	fields = map[string]any{}
	for name, v := range object {
		fields[name] = v
	}
	return fields, nil, nil
}

// headers are the request's headers in lower case. Of repeated headers the last counts. Content-Length is left out, as
// in OpenWhisk.
func (c *webCall) headers(hasBody bool) map[string]string {
	out := requestHeaders(c.Request)
	if kind := c.Header.Values("Content-Type"); len(kind) > 0 {
		out["content-type"] = kind[len(kind)-1]
	}
	if hasBody && out["content-type"] == "" {
		out["content-type"] = octets
	}
	return out
}

// requestHeaders are a request's headers in lower case without those of its body.
func requestHeaders(r *http.Request) map[string]string {
	out := map[string]string{"host": r.Host}
	for name, values := range r.Header {
		out[strings.ToLower(name)] = values[len(values)-1]
	}
	delete(out, "content-length")
	delete(out, "content-type")
	return out
}

const octets = "application/octet-stream"

func jsonFamily(kind string) bool {
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// isText tells whether a content type is text for the library that serves OpenWhisk's requests.
func isText(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	return params["charset"] != "" || strings.HasPrefix(kind, "text/") || slices.Contains([]string{
		"application/json", "application/x-www-form-urlencoded", "application/xml", "application/xml-dtd",
		"application/xhtml+xml", "application/atom+xml", "application/rss+xml", "application/soap+xml",
		"application/vnd.google-earth.kml+xml", "application/javascript", "application/problem+json",
		"application/json-patch+json", "application/merge-patch+json",
	}, kind)
}
