package sparse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// Schema says what the fields of a CSV file are.
type Schema struct {
	Separator string   `json:"separator"` // one character; "": a comma
	Header    bool     `json:"header"`    // the first line has the names of the fields; those that Fields has not are skipped
	Missing   []string `json:"missing"`   // texts that stand for no value; an empty field always does
	Hash      int      `json:"hash"`      // columns that categories are hashed to
	Fields    []Field  `json:"fields"`    // in the order of the file, or under a header in any
}

// Field is a field of a CSV file, or several alike.
type Field struct {
	Name  string `json:"name"`  // of the header; else it only tells one category from another
	Kind  Kind   `json:"kind"`  // what it is
	Scale Scale  `json:"scale"` // of a number
	Count int    `json:"count"` // so many, one after the other, NAME1, NAME2, ...; 0 or 1: one called NAME
}

// Kind is what a field is.
type Kind string

// The kinds.
const (
	Target   Kind = "target"   // what is to be learned; exactly one
	Number   Kind = "number"   // one column, and another one for rows in which it is missing
	Category Kind = "category" // one of the hashed columns, by its name and text; a missing one is a text like others
	Skip     Kind = "skip"
)

// Scale says how a number becomes a value of about -1 to 1. What it goes by is counted over the rows to learn from.
type Scale string

// The scales.
const (
	Standard Scale = "standard" // less the mean, over the standard deviation; also what "" means
	Log      Scale = "log"      // the same of sign(x) log(1+|x|), for counts and amounts
	Range    Scale = "range"    // from 0 at the least to 1 at the largest
	AsIs     Scale = "none"
)

// ReadSchema reads a schema as JSON. It returns Invalid, with the place, for what is none.
func ReadSchema(in io.Reader, name string) (s Schema, err error) {
	data, err := io.ReadAll(io.LimitReader(in, schemaBytes))
	if err != nil {
		return s, &disdel.Error{Kind: disdel.Unavailable, Op: "read " + name, Err: err}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + name, Err: err, Hint: "a schema is JSON: " + schemaExample,
		}
	}
	return s, s.check()
}

const (
	schemaBytes   = 1 << 20
	schemaExample = `{"header": true, "hash": 100000, "fields": [{"name": "clicked", "kind": "target"}, ` +
		`{"name": "age", "kind": "number"}, {"name": "site", "kind": "category"}]}`
)

// check refuses a schema that no file can have.
func (s *Schema) check() error {
	bad := func(format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read schema", Msg: fmt.Sprintf(format, args...), Hint: schemaExample,
		}
	}
	targets, categories, names := 0, false, map[string]bool{}
	for i, f := range s.Fields {
		switch f.Kind {
		case Target:
			targets += max(1, f.Count)
		case Category:
			categories = true
		case Number, Skip:
		default:
			return bad("field %d is a %q, and kinds are target, number, category and skip", i+1, f.Kind)
		}
		if f.Scale != "" && (f.Kind != Number || !slices.Contains([]Scale{Standard, Log, Range, AsIs}, f.Scale)) {
			return bad("field %d has the scale %q: numbers have standard, log, range or none", i+1, f.Scale)
		}
		if f.Count < 0 || f.Count > mostFields || s.Header && (f.Name == "" || f.Count > 1) {
			return bad("field %d: a field under a header has a name of its own", i+1)
		}
		if f.Name != "" && names[f.Name] {
			return bad("there are two fields %q", f.Name)
		}
		names[f.Name] = true
	}
	switch {
	case targets != 1:
		return bad("it has %d targets, and there is one", targets)
	case categories && (s.Hash < 1 || s.Hash > mostHashed):
		return bad("categories are hashed to %d columns, of 1 to %d", s.Hash, mostHashed)
	case len([]rune(s.Separator)) > 1 || strings.ContainsAny(s.Separator, "\"\r\n"):
		return bad("the separator is %q, and it is one character", s.Separator)
	default:
		return nil
	}
}

const (
	mostFields = 1 << 16
	mostHashed = 1 << 30
)

// each is every field by itself.
func (s *Schema) each() []Field {
	var out []Field
	for i, f := range s.Fields {
		if f.Name == "" {
			f.Name = fmt.Sprint("field", i+1)
		}
		if f.Count <= 1 {
			out = append(out, f)
			continue
		}
		for k := range f.Count {
			one := f
			one.Name = fmt.Sprint(f.Name, k+1)
			out = append(out, one)
		}
	}
	return out
}
