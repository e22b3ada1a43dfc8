package couchlite

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
)

// A mark stands for the value of a field in a catalog: two values are equal if their marks are. That of a field which a
// document does not have is zero.
const markSize = 8

var noMark = string(make([]byte, markSize))

func markOf(value any) string {
	data, err := json.Marshal(canonical(value))
	if err != nil {
		return noMark
	}
	sum := sha256.Sum256(data)
	sum[0] |= 1 // no value has the mark of none
	return string(sum[:markSize])
}

// canonical writes equal numbers alike.
func canonical(v any) any {
	switch x := v.(type) {
	case json.Number:
		if f, err := x.Float64(); err == nil {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
		return x
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = canonical(x[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k := range x {
			out[k] = canonical(x[k])
		}
		return out
	default:
		return v
	}
}

// marksOf reads the fields of a body, and nothing else of it.
func marksOf(body []byte, fields []string) (string, error) {
	if len(body) == 0 {
		return strings.Repeat(noMark, len(fields)), nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return "", err
	}
	known := map[string]any{}
	var out strings.Builder
	for _, path := range fields {
		top, rest, deeper := strings.Cut(path, ".")
		v, read := known[top]
		if text, there := raw[top]; there && !read {
			if err := decodeNumbers(text, &v); err != nil {
				return "", err
			}
			known[top] = v
		}
		_, there := raw[top]
		if there && deeper {
			v, there = field(v, rest)
		}
		if there {
			out.WriteString(markOf(v))
		} else {
			out.WriteString(noMark)
		}
	}
	return out.String(), nil
}

// decodeNumbers reads JSON with its numbers as they are written.
func decodeNumbers(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}
