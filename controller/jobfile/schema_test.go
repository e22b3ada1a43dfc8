package jobfile

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
)

// accepts is a reader of the part of JSON Schema that Schema uses; it fails on a keyword that it does not know.
func accepts(s map[string]any, v any) error {
	for key, rule := range s {
		if err := accept(key, rule, s, v); err != nil {
			return err
		}
	}
	return nil
}

func accept(key string, rule any, s map[string]any, v any) error {
	object, _ := v.(map[string]any)
	number, isNumber := v.(float64)
	text, isText := v.(string)
	bad := false
	switch key {
	case "$schema", "title", "description", "default", "properties":
	case "type":
		bad = !isType(rule, v)
	case "enum":
		bad = !slices.Contains(rule.([]any), v)
	case "const":
		bad = rule != v
	case "pattern":
		bad = isText && !regexp.MustCompile(rule.(string)).MatchString(text)
	case "minimum":
		bad = isNumber && number < rule.(float64)
	case "maximum":
		bad = isNumber && number > rule.(float64)
	case "exclusiveMinimum":
		bad = isNumber && number <= rule.(float64)
	case "exclusiveMaximum":
		bad = isNumber && number >= rule.(float64)
	case "minProperties":
		bad = object != nil && float64(len(object)) < rule.(float64)
	case "maxProperties":
		bad = float64(len(object)) > rule.(float64)
	case "required":
		for _, name := range rule.([]any) {
			_, has := object[name.(string)]
			bad = bad || object != nil && !has
		}
	case "propertyNames":
		for name := range object {
			if err := accepts(rule.(map[string]any), name); err != nil {
				return err
			}
		}
	case "additionalProperties":
		return acceptProperties(s, rule, object)
	case "items":
		return acceptItems(rule.(map[string]any), v)
	case "minItems", "maxItems":
		items, ok := v.([]any)
		bad = ok && (key == "minItems" && float64(len(items)) < rule.(float64) || key == "maxItems" &&
			float64(len(items)) > rule.(float64))
	case "anyOf", "oneOf":
		matches := 0
		for _, one := range rule.([]any) {
			if accepts(one.(map[string]any), v) == nil {
				matches++
			}
		}
		bad = matches == 0 || key == "oneOf" && matches > 1
	default:
		return fmt.Errorf("unknown keyword %s", key)
	}
	if bad {
		return fmt.Errorf("%v is refused by %s: %v", v, key, rule)
	}
	return nil
}

func acceptProperties(s map[string]any, other any, object map[string]any) error {
	properties, _ := s["properties"].(map[string]any)
	for name, value := range object {
		rule, known := properties[name]
		if !known {
			rule = other
		}
		if rule == false {
			return fmt.Errorf("unknown property %s", name)
		}
		if err := accepts(rule.(map[string]any), value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func acceptItems(rule map[string]any, v any) error {
	items, _ := v.([]any)
	for i, item := range items {
		if err := accepts(rule, item); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

func isType(rule, v any) bool {
	if names, ok := rule.([]any); ok {
		return slices.ContainsFunc(names, func(name any) bool { return isType(name, v) })
	}
	switch x := v.(type) {
	case nil:
		return rule == "null"
	case map[string]any:
		return rule == "object"
	case []any:
		return rule == "array"
	case string:
		return rule == "string"
	case float64:
		return rule == "number" || rule == "integer" && x == math.Trunc(x)
	default:
		return rule == "boolean"
	}
}

func schemaTree(t fataler) map[string]any {
	var s map[string]any
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatalf("Schema is no JSON: %v", err)
	}
	return s
}

// asJSON reads YAML as JSON would hold it.
func asJSON(text []byte) (v any, err error) {
	var tree any
	if err := yaml.Load(text, &tree); err != nil {
		return nil, err
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(data, &v)
	return v, err
}

func TestSchemaAcceptsEveryJob(t *testing.T) {
	s := schemaTree(t)
	rapid.Check(t, func(t *rapid.T) {
		text, err := Print(anyJob(t))
		if err != nil {
			t.Fatal(err)
		}
		v, err := asJSON(text)
		if err == nil {
			err = accepts(s, v)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

// What no schema can say: rules between fields, amounts in words, and how YAML is written.
var beyondSchema = regexp.MustCompile(`early-stop-with|early-stop-accuracy-in|early-stop-keep-of|early-stop-target-|` +
	`split-|softmax-|-missing|option-of-|activation-unknown|memory-|timeout-|max-cost-|deadline-|` +
	`key-given|section-given|octal|hexadecimal|underscores|underflows|source-with-a-line-end|` +
	`name-with-a-line-end|batch-size-in-snake|own-tag|` +
	`tag-that|class-weights-|` +
	`device-and-backend|gpu-without-device|several-layers|policy-(bounds|below|above|at)|after-|backoff-|overflows|` +
	`seed-beyond|alias-|second-document|rubbish|` +
	`(precision|recompute)-o[fn]|micro-batch-of-another|moments-(of|exact)|` +
	`rule-between|nesterov-without|rounded-second|goal-(empty|both|without|rmse)`)

func TestSchemaRefusesTheBadFiles(t *testing.T) {
	s := schemaTree(t)
	refused := 0
	for _, name := range []string{"head", "model", "data", "training", "resources"} {
		archive, err := txtar.ParseFile(filepath.Join("testdata", "bad", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if !strings.HasSuffix(f.Name, ".yaml") || beyondSchema.MatchString(f.Name) {
				continue
			}
			v, err := asJSON([]byte(complete(string(f.Data))))
			if err == nil && accepts(s, v) == nil {
				t.Errorf("%s/%s is accepted", name, f.Name)
			}
			refused++
		}
	}
	if refused < 120 {
		t.Errorf("only %d bad files were tried", refused)
	}
}

// The schema of a number has the bounds that the parser keeps.
func TestTheSchemaHasTheBoundsOfFields(t *testing.T) {
	for _, f := range fields() {
		s := f.numberSchema()
		if f.max != nil && s["maximum"] != *f.max {
			t.Errorf("%s: the maximum is %v, and the schema has %v", f.path, *f.max, s["maximum"])
		}
		if f.min != nil && s["minimum"] != *f.min {
			t.Errorf("%s: the minimum is %v, and the schema has %v", f.path, *f.min, s["minimum"])
		}
	}
}
