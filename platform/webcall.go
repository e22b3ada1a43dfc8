package platform

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
)

// webCall is a request for a web action, which becomes the action's arguments.
type webCall struct {
	*http.Request
	target *webTarget
	caller *user // nil: nobody that is known
	raw    bool  // the action takes query and body as they are

	given             json.RawMessage // an object of what query and body set
	overridesReserved bool
}

// reserved are the arguments that tell of the request; no query or body may set them.
var reserved = []string{"__ow_method", "__ow_headers", "__ow_path", "__ow_user", "__ow_query", "__ow_body"}

// arguments reads the request. An action that is not raw gets the fields of query and body, the body's first, or a body
// that has no fields as __ow_body.
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
		if c.given, err = json.Marshal(args); err != nil {
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

// readWhole reads a bounded body with its blanks.
func readWhole(r *http.Request, limit disdel.Bytes) ([]byte, error) {
	if disdel.Bytes(r.ContentLength) > limit {
		return nil, problem{413, textTooLarge("Request", r.ContentLength, limit)}
	}
	var data bytes.Buffer
	n, err := data.ReadFrom(http.MaxBytesReader(nil, r.Body, int64(limit)))
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return data.Bytes(), nil
	case errors.As(err, &large):
		return nil, problem{413, textTooLarge("Request", max(r.ContentLength, n+1), limit)}
	default:
		return nil, problem{400, textMalformed(err.Error())}
	}
}

// readBody takes a body apart: the fields of an object or a form, or a value that has none. A body that is no text is
// given as base64.
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
		return jsonBody(data)
	case kind == "application/x-www-form-urlencoded" && !c.raw:
		form, err := url.ParseQuery(string(data))
		if err != nil {
			return nil, nil, problem{400, textMalformed(err.Error())}
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

func jsonBody(data []byte) (fields map[string]any, body any, err error) {
	data = bytes.TrimSpace(inUTF8(data))
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

// headers are the request's in lower case, the last of those that came several times. The length is none of them: there
// it belongs to the body.
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

// requestHeaders is a request's headers by their names in lower case, without those of its body.
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

// isText tells whether a content type is of text: one with a character set, text/*, and what the library that serves
// OpenWhisk's requests knows as text beside.
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
