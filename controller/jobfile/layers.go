package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
	"github.com/disdel/disdel/model"
)

// layerPath is where the table has the options of a layer of any kind.
const layerPath = "model.layers[].*"

// described is a kind of layer as the model folder describes it.
type described struct{ model.Kind }

// kindIn is the kind of layer that a path goes through, if it names one.
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

// explainLayer explains a kind of layer, or one of its options.
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

// options are those of the kind and those that every layer takes.
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

// text is a kind with its options, a line each.
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

// example is an item of model.layers with what it needs.
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

// kindsBelow lists the kinds of layers where a path holds them.
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

// optionOrWhole is the schema of a kind of layer, or of the option of it that f is.
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

// LayersPage is docs/reference/layers.md: every kind of layer with its options.
func LayersPage() []byte {
	var out strings.Builder
	out.WriteString("# Layers\n\nThe kinds of `model.layers` in a job file, one an item of the list; `disdel explain " +
		"model.layers.conv` prints the same.\n" +
		"Made from the program's own table: `go test ./controller/jobfile -rewrite`.\n\n" +
		"Every layer takes a `name` (default: its place, 0, 1, ...) and `from`, the layer or layers whose output it takes " +
		"(default: the\n" +
		"one before; `input` is the data).\n\n")
	for _, k := range model.Kinds() {
		fmt.Fprintf(&out, "- [%s](#%s)\n", k.Name, strings.ToLower(k.Name))
	}
	for _, k := range model.Kinds() {
		d := described{k}
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n```\n%s\n```\n", k.Name, k.Meaning, d.example())
		if len(k.Options) == 0 {
			continue
		}
		out.WriteString("\n| option | takes | default | |\n|---|---|---|---|\n")
		for _, o := range k.Options {
			f, given := child(layerPath, o.Name), o.Default
			if o.Required {
				given = "required"
			}
			takes := strings.Join(nonEmpty(f.form.String(), f.rule()), ", ")
			if o.Name == "activation" {
				takes = orList(model.Activations())
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", o.Name, takes, given, f.meaning)
		}
	}
	return []byte(out.String())
}
