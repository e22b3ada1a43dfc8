package jobfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
)

// samePadding is the word for TensorFlow's padding.
const samePadding = "same"

// option reads n, the value of an option with several kinds of values, into a layer.
func (r *reader) option(n *yaml.Node, f *field, path string, l *disdel.Layer) {
	switch f.form {
	case boolean:
		r.boolean(n, f, path, flagOf(l, f.name()))
	case sides:
		one, two := sidesOf(l, f.name())
		r.window(n, f, path, one, two[:])
	case padding:
		r.padding(n, f, path, l)
	case names:
		l.From = r.texts(n, f, path)
	default:
		if v, ok := r.integers(n, f, path); ok && len(v) != 1 && len(v) != 3 {
			r.fault(r.places[path], path, f.write(), "takes 1 or 3 numbers, not %d", len(v))
		} else if ok {
			l.Shape = v
		}
	}
}

// flagOf and sidesOf return the place of an option in a layer.
func flagOf(l *disdel.Layer, option string) **bool {
	return map[string]**bool{
		"bias": &l.Bias, "scale": &l.Scale, "center": &l.Center, "padded": &l.Padded, "learned": &l.Learned,
		"grid": &l.Grid, "cosine": &l.Cosine, "causal": &l.Causal, "rotary": &l.Rotary, "normFirst": &l.NormFirst,
		"bidirectional": &l.Bidirectional,
	}[option]
}

func sidesOf(l *disdel.Layer, option string) (*int, *[2]int) {
	switch option {
	case "size":
		return &l.Size, &l.SizeHW
	case "kernel":
		return &l.Kernel, &l.KernelHW
	case "shift":
		return &l.Shift, &l.ShiftHW
	case "stride":
		return &l.Stride, &l.StrideHW
	default:
		return &l.Dilation, &l.DilationHW
	}
}

// padding reads the word same, or a window's numbers.
func (r *reader) padding(n *yaml.Node, f *field, path string, l *disdel.Layer) {
	word := n.Kind == yaml.ScalarNode && isText(n) && !decimalForm.MatchString(n.Value)
	switch {
	case word && n.Value == samePadding:
		l.SamePad = true
	case word:
		r.wrongForm(n, f, path)
	default:
		r.window(n, f, path, &l.Padding, l.PaddingAt[:])
	}
}

func (r *reader) boolean(n *yaml.Node, f *field, path string, v **bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		r.wrongForm(n, f, path)
		return
	}
	var b bool
	if n.Decode(&b) == nil {
		*v = &b
	}
}

// window reads one number, or a list with one for every side; equal numbers become one.
func (r *reader) window(n *yaml.Node, f *field, path string, one *int, all []int) {
	if n.Kind != yaml.SequenceNode {
		r.scalar(n, f.as(integer), path, reflect.ValueOf(one).Elem())
		return
	}
	v, ok := r.integers(n, f, path)
	switch {
	case !ok:
	case len(v) != len(all):
		r.fault(r.places[path], path, f.write(), "takes 1 or %d numbers, not %d", len(all), len(v))
	default:
		if *one = disdel.EqualSides(v); *one == 0 {
			copy(all, v)
		}
	}
}

// as is the field with another form, for the items of a list.
func (f *field) as(other form) *field {
	item := *f
	item.form = other
	return &item
}

