package dense

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
)

// eachMember calls f with each key of an object and the text of its value, which is empty for null. It returns the
// fault of a line that is no flat object. A line without text has no keys. Lists and objects of keys in skip become
// empty texts.
func eachMember(line []byte, skip map[string]bool, f func(key, text string)) *disdel.Fault {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil
	}
	if !utf8.Valid(line) {
		return &disdel.Fault{Path: "text", Msg: "the line is " + notUTF8}
	}
	in := json.NewDecoder(bytes.NewReader(line))
	in.UseNumber()
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return &disdel.Fault{Path: "json", Msg: "it is no JSON object"}
	}
	seen := map[string]bool{}
	for in.More() {
		key, err := in.Token()
		name, isText := key.(string)
		if err != nil || !isText {
			return notJSON(err)
		}
		value, err := in.Token()
		if err != nil {
			return notJSON(err)
		}
		text, why := memberText(value)
		if why != "" && skip[name] {
			if why, err = "", passValue(in); err != nil {
				return notJSON(err)
			}
		}
		switch {
		case why != "":
			return &disdel.Fault{Path: name, Msg: why, Hint: "flatten the objects, or leave this key out: --skip " + name}
		case seen[name]:
			return &disdel.Fault{Path: name, Msg: "the object has this key twice"}
		}
		seen[name] = true
		f(name, text)
	}
	if _, err := in.Token(); err != nil { // the closing brace
		return notJSON(err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return &disdel.Fault{Path: "json", Msg: "more follows after the object; write one object in each line"}
	}
	return nil
}

// passValue reads to the end of the list or object that has begun.
func passValue(in *json.Decoder) error {
	for depth := 1; depth > 0; {
		token, err := in.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
	return nil
}

func notJSON(err error) *disdel.Fault {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &disdel.Fault{Path: "json", Msg: "the object does not end on its line"}
	}
	return &disdel.Fault{Path: "json", Msg: wrongSyntax(err)}
}

// wrongSyntax says why a text is no JSON. Python writes numbers that JSON does not have.
func wrongSyntax(err error) string {
	text := "it is no JSON: " + err.Error()
	if strings.Contains(text, "character 'N'") || strings.Contains(text, "character 'I'") {
		text += "; for NaN and Infinity, write null"
	}
	return text
}

// memberText returns a value as the text of a cell; why is set for values that no cell can have.
func memberText(value json.Token) (text, why string) {
	switch v := value.(type) {
	case nil:
		return "", ""
	case bool:
		if v {
			return "true", ""
		}
		return "false", ""
	case json.Number:
		return v.String(), ""
	case string:
		return v, ""
	case json.Delim:
		if v == '[' {
			return "", "the value is a list, and a cell has one value"
		}
		return "", "the value is an object, and a cell has one value"
	default:
		return "", "the value is of an unknown type"
	}
}
