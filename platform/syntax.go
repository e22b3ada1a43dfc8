package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// textSyntax is spray-json's text for a document that is no JSON: what was met, where, and what should have been there.
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

// endsEarly tells whether a document is right as far as it goes.
func endsEarly(data []byte) bool {
	var v json.RawMessage
	err := json.NewDecoder(bytes.NewReader(data)).Decode(&v)
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// expected is what a document that is right so far continues with.
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

// textTooDeep is spray-json's text for a document that is nested too deep.
const textTooDeep = "JSON input nested too deeply:JSON input was nested more deeply than the configured limit of " +
	"maxNesting = 1000"

// textOtherType is spray-json's text for a field of another type than it should be: what was expected, and what is
// there.
func textOtherType(data []byte, err *json.UnmarshalTypeError) string {
	name := err.Field[strings.LastIndexByte(err.Field, '.')+1:]
	var fields map[string]json.RawMessage
	json.Unmarshal(data, &fields) //nolint:errcheck // then there is nothing to show
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
