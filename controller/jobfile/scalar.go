package jobfile

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

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

// scalarValue is a value that was read: a text, or an integer or number in the unit of the file.
type scalarValue struct {
	text    string
	whole   int64   // integers, bytes, nanoseconds
	decimal float64 // numbers; the same amount for everything but text
	toggle  bool
}

// store puts the value where the job keeps it.
func (x scalarValue) store(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(x.text)
	case reflect.Float64:
		v.SetFloat(x.decimal)
	case reflect.Bool:
		v.SetBool(x.toggle)
	default:
		v.SetInt(x.whole)
	}
}

// check holds the value against the rule of its field.
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
		return "must be " + f.rule() + ", not " + quote(x.text), f.meantWord(x.text)
	case f.pattern != nil && !f.pattern().MatchString(x.text):
		return "must be " + f.looks, ""
	case f.form != text && bad:
		return "must be " + f.rule(), ""
	default:
		return "", ""
	}
}

// decode reads a scalar as the form of its field. msg is empty where that worked.
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

// unexpected says that n is no value for f, which takes a want.
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

// isNumber says whether a scalar is a number, also one like 1e999 that YAML takes for text because no float64 holds it.
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

// unquote is the hint for a number that stands in quotes.
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
	return scalarValue{whole: v, decimal: float64(v)}, "", ""
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
	return scalarValue{whole: int64(v), decimal: float64(v)}, "", ""
}

func decodeDuration(n *yaml.Node, f *field) (scalarValue, string, string) {
	var d disdel.Duration
	if !isText(n) || d.UnmarshalText([]byte(n.Value)) != nil {
		return unexpected(n, f, "write 90s, 5m or 1h30m")
	}
	return scalarValue{whole: int64(d), decimal: float64(d)}, "", ""
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
