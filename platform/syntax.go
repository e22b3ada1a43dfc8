package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// expected is what a document that is right so far goes on with.
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
