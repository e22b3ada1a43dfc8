package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
)

// textBody is a body that is plain text, not JSON.
type textBody string

// jsonBody is a body that is JSON already.
type jsonBody []byte

// writeJSON writes status and body. A nil body writes nothing.
func writeJSON(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	if text, ok := body.(textBody); ok {
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		w.WriteHeader(status)
		io.WriteString(w, string(text)) //nolint:errcheck // the client went away
		return
	}
	if made, ok := body.(webPage); ok {
		made.write(w, status)
		return
	}
	data, ok := body.(jsonBody)
	if !ok {
		var err error
		if data, err = json.Marshal(body); err != nil {
			status, data = errInternal.status, []byte(`{"error":"`+errInternal.text+`"}`)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client went away
}

// readBody reads a body of at most limit bytes, without the white space around it. Like OpenWhisk it replaces bytes
// that are not UTF-8.
func readBody(r *http.Request, limit disdel.Bytes) ([]byte, error) {
	if disdel.Bytes(r.ContentLength) > limit {
		return nil, errTooLarge("Request", r.ContentLength, limit)
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return nil, errMalformed(err.Error())
	}
	if disdel.Bytes(len(data)) > limit {
		return nil, errTooLarge("Request", max(r.ContentLength, int64(len(data))), limit)
	}
	return bytes.TrimSpace(toUTF8(data)), nil
}

func toUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\uFFFD"))
}

// maxDiscarded bounds how much of a refused body is read. No OpenWhisk client may send more.
const maxDiscarded = 64 << 20

// discardBody reads the rest of a body after the answer. A connection that is closed with unread data is reset, and a
// client that still sends would lose the answer. A client that sent Expect sends nothing after a refusal.
func discardBody(r *http.Request) {
	if r.Header.Get("Expect") == "" {
		io.CopyN(io.Discard, r.Body, maxDiscarded) //nolint:errcheck // nobody needs the rest
	}
}

// readEntity reads a JSON object of at most limit bytes. first is the field that OpenWhisk names if the body is not an
// object.
func readEntity(r *http.Request, limit disdel.Bytes, first string, v any) error {
	data, err := readBody(r, limit)
	if err != nil {
		return err
	}
	if err := checkJSON(data); err != nil {
		return err
	}
	if data[0] != '{' {
		return errFieldObject(first)
	}
	return parseJSON(data, v)
}

// checkJSON refuses a body that is not JSON, or is nested deeper than OpenWhisk accepts: deep nesting may crash the
// program that reads it next.
func checkJSON(data []byte) error {
	switch {
	case nestedTooDeep(data):
		return errTooDeep
	case json.Valid(data):
		return nil
	}
	return parseJSON(data, new(any))
}

// maxNesting is how deep objects and lists may be nested: the default of spray-json, which OpenWhisk uses.
const maxNesting = 1000

func nestedTooDeep(data []byte) bool {
	if bytes.Count(data, []byte{'{'})+bytes.Count(data, []byte{'['}) <= maxNesting {
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
			if depth++; depth > maxNesting {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// parseJSON parses a document. Its errors have the texts of spray-json.
func parseJSON(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var syntax *json.SyntaxError
	var other *json.UnmarshalTypeError
	var refusal apiError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal): // of a field's own reader
		return refusal
	case errors.As(err, &syntax):
		return errMalformed(textSyntax(data, syntax))
	case errors.As(err, &other):
		return errMalformed(textOtherType(data, other))
	default:
		return errMalformed(err.Error())
	}
}

// textSyntax is spray-json's text for invalid JSON: what was found, where, and what was expected.
func textSyntax(data []byte, err *json.SyntaxError) string {
	at := min(int(err.Offset)-1, len(data))
	met := "end-of-input"
	if endsEarly(data) {
		at = len(data)
	}
	if at = max(at, 0); at < len(data) {
		met = fmt.Sprintf("character '%c'", data[at])
	}
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	line, _, _ := bytes.Cut(data[start:], []byte{'\n'})
	number := bytes.Count(data[:at], []byte{'\n'}) + 1
	return fmt.Sprintf("Unexpected %s at input index %d (line %d, position %d), expected %s:\n%s\n%s^\n",
		met, at, number, at-start+1, expected(data[:at]), line, strings.Repeat(" ", at-start))
}

// endsEarly tells whether a document is valid so far but cut off.
func endsEarly(data []byte) bool {
	var v json.RawMessage
	err := json.NewDecoder(bytes.NewReader(data)).Decode(&v)
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// expected is what can follow a document that is valid so far.
func expected(before []byte) string {
	before = bytes.TrimRight(before, " \t\r\n")
	if len(before) == 0 {
		return "JSON Value"
	}
	switch before[len(before)-1] {
	case '{', ',':
		return `'"'`
	case ':', '[':
		return "JSON Value"
	default:
		return "end-of-input"
	}
}

// textOtherType is spray-json's text for a field of the wrong type: what was expected, and what is there.
func textOtherType(data []byte, err *json.UnmarshalTypeError) string {
	name := err.Field[strings.LastIndexByte(err.Field, '.')+1:]
	var fields map[string]json.RawMessage
	json.Unmarshal(data, &fields) //nolint:errcheck // without fields the text names the type
	met := bytes.NewBuffer(nil)
	if json.Compact(met, fields[name]) != nil {
		met.WriteString(err.Value)
	}
	expected := "List as JsArray"
	switch err.Type.Kind() {
	case reflect.Bool:
		expected = "JsBoolean"
	case reflect.String:
		expected = "String as JsString"
	}
	return "Expected " + expected + ", but got " + met.String()
}

// pretty prints JSON as OpenWhisk does: objects over several lines, lists on one, fields in their order.
func pretty(v json.RawMessage) []byte {
	var out bytes.Buffer
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	if printPretty(&out, dec, 0) != nil {
		return v
	}
	return out.Bytes()
}

func printPretty(out *bytes.Buffer, dec *json.Decoder, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return printObject(out, dec, depth)
	case json.Delim('['):
		return printList(out, dec, depth)
	}
	return printScalar(out, token)
}

func printObject(out *bytes.Buffer, dec *json.Decoder, depth int) error {
	out.WriteString("{\n")
	for n := 0; dec.More(); n++ {
		if n > 0 {
			out.WriteString(",\n")
		}
		name, err := dec.Token()
		if err != nil {
			return err
		}
		out.WriteString(strings.Repeat("  ", depth+1))
		if err := printScalar(out, name); err != nil {
			return err
		}
		out.WriteString(": ")
		if err := printPretty(out, dec, depth+1); err != nil {
			return err
		}
	}
	out.WriteString("\n" + strings.Repeat("  ", depth) + "}")
	_, err := dec.Token()
	return err
}

func printList(out *bytes.Buffer, dec *json.Decoder, depth int) error {
	out.WriteByte('[')
	for n := 0; dec.More(); n++ {
		if n > 0 {
			out.WriteString(", ")
		}
		if err := printPretty(out, dec, depth); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	_, err := dec.Token()
	return err
}

func printScalar(out *bytes.Buffer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	out.Truncate(max(0, out.Len()-1)) // the line's end
	return err
}
