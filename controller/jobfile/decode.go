package jobfile

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
)

// root reads the document.
func (r *reader) root(n *yaml.Node, job *disdel.Job) {
	if n.Kind != yaml.MappingNode {
		r.fault(at(n), "", "a job file starts with apiVersion: "+disdel.APIVersion, "expected an object, found %s", found(n))
		return
	}
	r.object(n, "", "", reflect.ValueOf(job).Elem())
}

// value reads n, the value of field f at path, into v; of an option, v is the whole layer.
func (r *reader) value(n *yaml.Node, f *field, path string, v reflect.Value) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.fault(r.places[path], path, "write the value out", "aliases are not read")
	case n.Kind != yaml.ScalarNode && n.ShortTag() != "!!map" && n.ShortTag() != "!!seq":
		r.fault(r.places[path], path, "take the tag away", "expected %s, found one tagged %s", f.form.want(), shorten(n.Tag))
	case f.form == object && isNull(n):
		r.object(&yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Column: n.Column}, f.path, path, v)
	case f.form == object && n.Kind == yaml.MappingNode:
		r.object(n, f.path, path, v)
	case f.form == list && n.Kind == yaml.SequenceNode:
		r.list(n, f, path, v)
	case f.form == syncMode && n.Kind != yaml.SequenceNode:
		r.sync(n, f, path, v)
	case f.form >= boolean && n.Kind != yaml.MappingNode:
		r.option(n, f, path, v.Addr().Interface().(*disdel.Layer))
	case f.form != object && f.form != list && f.form < boolean && n.Kind == yaml.ScalarNode:
		r.scalar(n, f, path, v)
	default:
		r.wrongForm(n, f, path)
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func (r *reader) wrongForm(n *yaml.Node, f *field, path string) {
	r.fault(r.places[path], path, f.write(), "expected %s, found %s", f.form.want(), found(n))
}

// object reads the keys of n into v, which is a struct, a pointer to one or a map of text. pattern is the object's path
// in the table, path the one in the file.
func (r *reader) object(n *yaml.Node, pattern, path string, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if pattern == outer(policyPath) {
		n = spreadPolicy(n)
	}
	r.keys(n, path, func(key string, k, value *yaml.Node) {
		f, at := child(pattern, key), join(path, key)
		switch {
		case f == nil:
			r.unknown(keyPlace(k, value), pattern, path, key)
		case f.later:
			r.fault(keyPlace(k, value), at, "take it out", "known, but not supported in this version")
		case v.Kind() == reflect.Map:
			r.label(keyPlace(k, value), value, f, at, key, v)
		case f.form >= boolean:
			r.value(value, f, at, v)
		default:
			r.value(value, f, at, member(v, key))
		}
	})
	r.missing(pattern, path)
	r.defaults(pattern, path, v)
}

// keys calls each for every key of n that is text and new, and remembers where it stands.
func (r *reader) keys(n *yaml.Node, path string, each func(key string, k, value *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		at := join(path, k.Value)
		line, twice := seen[k.Value]
		switch {
		case k.Kind != yaml.ScalarNode || k.ShortTag() == "!!null":
			r.fault(place{k.Line, k.Column}, path, "", "a key is plain text, not %s", found(k))
		case k.ShortTag() == "!!merge":
			r.fault(place{k.Line, k.Column}, at, "write the fields out", "merge keys are not read")
		case twice:
			r.fault(place{k.Line, k.Column}, at, "", "given twice, first in line %d", line)
		default:
			seen[k.Value] = k.Line
			r.places[at] = placeOf(k, value)
			each(k.Value, k, value)
		}
	}
}

// unknown adds a fault for a key that the object does not know.
func (r *reader) unknown(p place, pattern, path, key string) {
	if r.full() {
		return
	}
	if pattern == "" && key == matrixKey {
		r.fault(p, key, "disdel batch runs a job for each of its values", "unknown field")
		return
	}
	near := closestKey(key, childNames(pattern))
	if near != "" {
		r.meant[join(path, near)] = true
	}
	r.fault(p, join(path, key), suggest(pattern, key, near), "unknown field")
}

// missing adds a fault for every required key that the object at path does not have.
func (r *reader) missing(pattern, path string) {
	for _, f := range children(pattern) {
		if at := join(path, f.name()); f.required && !r.given(at) && !r.meant[at] {
			r.fault(r.places[path], at, f.write(), "missing")
		}
	}
}

// list reads model.layers, the only list of objects.
func (r *reader) list(n *yaml.Node, f *field, path string, v reflect.Value) {
	switch count := len(n.Content); {
	case count == 0:
		r.fault(r.places[path], path, f.write(), "needs at least one item")
	case count > maxLayers:
		r.fault(r.places[path], path, "", "has %d items; at most %d are read", count, maxLayers)
		return
	}
	layers := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	v.Set(layers)
	for i, item := range n.Content {
		r.layer(item, child(f.path+"[]", ""), fmt.Sprintf("%s[%d]", path, i), layers.Index(i))
	}
}

// layer reads one item of model.layers: an object with one key, the layer's kind.
func (r *reader) layer(n *yaml.Node, f *field, path string, v reflect.Value) {
	r.places[path] = at(n)
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		r.fault(at(n), path, "write - dense: {units: 10}", "a layer is an object with one key, its kind; found %s",
			keysFound(n))
		return
	}
	r.keys(n, path, func(key string, _, value *yaml.Node) {
		v.FieldByName("Kind").SetString(shorten(key))
		r.value(value, f, join(path, key), v)
	})
}

func keysFound(n *yaml.Node) string {
	if n.Kind == yaml.MappingNode {
		return fmt.Sprintf("%d keys", len(n.Content)/2)
	}
	return found(n)
}

// label reads one entry of metadata.labels.
func (r *reader) label(p place, n *yaml.Node, f *field, path, key string, v reflect.Value) {
	if !labelKey().MatchString(key) {
		r.fault(p, path, "", "a label's key has letters, digits and - _ . /, at most 63, a letter or digit at both ends")
		return
	}
	text := reflect.New(v.Type().Elem()).Elem()
	r.value(n, f, path, text)
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	v.SetMapIndex(reflect.ValueOf(key), text)
}

// member returns the part of struct v whose JSON name is name.
func member(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if jsonName(v.Type().Field(i)) == name {
			return v.Field(i)
		}
	}
	panic("jobfile: no field " + name + " in " + v.Type().String()) // a test holds the table against the structs
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