// integers reads a list of integers, each with the field's rule.
func (r *reader) integers(n *yaml.Node, f *field, path string) (out []int, ok bool) {
	if n.Kind != yaml.SequenceNode {
		r.wrongForm(n, f, path)
		return nil, false
	}
	for _, item := range n.Content {
		var v int
		if !r.item(item, f.as(integer), path, reflect.ValueOf(&v).Elem()) {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

// item reads one item of a list, whose faults are those of the list.
func (r *reader) item(n *yaml.Node, f *field, path string, v reflect.Value) bool {
	if n.Kind != yaml.ScalarNode {
		r.fault(r.places[path], path, f.write(), "expected %s in the list, found %s", f.form.want(), found(n))
		return false
	}
	r.scalar(n, f, path, v)
	return r.sound(path)
}

// texts reads a text or a list of them.
func (r *reader) texts(n *yaml.Node, f *field, path string) []string {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	if count := len(items); count == 0 || count > maxLayers {
		r.fault(r.places[path], path, f.write(), "takes 1 to %d names, not %d", maxLayers, count)
		return nil
	}
	var out []string
	for _, item := range items {
		var s string
		if !r.item(item, f.as(text), path, reflect.ValueOf(&s).Elem()) {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// printOption makes the YAML of an option, or nil if the layer does not have it.
func printOption(f *field, l disdel.Layer) *yaml.Node {
	switch f.form {
	case boolean:
		return printFlag(*flagOf(&l, f.name()))
	case sides:
		one, two := sidesOf(&l, f.name())
		return printWindow(*one, two[:])
	case padding:
		if l.SamePad {
			return scalarNode("!!str", samePadding)
		}
		return printWindow(l.Padding, l.PaddingAt[:])
	case names:
		return printTexts(l.From)
	default:
		return printIntegers(l.Shape)
	}
}

func printFlag(v *bool) *yaml.Node {
	if v == nil {
		return nil
	}
	return scalarNode("!!bool", strconv.FormatBool(*v))
}

func printWindow(one int, all []int) *yaml.Node {
	switch {
	case slices.ContainsFunc(all, func(v int) bool { return v != 0 }):
		return printIntegers(all)
	case one != 0:
		return scalarNode("!!int", strconv.Itoa(one))
	default:
		return nil
	}
}

func printIntegers(v []int) *yaml.Node {
	if len(v) == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, x := range v {
		n.Content = append(n.Content, scalarNode("!!int", strconv.Itoa(x)))
	}
	return n
}

func printTexts(v []string) *yaml.Node {
	switch len(v) {
	case 0:
		return nil
	case 1:
		return scalarNode("!!str", v[0])
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, s := range v {
		n.Content = append(n.Content, scalarNode("!!str", s))
	}
	return n
}

// keras reads the file of model.keras into layers. Faults of that file are reported at the field.
func (r *reader) keras(m *disdel.Model) {
	p := r.places[kerasPath]
	if r.open == nil {
		r.fault(p, kerasPath, "disdel model show --keras FILE shows its layers", "files of Keras cannot be read here")
		return
	}
	data, err := r.open(m.Keras)
	if err == nil {
		m.Layers, err = model.KerasLayers(data)
	}
	var faults *disdel.Faults
	switch {
	case errors.As(err, &faults):
		for _, f := range faults.Faults {
			r.fault(p, kerasPath, f.Hint, "layer %s: %s", terminal.Escape(f.Path), terminal.Escape(f.Msg))
		}
	case err != nil:
		r.fault(p, kerasPath, disdel.AsError(err).Hint, "%s", terminal.Escape(err.Error()))
	case len(m.Layers) > maxLayers:
		r.fault(p, kerasPath, "", "it has %d layers; at most %d are read", len(m.Layers), maxLayers)
		m.Layers = nil
	}
}

// layerPath is the path of options of a layer of any kind in the table.
const layerPath = "model.layers[].*"

// described is a kind of layer with its description in package model.
type described struct{ model.Kind }

// kindIn is the kind of layer in a path, if it names one.
func kindIn(path string) (kind string, ok bool) {
	parts := segments(path)
	if len(parts) < 4 || parts[0] != "model" || parts[1] != "layers" || parts[2] != "[]" || parts[3] == "*" {
		return "", false
	}
	return parts[3], true
}

func kindOfLayer(name string) (described, error) {
	k, ok := model.FindKind(name)
	if ok {
		return described{k}, nil
	}
	hint := "kinds: " + strings.Join(model.LayerKinds(), ", ")
	if near := spelling.Closest(name, model.LayerKinds()); near != "" {
		hint = didYouMean("model.layers." + near)
	}
	return described{}, &disdel.Error{Kind: disdel.NotFound, Op: "explain field", Msg: "there is no kind of layer " +
		quote(name), Hint: hint}
}

func explainLayer(f *field, kind string) (string, error) {
	k, err := kindOfLayer(kind)
	switch {
	case err != nil:
		return "", err
	case f.path == layerPath:
		return k.text(), nil
	}
	for _, o := range k.options() {
		if o.Name == f.name() {
			return "model.layers." + k.Name + "." + o.Name + "  " + optionRule(f, o) + "\n  " + f.meaning + "\n" +
				f.exampleLine(), nil
		}
	}
	return "", &disdel.Error{
		Kind: disdel.NotFound, Op: "explain field", Msg: fmt.Sprintf("%s takes no %s", k.Name, f.name()),
		Hint: "it takes " + strings.Join(k.optionNames(), ", "),
	}
}

// options are those of the kind and those of every layer.
func (k described) options() []model.KindOption {
	return append(slices.Clone(k.Options), model.KindOption{Name: "name", Default: "its place: 0, 1, ..."},
		model.KindOption{Name: "from", Default: "the layer before", Required: k.Many})
}

func (k described) optionNames() []string {
	var out []string
	for _, o := range k.options() {
		out = append(out, o.Name)
	}
	return out
}

// text is a kind with its options, one per line.
func (k described) text() string {
	var out strings.Builder
	out.WriteString("model.layers." + k.Name + "  object\n  " + k.Meaning + "\n  options\n")
	width := 0
	for _, o := range k.options() {
		width = max(width, len(o.Name))
	}
	for _, o := range k.options() {
		f := child(layerPath, o.Name)
		out.WriteString(fmt.Sprintf("    %-*s  %s\n    %*s  %s\n", width, o.Name, optionRule(f, o), width, "", f.meaning))
	}
	return out.String() + "  example  " + k.example() + "\n"
}

// example is an item of model.layers with its required options.
func (k described) example() string {
	var parts []string
	for _, o := range k.options() {
		if o.Required {
			parts = append(parts, o.Name+": "+exampleOf(k, o))
		}
	}
	return "- " + k.Name + ": {" + strings.Join(parts, ", ") + "}"
}

func exampleOf(k described, o model.KindOption) string {
	if o.Name == "from" && k.Many {
		return "[a, b]"
	}
	return child(layerPath, o.Name).example
}

// optionRule is "integer or [height, width], at least 1, default 1".
func optionRule(f *field, o model.KindOption) string {
	parts := nonEmpty(f.form.String(), f.rule())
	if o.Name == "activation" {
		parts = []string{orList(model.Activations())}
	}
	if o.Required {
		return strings.Join(append(parts, "required"), ", ")
	}
	return strings.Join(append(parts, "default "+o.Default), ", ")
}

func nonEmpty(list ...string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// kindsBelow lists the kinds of layers for a path that holds them.
func kindsBelow(pattern string) string {
	if pattern != "model.layers" && pattern != layerPath {
		return ""
	}
	out, width := "  kinds\n", 0
	for _, k := range model.Kinds() {
		width = max(width, len(k.Name))
	}
	for _, k := range model.Kinds() {
		out += fmt.Sprintf("    %-*s  %s\n", width, k.Name, k.Meaning)
	}
	return out + "  options  disdel explain model.layers.conv\n"
}

// optionOrWhole is the schema of a kind of layer, or of its option f.
func (k described) optionOrWhole(f *field, option schemaNode) schemaNode {
	if f.path != layerPath {
		return option
	}
	properties, required := schemaNode{}, []string{}
	for _, o := range k.options() {
		s := child(layerPath, o.Name).schema()
		if !o.Required {
			s["default"] = jsonValue(o.Default)
		} else {
			required = append(required, o.Name)
		}
		properties[o.Name] = s
	}
	return schemaNode{
		"type": "object", "description": k.Meaning, "properties": properties, "required": required,
		"additionalProperties": false,
	}
}
