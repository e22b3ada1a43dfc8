package history

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"sync"

	"github.com/disdel/disdel"
)

// A server that keeps numbers as JavaScript does rounds integers above 2^53: PouchDB's is one. A seed that was rounded
// is another seed, and one above 2^63 cannot be read at all. A record's document has such an integer as an object of
// one field, whose value is the integer's text. Documents of earlier versions have the number itself.

// integerField is the field of an object that stands for an integer.
const integerField = "$integer"

var storedInteger = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\s*"\$integer"\s*:\s*"(-?[0-9]{1,20})"\s*\}`)
})

// fields returns a record as a server gives it back, so that two can be compared. Every number in it is the same
// number as a float64.
func fields(r *disdel.Record) (map[string]any, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	out := map[string]any{}
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	for name, v := range out {
		if out[name], err = storable(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// storable returns a JSON value with numbers that every server keeps.
func storable(v any) (out any, err error) {
	switch x := v.(type) {
	case map[string]any:
		for name := range x {
			if x[name], err = storable(x[name]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range x {
			if x[i], err = storable(x[i]); err != nil {
				return nil, err
			}
		}
	case json.Number:
		f, err := x.Float64()
		if err == nil && rounded(string(x), f) {
			return map[string]any{integerField: string(x)}, nil
		}
		return f, err
	}
	return v, nil
}

// rounded reports whether a number is an integer that a float64 writes otherwise.
func rounded(text string, f float64) bool {
	const exact = 1 << 53 // every integer up to it is a float64
	if -exact < f && f < exact {
		return false
	}
	for _, c := range text {
		if c != '-' && (c < '0' || c > '9') {
			return false // a float64 from the start
		}
	}
	return strconv.FormatFloat(f, 'f', -1, 64) != text
}

// plain returns a document with its integers as numbers. In valid JSON no text has an unescaped quote, so that the
// pattern finds objects only.
func plain(document json.RawMessage) json.RawMessage {
	if !bytes.Contains(document, []byte(integerField)) {
		return document
	}
	return storedInteger().ReplaceAll(document, []byte("$1"))
}
