package jobfile

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
)

// root reads the document.
func (r *reader) root(n *yaml.Node, job *disdel.Job) {
	if n.Kind != yaml.MappingNode {
		r.fault(at(n), "", "a job file starts with apiVersion: "+disdel.APIVersion, "expected an object, found %s", found(n))
		return
	}
	r.object(n, "", "", reflect.ValueOf(job).Elem())
}

// value reads n, the value of field f at path, into v; for an option of a layer, v is the whole layer.
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
	case f.form == counts:
		if list, ok := r.integers(n, f, path); ok {
			v.Set(reflect.ValueOf(list))
		}
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

// object reads the keys of n into v, which is a struct, a pointer to one or a map of text. pattern is the object's
// path in the table, path the one in the file.
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
		case f.form == anything:
			r.argument(keyPlace(k, value), value, at, key, v)
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

// keys calls each for every new key of n that is text, and remembers its place.
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

// unknown adds a fault for an unknown key of an object.
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
		r.misspelt[join(path, near)] = true
	}
	r.fault(p, join(path, key), suggest(pattern, key, near), "unknown field")
}

// missing adds a fault for every required key that the object at path lacks.
func (r *reader) missing(pattern, path string) {
	for _, f := range children(pattern) {
		if at := join(path, f.name()); f.required && !r.isSet(at) && !r.misspelt[at] {
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
		f := v.Type().Field(i)
		if jsonName(f) == name {
			return v.Field(i)
		}
		if f.Anonymous {
			if inner := v.Field(i).FieldByNameFunc(func(s string) bool {
				part, _ := f.Type.FieldByName(s)
				return jsonName(part) == name
			}); inner.IsValid() {
				return inner
			}
		}
	}
	panic("jobfile: no field " + name + " in " + v.Type().String()) // a test compares the table with the structs
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Numbers are written in decimal. YAML 1.1 and 1.2 disagree on 012, and neither is what a person means.
var (
	wholeForm   = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
	decimalForm = regexp.MustCompile(`^[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
	costForm    = regexp.MustCompile(`^([-+.0-9eE]+) *GB-s$`)
)

// scalar reads n, the value of f at path, into v.
func (r *reader) scalar(n *yaml.Node, f *field, path string, v reflect.Value) {
	if f.auto && n.Value == "auto" && n.ShortTag() == "!!str" {
		v.SetZero()
		return
	}
	x, msg, hint := decode(n, f)
	if msg == "" {
		msg, hint = x.check(f)
	}
	if msg != "" {
		r.fault(r.places[path], path, hint, "%s", msg)
		return
	}
	x.store(v)
}

// scalarValue is a decoded value: a text, or an integer or number in the unit of the file.
type scalarValue struct {
	text    string
	integer int64   // integers, bytes, nanoseconds
	decimal float64 // numbers; the same amount for everything but text
	toggle  bool
}

// store sets a field of the job.
func (x scalarValue) store(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer: // nil says that the field is not set
		v.Set(reflect.New(v.Type().Elem()))
		x.store(v.Elem())
	case reflect.String:
		v.SetString(x.text)
	case reflect.Float64:
		v.SetFloat(x.decimal)
	case reflect.Bool:
		v.SetBool(x.toggle)
	default:
		v.SetInt(x.integer)
	}
}

// check applies the rule of the value's field.
func (x scalarValue) check(f *field) (msg, hint string) {
	bad := f.min != nil && x.decimal < *f.min || f.above != nil && x.decimal <= *f.above ||
		f.max != nil && x.decimal > *f.max || f.below != nil && x.decimal >= *f.below
	switch {
	case f.path == syncPath && slices.Contains(laterSyncs, x.text):
		return quote(x.text) + " is not supported yet", useSync
	case strings.ContainsFunc(x.text, terminal.IsControl):
		return "line ends and control characters are not allowed", ""
	case f.path == sourcePath && laterSource.MatchString(x.text):
		return "only data sets of the store can be read in this version",
			"disdel dataset add brings data in; then write dataset://NAME"
	case len(f.oneOf) > 0 && !slices.Contains(f.oneOf, x.text):
		return "must be " + f.rule() + ", not " + quote(x.text), f.nearbyWord(x.text)
	case f.pattern != nil && !f.pattern().MatchString(x.text):
		return "must be " + f.looks, ""
	case f.form != text && bad:
		return "must be " + f.rule(), ""
	default:
		return "", ""
	}
}

// decode reads a scalar in the form of its field. msg is empty if that worked.
func decode(n *yaml.Node, f *field) (x scalarValue, msg, hint string) {
	switch f.form {
	case text:
		return decodeText(n, f)
	case integer:
		return decodeInteger(n, f)
	case number:
		return decodeNumber(n, f)
	case size:
		return decodeSize(n, f)
	case duration:
		return decodeDuration(n, f)
	case toggle:
		return decodeToggle(n, f)
	case syncMode:
		return decodeSync(n, f)
	default:
		return decodeCost(n, f)
	}
}

// unexpected says that n is no value for f.
func unexpected(n *yaml.Node, f *field, hint string) (scalarValue, string, string) {
	want := f.form.want()
	if f.auto {
		want += " or auto"
	}
	if isNull(n) {
		hint = f.write()
	}
	return scalarValue{}, "expected " + want + ", found " + found(n), hint
}

func isText(n *yaml.Node) bool { return n.ShortTag() == "!!str" && !isNumber(n) }

// isNumber tells whether a scalar is a number, also one like 1e999, which is text for YAML because no float64 holds
// it.
func isNumber(n *yaml.Node) bool {
	plain := n.Style == 0 && n.ShortTag() == "!!str"
	return n.ShortTag() == "!!int" || n.ShortTag() == "!!float" || plain && decimalForm.MatchString(n.Value)
}

func decodeText(n *yaml.Node, f *field) (scalarValue, string, string) {
	switch n.ShortTag() {
	case "!!str":
		return scalarValue{text: n.Value}, "", ""
	case "!!int", "!!float", "!!bool", "!!timestamp":
		return unexpected(n, f, "put it in quotes")
	default:
		return unexpected(n, f, "take the tag away")
	}
}

// unquote is the hint for a number in quotes.
func unquote(n *yaml.Node) string {
	if isText(n) && decimalForm.MatchString(n.Value) {
		return "take the quotes away"
	}
	return ""
}

func decodeInteger(n *yaml.Node, f *field) (scalarValue, string, string) {
	if isNumber(n) && !decimalForm.MatchString(n.Value) {
		return unexpected(n, f, "write it in decimal digits, without a leading zero")
	}
	if !isNumber(n) || !wholeForm.MatchString(n.Value) {
		return unexpected(n, f, unquote(n))
	}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if limit := int64(largestInt); err != nil || !f.wide && (v > limit || v < -limit) {
		return scalarValue{}, shorten(n.Value) + " is out of range", ""
	}
	return scalarValue{integer: v, decimal: float64(v)}, "", ""
}

func decodeNumber(n *yaml.Node, f *field) (scalarValue, string, string) {
	switch {
	case !isNumber(n):
		return unexpected(n, f, unquote(n))
	case strings.ContainsAny(n.Value, "nN"): // .inf and .nan
		return scalarValue{}, "must be finite", ""
	case !decimalForm.MatchString(n.Value):
		return unexpected(n, f, "write it in decimal digits, without a leading zero")
	}
	v, _ := strconv.ParseFloat(n.Value, 64)
	if math.IsInf(v, 0) {
		return scalarValue{}, "must be finite", ""
	}
	return scalarValue{decimal: v}, "", ""
}

func decodeSize(n *yaml.Node, f *field) (scalarValue, string, string) {
	const hint = "write a number and a unit, such as 512MB or 1.5Gi"
	if !isText(n) && !(isNumber(n) && decimalForm.MatchString(n.Value)) {
		return unexpected(n, f, hint)
	}
	v, err := disdel.ParseBytes(n.Value)
	if err != nil {
		return unexpected(n, f, hint)
	}
	return scalarValue{integer: int64(v), decimal: float64(v)}, "", ""
}

func decodeDuration(n *yaml.Node, f *field) (scalarValue, string, string) {
	var d disdel.Duration
	if !isText(n) || d.UnmarshalText([]byte(n.Value)) != nil {
		return unexpected(n, f, "write 90s, 5m or 1h30m")
	}
	return scalarValue{integer: int64(d), decimal: float64(d)}, "", ""
}

func decodeToggle(n *yaml.Node, f *field) (scalarValue, string, string) {
	var v bool
	if n.ShortTag() != "!!bool" || n.Decode(&v) != nil {
		return unexpected(n, f, "")
	}
	return scalarValue{toggle: v}, "", ""
}

func decodeCost(n *yaml.Node, f *field) (scalarValue, string, string) {
	amount := n.Value
	if match := costForm.FindStringSubmatch(n.Value); isText(n) && match != nil {
		amount = match[1]
	} else if isText(n) {
		amount = ""
	}
	v, err := strconv.ParseFloat(amount, 64)
	if err != nil || !decimalForm.MatchString(amount) {
		return unexpected(n, f, "write "+f.example)
	}
	return scalarValue{decimal: v}, "", ""
}

// distribution.sync: its object form, what to use instead of words that this version does not support, and those words.
const (
	syncPath   = "distribution.sync"
	syncObject = "{every: K}"
	useSync    = "use epoch, end or " + syncObject
)

var laterSyncs = []string{"bsp", "ssp", "isp", "hsp"}

// sync reads n, a word or an object with the key every, into v.
func (r *reader) sync(n *yaml.Node, f *field, path string, v reflect.Value) {
	if n.Kind == yaml.ScalarNode {
		r.scalar(n, f, path, v)
		return
	}
	var interval struct {
		Every int `json:"every"`
	}
	r.object(n, f.path, path, reflect.ValueOf(&interval).Elem())
	if interval.Every > 0 {
		v.SetString(string(disdel.SyncEvery(interval.Every)))
	}
}

// decodeSync reads a word; a number stands for the K of an object.
func decodeSync(n *yaml.Node, f *field) (scalarValue, string, string) {
	if n.ShortTag() == "!!int" {
		return unexpected(n, f, writeEvery(n.Value))
	}
	if !isText(n) {
		return unexpected(n, f, f.write())
	}
	return scalarValue{text: n.Value}, "", ""
}

// nearbyWord is the hint for a word that the field does not take.
func (f *field) nearbyWord(word string) string {
	switch k := disdel.Sync(word).Every(); {
	case f.path == "training.loss":
		return cmp.Or(nearWord(word, f.oneOf), model.OwnCode)
	case f.form != syncMode:
		return nearWord(word, f.oneOf)
	case k > 0:
		return writeEvery(strconv.Itoa(k))
	case closestKey(word, append(slices.Clone(f.oneOf), "every")) == "every":
		return writeEvery("")
	default:
		return nearWord(word, f.oneOf)
	}
}

// writeEvery is the hint that shows the object, with the file's own number if it is one.
func writeEvery(k string) string {
	if v, err := strconv.Atoi(k); err != nil || v < 1 || v > largestInt {
		k = child(syncPath, "every").example
	}
	return "write sync: {every: " + k + "}"
}

func printSync(s disdel.Sync) *yaml.Node {
	if s.Every() == 0 {
		return scalarNode("!!str", string(s))
	}
	every := scalarNode("!!int", strconv.Itoa(s.Every()))
	return &yaml.Node{
		Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle,
		Content: []*yaml.Node{scalarNode("!!str", "every"), every},
	}
}

func (f *field) syncSchema() schemaNode {
	return schemaNode{"anyOf": []schemaNode{f.textSchema(), objectSchema(f.path)}}
}

// policyPath is the field that may also be an object, which stands for three fields: policy: {name: coach, max: 8}.
const policyPath = "distribution.policy"

// policyKeys maps the keys of that object to fields.
var policyKeys = map[string]string{"name": "policy", "min": "minWorkers", "max": "maxWorkers"}

// spreadPolicy moves the keys of an object at the key policy into the object around it. An object with other keys is
// unchanged, and refused later.
func spreadPolicy(n *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Value != policyKeys["name"] || value.Kind != yaml.MappingNode {
			continue
		}
		options := slices.Clone(value.Content)
		for k := 0; k+1 < len(options); k += 2 {
			means, known := policyKeys[options[k].Value]
			if !known {
				return n
			}
			renamed := *options[k]
			renamed.Value = means
			options[k] = &renamed
		}
		out := *n
		out.Content = slices.Concat(n.Content[:i], options, n.Content[i+2:])
		return &out
	}
	return n
}

// policySchema describes a name, or an object with a name and bounds.
func (f *field) policySchema() schemaNode {
	members := schemaNode{}
	for _, key := range slices.Sorted(maps.Keys(policyKeys)) {
		members[key] = child("distribution", policyKeys[key]).amountSchema()
	}
	members["name"] = f.textSchema()
	return schemaNode{"anyOf": []schemaNode{f.textSchema(), {
		"type": "object", "properties": members, "required": []string{"name"}, "additionalProperties": false,
	}}}
}
