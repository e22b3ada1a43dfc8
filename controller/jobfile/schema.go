package jobfile

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/disdel/disdel/model"
)

// schemaNode is a JSON Schema of draft 2020-12, or a part of one. encoding/json sorts its keys, so the text is always
// the same.
type schemaNode map[string]any

// Schema returns the JSON Schema (draft 2020-12) of job files, for editors and other programs. It has the values of
// single fields and which are required; Parse alone checks rules between fields. Parse refuses every job file that
// the schema refuses, except for an empty object, as in "flatten:", which the schema allows only for layers.
func Schema() []byte {
	s := objectSchema("")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "disdel training job"
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("jobfile: " + err.Error()) // maps of strings, numbers and lists cannot fail
	}
	return append(out, '\n')
}

func objectSchema(pattern string) schemaNode {
	properties, required := schemaNode{}, []string{}
	for _, f := range children(pattern) {
		switch {
		case f.later:
			continue
		case f.required:
			required = append(required, f.name())
		}
		properties[f.name()] = f.schema()
	}
	s := schemaNode{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	switch pattern {
	case "model":
		s["oneOf"] = []schemaNode{
			{"required": []string{"name"}},
			{"required": []string{"layers"}},
			{"required": []string{"keras"}},
			{"required": []string{"custom"}},
			{"required": []string{"python"}},
		}
	case "training.optimizer", "training.schedule":
		s["minProperties"], s["maxProperties"] = 1, 1
	case "metadata.labels":
		s = mapSchema(labelKey().String(), properties["*"])
	case argumentsPath:
		s = mapSchema(argumentKey().String(), properties["*"])
	case "model.layers[].*":
		s["type"] = []string{"object", "null"}
	}
	return s
}

// mapSchema describes an object whose keys are the user's.
func mapSchema(keys string, value any) schemaNode {
	return schemaNode{"type": "object", "propertyNames": schemaNode{"pattern": keys}, "additionalProperties": value}
}

func (f *field) schema() schemaNode {
	var s schemaNode
	switch f.form {
	case object:
		s = objectSchema(f.path)
	case list:
		s = schemaNode{"type": "array"}
		if item := child(f.path+"[]", ""); item != nil { // a list that is not supported yet has no items
			s = layersSchema(item)
		}
	case counts:
		s = schemaNode{"type": "array", "items": f.numberSchema(), "minItems": 1}
	case text:
		if s = f.textSchema(); f.path == policyPath {
			s = f.policySchema()
		}
	case syncMode:
		s = f.syncSchema()
	case anything:
		s = schemaNode{}
	case boolean, sides, padding, names, shape:
		s = f.optionSchema()
	default:
		s = f.amountSchema()
	}
	s["description"] = f.meaning
	if f.defBy != "" {
		s["description"] = f.meaning + " Default: " + f.defBy + "."
	}
	if f.def != "" && f.form != object {
		s["default"] = jsonValue(f.def)
	}
	return s
}

func layersSchema(item *field) schemaNode {
	return schemaNode{"type": "array", "minItems": 1, "maxItems": maxLayers, "items": schemaNode{
		"type": "object", "minProperties": 1, "maxProperties": 1,
		"propertyNames":        schemaNode{"enum": model.LayerKinds()},
		"additionalProperties": item.schema(),
	}}
}

func (f *field) textSchema() schemaNode {
	s := schemaNode{"type": "string"}
	if len(f.oneOf) > 0 {
		s["enum"] = f.oneOf
		if f.auto {
			s["enum"] = append(slices.Clone(f.oneOf), "auto")
		}
	}
	if f.pattern != nil {
		s["pattern"] = f.pattern().String()
	}
	return s
}

// amountSchema describes integers, numbers and values with a unit.
func (f *field) amountSchema() schemaNode {
	s := schemaNode{"type": "string"}
	switch f.form {
	case toggle:
		s = schemaNode{"type": "boolean"}
	case integer, number:
		s = f.numberSchema()
	case size, cost:
		s = schemaNode{"type": []string{"number", "string"}, "exclusiveMinimum": 0}
	}
	if f.auto && f.form == integer {
		return schemaNode{"anyOf": []schemaNode{s, {"const": "auto"}}}
	}
	return s
}

func (f *field) numberSchema() schemaNode {
	s := schemaNode{"type": typeName(f.form)}
	for key, bound := range map[string]*float64{
		"minimum": f.min, "maximum": f.max, "exclusiveMinimum": f.above,
		"exclusiveMaximum": f.below,
	} {
		if bound != nil {
			s[key] = *bound
		}
	}
	if f.form != number && !f.wide && f.max == nil {
		s["maximum"] = largestInt
	}
	return s
}

// optionSchema describes an option with several kinds of values.
func (f *field) optionSchema() schemaNode {
	several := func(item schemaNode, minimum, maximum int) schemaNode {
		return schemaNode{"type": "array", "items": item, "minItems": minimum, "maxItems": maximum}
	}
	switch f.form {
	case boolean:
		return schemaNode{"type": "boolean"}
	case sides:
		return schemaNode{"anyOf": []schemaNode{f.numberSchema(), several(f.numberSchema(), 2, 2)}}
	case padding:
		return schemaNode{"anyOf": []schemaNode{f.numberSchema(), {"const": samePadding}, several(f.numberSchema(), 4, 4)}}
	case names:
		return schemaNode{"anyOf": []schemaNode{f.textSchema(), several(f.textSchema(), 1, maxLayers)}}
	default:
		return schemaNode{"anyOf": []schemaNode{several(f.numberSchema(), 1, 1), several(f.numberSchema(), 3, 3)}}
	}
}

func typeName(f form) string {
	if f == number {
		return "number"
	}
	return "integer"
}

// jsonValue reads a default of the table: a number, true or false, or text.
func jsonValue(def string) any {
	if def == "true" || def == "false" {
		return def == "true"
	}
	if v, err := strconv.ParseFloat(def, 64); err == nil {
		return v
	}
	return def
}
