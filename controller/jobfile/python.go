package jobfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
)

const (
	pythonPath    = "model.python"
	argumentsPath = pythonPath + ".arguments"
)

// argumentKey is what the name of an argument looks like: a name of Python.
var argumentKey = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`, "").match

// argument reads one entry of model.python.arguments.
func (r *reader) argument(p place, n *yaml.Node, path, key string, v reflect.Value) {
	if !argumentKey().MatchString(key) {
		r.fault(p, path, "write it as the program does", "an argument's name has letters, digits and _, and no digit first")
		return
	}
	value, ok := r.anyValue(n, path)
	if !ok {
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	v.Interface().(disdel.Arguments)[key] = value
}

// anyValue reads a value as JSON has it. Numbers keep their digits, so that 1 and 1.0 stay apart.
func (r *reader) anyValue(n *yaml.Node, path string) (value any, ok bool) {
	bad := func(hint, format string, args ...any) (any, bool) {
		r.fault(at(n), path, hint, format, args...)
		return nil, false
	}
	switch {
	case n.Kind == yaml.AliasNode:
		return bad("write the value out", "aliases are not read")
	case n.Kind == yaml.SequenceNode && n.ShortTag() == "!!seq":
		out := []any{}
		for i, item := range n.Content {
			value, ok := r.anyValue(item, fmt.Sprintf("%s[%d]", path, i))
			if !ok {
				return nil, false
			}
			out = append(out, value)
		}
		return out, true
	case n.Kind == yaml.MappingNode && n.ShortTag() == "!!map":
		return r.anyObject(n, path)
	case isNull(n):
		return nil, true
	case n.ShortTag() == "!!bool":
		var v bool
		return v, n.Decode(&v) == nil
	case isNumber(n):
		return r.anyNumber(n, path)
	case isText(n):
		return n.Value, true
	default:
		return bad("put it in quotes", "expected a value of JSON, found %s", found(n))
	}
}

func (r *reader) anyObject(n *yaml.Node, path string) (value any, ok bool) {
	out, ok := map[string]any{}, true
	faults := len(r.faults) + r.more
	r.keys(n, path, func(key string, _, value *yaml.Node) {
		v, read := r.anyValue(value, join(path, key))
		out[key], ok = v, ok && read
	})
	return out, ok && len(r.faults)+r.more == faults
}

func (r *reader) anyNumber(n *yaml.Node, path string) (value any, ok bool) {
	v, err := strconv.ParseFloat(n.Value, 64)
	if !decimalForm.MatchString(n.Value) || err != nil {
		r.fault(at(n), path, "write it in decimal digits, without a leading zero", "%s is no finite decimal number",
			shorten(n.Value))
		return nil, false
	}
	if json.Valid([]byte(n.Value)) {
		return json.Number(n.Value), true
	}
	return json.Number(formatNumber(v)), true // +1, .5 and 1. are no numbers of JSON
}

// printArguments makes the tree of model.python.arguments, or nil if there are none.
func printArguments(values disdel.Arguments) *yaml.Node {
	if len(values) == 0 {
		return nil
	}
	return printAny(map[string]any(values))
}

func printAny(value any) *yaml.Node {
	n := &yaml.Node{Style: yaml.FlowStyle}
	switch v := value.(type) {
	case map[string]any:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, scalarNode("!!str", key), printAny(v[key]))
		}
		return n
	case []any:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for _, item := range v {
			n.Content = append(n.Content, printAny(item))
		}
		return n
	case nil:
		return scalarNode("!!null", "null")
	case bool:
		return scalarNode("!!bool", strconv.FormatBool(v))
	case string:
		return scalarNode("!!str", v)
	default: // a number: json.Number, or what a program of Go has set
		return scalarNode("", fmt.Sprint(v))
	}
}

// python chooses the engine of a Python program, and refuses what no such program can have. The program decides what
// auto means; for other networks it is the default.
func (r *reader) python(job *disdel.Job) {
	const device = "resources.device"
	backend := &job.Training.Backend
	switch {
	case !r.sound(pythonPath, backendPath):
	case job.Model.Python == nil && *backend == disdel.BackendPython:
		r.fault(r.places[backendPath], backendPath, "leave it out", "only Python programs are trained by Python")
	case job.Model.Python == nil && *backend == disdel.BackendAuto:
		*backend = disdel.BackendNative
	case job.Model.Python == nil:
	case !r.isSet(backendPath):
		*backend = disdel.BackendPython
	case *backend != disdel.BackendNative && *backend != disdel.BackendAuto && *backend != disdel.BackendPython:
		r.fault(r.places[backendPath], backendPath, "write python, native or auto, or leave it out",
			"%s trains no Python programs", *backend)
	}
	if job.Model.Python != nil && job.Resources.Device == disdel.DeviceGPU && r.sound(pythonPath, device) {
		r.fault(r.places[device], device, "leave it out", "actions of Python programs have no GPU yet")
	}
}
