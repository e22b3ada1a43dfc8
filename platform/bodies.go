package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/disdel/disdel"
)

// plain is a body that is text, not JSON.
type plain string

// written is a body that is JSON already.
type written []byte

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
	data, ok := body.(written)
	if !ok {
		var err error
		if data, err = json.Marshal(body); err != nil {
			status, data = 500, []byte(`{"error":"`+textInternal+`"}`)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}

// readBody reads a bounded body without the blanks around it. What is no UTF-8 in it is replaced, as there.
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
	return bytes.TrimSpace(inUTF8(data)), nil
}

func inUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\uFFFD"))
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

// readEntity reads a bounded body that is to be an object. first is the field that is looked for first: of what is no
// object, that is what OpenWhisk says is missing.
func readEntity(r *http.Request, limit disdel.Bytes, first string, v any) error {
	data, err := readBody(r, limit)
	if err != nil {
		return err
	}
	if err := checkJSON(data); err != nil {
		return err
	}
	if data[0] != '{' {
		return problem{400, textMalformed("Object expected in field '" + first + "'")}
	}
	return parseJSON(data, v)
}

// checkJSON refuses what is no JSON. Nothing is, too, that is nested deeper than OpenWhisk reads it: what reads it
// next, in a container, may be ended by it.
func checkJSON(data []byte) error {
	switch {
	case tooDeep(data):
		return problem{400, textMalformed(textTooDeep)}
	case json.Valid(data):
		return nil
	}
	return parseJSON(data, new(any))
}

// deepest is how many objects and lists may be within each other: the default of spray-json, which OpenWhisk reads
// with.
const deepest = 1000

func tooDeep(data []byte) bool {
	if bytes.Count(data, []byte{'{'})+bytes.Count(data, []byte{'['}) <= deepest {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > deepest {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// parseJSON reads a document. What is wrong with it is said as spray-json says it, which OpenWhisk reads with.
func parseJSON(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var syntax *json.SyntaxError
	var other *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return problem{400, textMalformed(textSyntax(data, syntax))}
	case errors.As(err, &other):
		return problem{400, textMalformed(textOtherType(data, other))}
	default:
		return problem{400, textMalformed(err.Error())}
	}
}
