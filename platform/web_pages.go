package platform

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// webForm is the extension of a web action's name, which selects the form of the answer.
type webForm string

// The forms. Names without an extension have the form http.
const (
	formHTTP webForm = ".http"
	formJSON webForm = ".json"
	formHTML webForm = ".html"
	formSVG  webForm = ".svg"
	formText webForm = ".text"
)

// webFormOf splits a name into base and extension.
func webFormOf(name string) (string, webForm) {
	for _, form := range []webForm{formHTTP, formJSON, formHTML, formSVG, formText} {
		if base, ok := strings.CutSuffix(name, string(form)); ok {
			return base, form
		}
	}
	return name, formHTTP
}

// webPage is a body with its own headers.
type webPage struct {
	header http.Header
	body   []byte
}

// write sends the page. As in OpenWhisk, the action's headers are added to the platform's.
func (v webPage) write(w http.ResponseWriter, status int) {
	for name, values := range v.header {
		for _, value := range values {
			w.Header().Add(name, value)
		}
	}
	w.WriteHeader(status)
	w.Write(v.body) //nolint:errcheck // the client went away
}

// activationError is the error text of an answer that has an activation's id.
type activationError string

// page makes the answer from an ended activation. For an application error it shows the error itself.
func (c *webCall) page(rec *activation) (int, any, error) {
	result := rec.Response.Result
	switch rec.Response.Status {
	case statusSuccess:
	case statusApplication:
		var e struct {
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(result, &e) != nil || len(e.Error) == 0 {
			return 0, nil, errWebNoProperty
		}
		result = e.Error
	default:
		return 0, nil, errWebProcessing
	}
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	status, made, err := c.target.form.page(result)
	if err == nil {
		err = acceptable(c.Request, status, made)
	}
	return status, made, err
}

func (f webForm) page(result json.RawMessage) (int, webPage, error) {
	switch f {
	case formJSON:
		if result[0] != '{' && result[0] != '[' {
			return 0, webPage{}, errWebMedia("application/json")
		}
		return httpDone, typedPage("application/json", pretty(result)), nil
	case formHTML:
		return ofText(result, "html", "text/html; charset=UTF-8", "text/html")
	case formSVG:
		return ofText(result, "svg", "image/svg+xml", "image/svg+xml")
	case formText:
		return textPage(result)
	default:
		return httpPage(result)
	}
}

func typedPage(contentType string, body []byte) webPage {
	return webPage{http.Header{"Content-Type": {contentType}}, body}
}

// field is the first of these fields that an object has. A value that is not an object stands for itself.
func field(result json.RawMessage, names ...string) (json.RawMessage, bool) {
	if result[0] != '{' {
		return result, true
	}
	var fields map[string]json.RawMessage
	json.Unmarshal(result, &fields) //nolint:errcheck // an object, as was looked
	for _, name := range names {
		if v, ok := fields[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// ofText is a page with a result's text.
func ofText(result json.RawMessage, name, contentType, media string) (int, webPage, error) {
	v, _ := field(result, "body", name)
	var text string
	if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &text) != nil {
		return 0, webPage{}, errWebMedia(media)
	}
	return httpDone, typedPage(contentType, []byte(text)), nil
}

func textPage(result json.RawMessage) (int, webPage, error) {
	v, ok := field(result, "body", "text")
	if !ok {
		return 0, webPage{}, errWebNoProperty
	}
	text := []byte(v)
	switch v[0] {
	case '"':
		var s string
		json.Unmarshal(v, &s) //nolint:errcheck // it is a text, as was looked
		text = []byte(s)
	case '{', '[':
		text = pretty(v)
	}
	return httpDone, typedPage("text/plain; charset=UTF-8", text), nil
}

// webResult is a result that sets status, headers and body.
type webResult struct {
	Status  json.RawMessage `json:"statusCode"`
	Headers json.RawMessage `json:"headers"`
	Body    json.RawMessage `json:"body"`
}

// httpPage is a page with the status, headers and body of the result.
func httpPage(result json.RawMessage) (int, webPage, error) {
	invalid := errWebMedia("message/http")
	var reply webResult
	if result[0] != '{' || json.Unmarshal(result, &reply) != nil {
		return 0, webPage{}, invalid
	}
	header, ok := headersOf(reply.Headers)
	status, valid := statusOf(reply.Status)
	if !ok || !valid {
		return 0, webPage{}, invalid
	}
	contentType := header.Get("Content-Type")
	header.Del("Content-Type")
	if len(reply.Body) == 0 || string(reply.Body) == "null" || string(reply.Body) == `""` {
		if status == 0 {
			status = httpNoBody
		}
		return status, webPage{header, nil}, nil
	}
	if status == 0 {
		status = httpDone
	}
	contentType, body, err := bodyOf(reply.Body, contentType)
	header.Set("Content-Type", contentType)
	return status, webPage{header, body}, err
}

// statusOf reads a status from a number or a text; 0 if there is none.
func statusOf(v json.RawMessage) (int, bool) {
	if len(v) == 0 {
		return 0, true
	}
	text := string(v)
	if v[0] == '"' && json.Unmarshal(v, &text) != nil {
		return 0, false
	}
	if integer, fraction, ok := strings.Cut(text, "."); ok && strings.Trim(fraction, "0") == "" && v[0] != '"' {
		text = integer
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= httpDone && http.StatusText(n) != ""
}

// ofTheServer are transport headers, which an action cannot set.
var ofTheServer = []string{
	"Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Trailer", "Te", "Upgrade", "X-Request-Id",
}

// headersOf reads headers whose values are texts, Booleans, numbers, or lists of these.
func headersOf(v json.RawMessage) (http.Header, bool) {
	out := http.Header{}
	if len(v) == 0 {
		return out, true
	}
	var fields map[string]json.RawMessage
	if v[0] != '{' || json.Unmarshal(v, &fields) != nil {
		return nil, false
	}
	for name, value := range fields {
		list, ok := headerValues(value)
		if !ok {
			return nil, false
		}
		for _, text := range list {
			out.Add(name, text)
		}
	}
	for _, name := range ofTheServer {
		out.Del(name)
	}
	return out, true
}

func headerValues(v json.RawMessage) ([]string, bool) {
	switch v[0] {
	case '"':
		var text string
		err := json.Unmarshal(v, &text)
		return []string{text}, err == nil
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(v, &list) != nil {
			return nil, false
		}
		var out []string
		for _, inner := range list {
			more, ok := headerValues(inner)
			if !ok {
				return nil, false
			}
			out = append(out, more...)
		}
		return out, true
	case '{', 'n':
		return nil, false
	default: // a number or a truth value
		return []string{string(v)}, true
	}
}

// bodyOf returns content type and body: a text as it is, or decoded from base64 if the type is not text; other JSON
// needs a JSON type.
func bodyOf(v json.RawMessage, contentType string) (string, []byte, error) {
	kind := ""
	if contentType != "" {
		parsed, _, err := mime.ParseMediaType(contentType)
		if err != nil || !strings.Contains(parsed, "/") {
			return "", nil, errWebContentType
		}
		kind = parsed
	}
	if v[0] != '"' {
		switch {
		case kind == "":
			return "application/json", pretty(v), nil
		case jsonFamily(kind):
			return kind, pretty(v), nil
		default:
			return "", nil, errWebMismatch
		}
	}
	var text string
	if json.Unmarshal(v, &text) != nil {
		return "", nil, errWebMismatch
	}
	if kind == "" {
		return "text/html; charset=UTF-8", []byte(text), nil
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	switch {
	case !isText(contentType) && err != nil:
		return "", nil, errWebMismatch
	case !isText(contentType), jsonFamily(kind) && err == nil && len(decoded) > 0:
		return contentType, decoded, nil
	case kind == "application/json":
		return kind, []byte(text), nil
	case !strings.Contains(contentType, "charset"):
		return contentType + "; charset=UTF-8", []byte(text), nil
	default:
		return contentType, []byte(text), nil
	}
}
