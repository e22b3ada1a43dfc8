package jsonshape

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Shape is the set of "PATH TYPE" lines that a document may have. The root's path is $; a type is one of JSON's, "any",
// or "as PATH" where a type contains itself.
type Shape map[string]bool

// Of returns the union of the shapes of docs. A doc is a value that is encoded, or a function whose first result is.
// It returns an error for a type with its own MarshalJSON that samples lacks.
func Of(samples Samples, docs ...any) (Shape, error) {
	w := &walker{samples: samples, lines: Shape{}}
	for _, doc := range docs {
		t := reflect.TypeOf(doc)
		if t.Kind() == reflect.Func {
			t = t.Out(0)
		}
		w.above = map[reflect.Type]string{}
		w.walk("$", t)
	}
	if len(w.opaque) > 0 {
		return nil, fmt.Errorf("types that encode themselves need samples: %s", strings.Join(w.opaque, ", "))
	}
	return w.lines, nil
}

type walker struct {
	samples Samples
	lines   Shape
	above   map[reflect.Type]string // structs around the current value, and their paths
	opaque  []string                // types with an encoding of their own and without samples
}

func (w *walker) add(path, kind string) { w.lines[path+" "+kind] = true }

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func implements(t, what reflect.Type) bool {
	return t.Kind() != reflect.Interface && (t.Implements(what) || reflect.PointerTo(t).Implements(what))
}

func (w *walker) walk(path string, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	list, sampled := w.samples[t]
	switch {
	case sampled:
		for _, v := range list {
			w.observe(path, decoded(v))
		}
	case t == reflect.TypeFor[time.Time]():
		w.add(path, "string")
	case t == reflect.TypeFor[json.RawMessage]():
		w.add(path, "any")
	case implements(t, jsonMarshaler):
		w.opaque = append(w.opaque, fmt.Sprintf("%s (%s)", t, path))
	case implements(t, textMarshaler):
		w.add(path, "string")
	default:
		w.walkPlain(path, t)
	}
}

func (w *walker) walkPlain(path string, t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		if at, inside := w.above[t]; inside {
			w.add(path, "as "+at)
			return
		}
		w.above[t] = path
		w.add(path, "object")
		w.fields(path, t)
		delete(w.above, t)
	case reflect.Map:
		w.add(path, "object")
		w.walk(path+".*", t.Elem())
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			w.add(path, "string")
			return
		}
		w.add(path, "array")
		w.walk(path+"[]", t.Elem())
	case reflect.Interface:
		w.add(path, "any")
	case reflect.String:
		w.add(path, "string")
	case reflect.Bool:
		w.add(path, "boolean")
	default:
		w.add(path, "number")
	}
}

// fields walks the fields that encoding/json writes. It does not resolve two fields of the same name.
func (w *walker) fields(path string, t reflect.Type) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" && options == "":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			w.fields(path, inner)
		case !f.IsExported():
		case slices.Contains(strings.Split(options, ","), "string"):
			w.add(path+"."+cmp.Or(name, f.Name), "string")
		default:
			w.walk(path+"."+cmp.Or(name, f.Name), f.Type)
		}
	}
}

func decoded(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a sample is a mistake of the test
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

// observe adds the shape of a decoded document.
func (w *walker) observe(path string, v any) {
	if v == nil {
		return
	}
	w.add(path, kindOf(v))
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			w.observe(path+"."+name, field)
		}
	case []any:
		for _, element := range v {
			w.observe(path+"[]", element)
		}
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	default:
		return "number"
	}
}

// Strange returns the "PATH TYPE" lines of a decoded document that s does not have. null fits everywhere.
func (s Shape) Strange(doc any) []string { return slices.Sorted(maps.Keys(s.strange("$", doc))) }

func (s Shape) strange(path string, v any) map[string]bool {
	out := map[string]bool{}
	switch {
	case v == nil || s[path+" any"]:
		return out
	case !s[path+" "+kindOf(v)]:
		for line := range s {
			if at, again := strings.CutPrefix(line, path+" as "); again {
				return s.strange(at, v)
			}
		}
		out[path+" "+kindOf(v)] = true
		return out
	}
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			maps.Copy(out, s.strange(s.field(path, name), field))
		}
	case []any:
		for _, element := range v {
			maps.Copy(out, s.strange(path+"[]", element))
		}
	}
	return out
}

// field is the path of an object's field: its name's, or that of any name.
func (s Shape) field(path, name string) string {
	for line := range s {
		if strings.HasPrefix(line, path+"."+name+" ") {
			return path + "." + name
		}
	}
	for line := range s {
		if strings.HasPrefix(line, path+".* ") {
			return path + ".*"
		}
	}
	return path + "." + name
}
