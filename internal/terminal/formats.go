package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
)

// FormatNames are the output formats that -o takes. Wide is a table without a limit of its width.
const FormatNames = "table, wide, json, jsonl, yaml or name"

// Take sets the output format; ok is false if it is unknown. Wide is a table without a limit of its width.
func (u *UI) Take(format string) bool {
	switch format {
	case "table", "json", "jsonl", "yaml", "name":
		u.Format = format
	case "wide":
		u.Format, u.Columns = "table", func() int { return 0 }
	default:
		return false
	}
	return true
}

// Filter applies a jq expression to every document that is shown, and prints each of its results on a line, texts
// without quotes. It returns Invalid for an expression that is none, and for the formats yaml and name.
func (u *UI) Filter(expression string) error {
	if u.Format == "yaml" || u.Format == "name" {
		return &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("--jq filters JSON, and -o %s prints none", u.Format),
			Hint: "leave out -o",
		}
	}
	query, err := gojq.Parse(expression)
	var code *gojq.Code
	if err == nil {
		code, err = gojq.Compile(query)
	}
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("--jq: %q is no jq expression", expression), Err: err,
			Hint: "for example --jq '.[].id', or --jq '.[] | [.job.metadata.name, .accuracy]'",
		}
	}
	u.Format, u.filter = "json", code
	return nil
}

// Show writes v in the format that the user chose: as a document, as names, or as the table that print makes. Commands
// in the table get the flags of the place.
func (u *UI) Show(v any, print func(w io.Writer)) error { return u.show(v, print, u.shown) }

// ShowFile writes v as Show does, but changes no commands in it: programs read the output, such as a job file.
func (u *UI) ShowFile(v any, print func(w io.Writer)) error { return u.show(v, print, Clean) }

func (u *UI) show(v any, print func(w io.Writer), shown func(string) string) error {
	if u.Format == "table" {
		var out bytes.Buffer // whatever prints it, no name in it reaches the terminal as a command
		print(&Page{Buffer: &out, Columns: u.Columns()})
		_, err := io.WriteString(u.Out, shown(out.String()))
		return Unwritten(err)
	}
	text, err := u.document(v)
	if err != nil {
		return err
	}
	_, err = u.Out.Write(text)
	return Unwritten(err)
}

// document is v in a format for programs.
func (u *UI) document(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	if u.Format == "json" && u.filter == nil {
		enc.SetIndent("", "  ")
		err := enc.Encode(v)
		return CleanJSON(out.Bytes()), err
	}
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	switch {
	case u.filter != nil:
		return u.filtered(out.Bytes())
	case u.Format == "jsonl":
		return documentLines(out.Bytes()), nil
	}
	var tree any // through JSON, so that all formats have the same field names
	if u.Format == "yaml" {
		if err := yaml.Unmarshal(out.Bytes(), &tree); err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(tree)
		return []byte(Clean(string(text))), err
	}
	if err := json.Unmarshal(out.Bytes(), &tree); err != nil {
		return nil, err
	}
	names := namesIn(tree)
	if names == nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Msg: "-o name: this command prints nothing that has a name", Hint: "use -o json",
		}
	}
	for i := range names {
		names[i] = OneLine(names[i]) + "\n"
	}
	return []byte(strings.Join(names, "")), nil
}

// filtered is the results of the filter for a document, a line each.
func (u *UI) filtered(document []byte) ([]byte, error) {
	var tree any
	if err := json.Unmarshal(document, &tree); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for results := u.filter.Run(tree); ; {
		v, more := results.Next()
		if !more {
			return out.Bytes(), nil
		}
		switch v := v.(type) {
		case error:
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Msg: "--jq: the expression does not fit what this command prints", Err: v,
				Hint: "leave out --jq and use -o json to see it",
			}
		case string:
			fmt.Fprintln(&out, Clean(v))
		default:
			text, err := gojq.Marshal(v)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "%s\n", CleanJSON(text))
		}
	}
}

// documentLines is a line for each element of a list; a document that is no list is one line.
func documentLines(document []byte) []byte {
	var list []json.RawMessage
	if json.Unmarshal(document, &list) != nil || list == nil {
		if list = onlyList(document); list == nil {
			return CleanJSON(document)
		}
	}
	var out bytes.Buffer
	for _, element := range list {
		fmt.Fprintf(&out, "%s\n", CleanJSON(element))
	}
	return out.Bytes()
}

// onlyList is the list that a document of nothing but lists is about; nil for any other document.
func onlyList(document []byte) []json.RawMessage {
	var lists map[string][]json.RawMessage
	if json.Unmarshal(document, &lists) != nil {
		return nil
	}
	for _, field := range listFields {
		if list, ok := lists[field]; ok {
			return list
		}
	}
	return nil
}

// nameFields are the fields that a document is known by, in the order of preference.
var nameFields = []string{"id", "job", "name", "tenant", "model", "weights", "current"}

// listFields are fields with the elements that the document of a list names.
var listFields = []string{"models", "contexts", "jobs", "removed", "items", "tenants", "networks"}

// namesIn is the ids or names of a document, NAME:vN for versions of models; nil if it has none.
func namesIn(tree any) (names []string) {
	switch v := tree.(type) {
	case string:
		return []string{v}
	case []any:
		names = []string{}
		for _, element := range v {
			names = append(names, namesIn(element)...)
		}
		return names
	case map[string]any:
		for _, field := range listFields {
			if list, ok := v[field].([]any); ok {
				return namesIn(list)
			}
		}
		version, versioned := v["version"].(float64)
		for _, field := range nameFields {
			if name, ok := v[field].(string); ok && (field == "name" || !versioned) {
				if versioned {
					name = fmt.Sprintf("%s:v%.0f", name, version)
				}
				return []string{name}
			}
		}
		if len(v) == 1 { // a document in another one
			return namesIn(v[slices.Collect(maps.Keys(v))[0]])
		}
	}
	return nil
}
