package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/disdel/disdel"
)

// plain is a body that is text, not JSON.
type plain string

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
