package jobfile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
)

// Print writes a job as a job file with every default, in the order of the table. Parse reads the same job from it.
// The error is of kind Internal: a text of the job cannot be written as YAML.
func Print(job disdel.Job) ([]byte, error) {
	if e := job.Training.EarlyStop; e != nil && e.Metric != disdel.MetricLoss && e.Keep == "" {
		last := *e // a job from before there was a choice
		last.Keep = disdel.KeepLast
		job.Training.EarlyStop = &last
	}
	if job.Distribution.Policy == "" {
		job.Distribution.Policy = disdel.PolicyStatic // the same
	}
	if job.Training.Batch != nil {
		job.Training.BatchSize = 0 // batch replaces it
	}
	if job.Training.Optimizer.Own != nil {
		job.Training.Optimizer = disdel.Optimizer{} // the program makes it
	}
	if m := &job.Model; m.Translated() { // a submission translates the program anew
		m.Layers = nil
		if m.Init.Weights == m.Python.Translation.Weights {
			m.Init.Weights = ""
		}
	}
	out, err := yaml.Dump(printObject("", reflect.ValueOf(job)))
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Internal, Op: "print job file", Err: err}
	}
	return out, nil
}

// printObject makes the tree of a struct without its absent fields.
func printObject(pattern string, v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, f := range children(pattern) {
		if f.later {
			continue
		}
		value := (*yaml.Node)(nil)
		if f.form >= boolean {
			value = printOption(f, v.Interface().(disdel.Layer))
		} else {
			value = printValue(f, member(v, f.name()))
		}
		if value != nil {
			n.Content = append(n.Content, scalarNode("!!str", f.name()), value)
		}
	}
	return n
}

// printValue makes the tree of one field, or nil if it is absent.
func printValue(f *field, v reflect.Value) *yaml.Node {
	switch {
	case f.form == list:
		return printLayers(v.Interface().([]disdel.Layer))
	case f.form == counts && v.Len() == 0:
		return nil
	case f.form == counts:
		return printIntegers(v.Interface().([]int))
	case f.path == argumentsPath:
		return printArguments(v.Interface().(disdel.Arguments))
	case v.Kind() == reflect.Map:
		return printLabels(v.Interface().(map[string]string))
	case v.Kind() == reflect.Pointer && v.IsNil():
		return nil
	case v.Kind() == reflect.Pointer && f.form != object:
		return printScalar(f, v.Elem())
	case v.Kind() == reflect.Pointer:
		return printObject(f.path, v.Elem())
	case f.form == object && v.IsZero() && !f.required:
		return nil // a job older than the object
	case f.form == object:
		return printObject(f.path, v)
	case f.form == syncMode && v.IsZero():
		return nil
	case f.form == syncMode:
		return printSync(v.Interface().(disdel.Sync))
	case v.IsZero() && f.auto:
		return scalarNode("!!str", "auto")
	case f.path == backendPath && (v.String() == disdel.BackendCUDA || v.String() == disdel.BackendPython):
		return nil // resources.device or model.python says it
	case v.IsZero() && f.def == "" && !f.required && f.defBy != "model.init.seed":
		return nil
	case v.IsZero() && !f.required && f.refusesZero():
		return nil
	default:
		return printScalar(f, v)
	}
}

// refusesZero tells whether the field's rule refuses its zero value. A job older than the field has that value; if it
// is omitted, it becomes the default.
func (f *field) refusesZero() bool {
	switch {
	case f.form == text:
		return len(f.oneOf) > 0 && !slices.Contains(f.oneOf, "") || f.pattern != nil && !f.pattern().MatchString("")
	default:
		return f.min != nil && *f.min > 0 || f.above != nil && *f.above >= 0
	}
}

func printScalar(f *field, v reflect.Value) *yaml.Node {
	switch f.form {
	case text:
		return scalarNode("!!str", v.String())
	case integer:
		return scalarNode("!!int", strconv.FormatInt(v.Int(), 10))
	case size:
		return scalarNode("!!str", printSize(disdel.Bytes(v.Int())))
	case duration:
		return scalarNode("!!str", time.Duration(v.Int()).String())
	case toggle:
		return scalarNode("!!bool", strconv.FormatBool(v.Bool()))
	case cost:
		return scalarNode("!!str", formatNumber(v.Float())+"GB-s")
	default:
		return scalarNode("", formatNumber(v.Float()))
	}
}

// printSize writes whole megabytes as such.
func printSize(b disdel.Bytes) string {
	if b%disdel.MB == 0 {
		return fmt.Sprintf("%dMB", b/disdel.MB)
	}
	return fmt.Sprintf("%dB", int64(b))
}

func printLayers(layers []disdel.Layer) *yaml.Node {
	if len(layers) == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, l := range layers {
		options := printObject("model.layers[].*", reflect.ValueOf(l))
		options.Style = yaml.FlowStyle
		n.Content = append(n.Content, &yaml.Node{
			Kind: yaml.MappingNode, Tag: "!!map",
			Content: []*yaml.Node{scalarNode("!!str", l.Kind), options},
		})
	}
	return n
}

func printLabels(labels map[string]string) *yaml.Node {
	if len(labels) == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		n.Content = append(n.Content, scalarNode("!!str", k), scalarNode("!!str", labels[k]))
	}
	return n
}

func scalarNode(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}
