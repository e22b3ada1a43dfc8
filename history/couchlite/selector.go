package couchlite

import (
	"encoding/json"
	"strings"
)

// matches evaluates a Mango selector: fields with values or operators, $and, $or, $not, $nor.
func matches(doc document, selector map[string]any) (bool, error) {
	for key, want := range selector {
		ok, err := false, error(nil)
		switch key {
		case "$and", "$or", "$nor":
			ok, err = combine(doc, key, want)
		case "$not":
			sub, isMap := want.(map[string]any)
			if !isMap {
				return false, badSelector(key)
			}
			ok, err = matches(doc, sub)
			ok = !ok
		default:
			if strings.HasPrefix(key, "$") {
				return false, badSelector(key)
			}
			value, exists := field(map[string]any(doc), key)
			ok, err = holds(value, exists, want)
		}
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func badSelector(key string) error {
	return problem{400, "invalid_operator", "Invalid operator: " + key}
}

func combine(doc document, op string, want any) (bool, error) {
	list, ok := want.([]any)
	if !ok {
		return false, badSelector(op)
	}
	some, all := false, true
	for _, item := range list {
		sub, ok := item.(map[string]any)
		if !ok {
			return false, badSelector(op)
		}
		hit, err := matches(doc, sub)
		if err != nil {
			return false, err
		}
		some, all = some || hit, all && hit
	}
	return map[string]bool{"$and": all, "$or": some, "$nor": !some}[op], nil
}

// holds tests one field against a value or an object of operators.
func holds(value any, exists bool, want any) (bool, error) {
	ops, isMap := want.(map[string]any)
	if !isMap {
		return exists && compare(value, want) == 0, nil
	}
	for op, arg := range ops {
		c := compare(value, arg)
		ok := false
		switch op {
		case "$eq":
			ok = exists && c == 0
		case "$ne":
			ok = exists && c != 0
		case "$gt":
			ok = exists && c > 0
		case "$gte":
			ok = exists && c >= 0
		case "$lt":
			ok = exists && c < 0
		case "$lte":
			ok = exists && c <= 0
		case "$exists":
			ok = arg == exists
		case "$in":
			list, isList := arg.([]any)
			if !isList {
				return false, badSelector(op)
			}
			for _, v := range list {
				ok = ok || exists && compare(value, v) == 0
			}
		default:
			if strings.HasPrefix(op, "$") {
				return false, badSelector(op)
			}
			inner, there := field(value, op)
			hit, err := holds(inner, there, arg)
			if err != nil {
				return false, err
			}
			ok = hit
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// compare orders JSON values as CouchDB's collation does: null, booleans, numbers, strings, arrays, objects.
func compare(a, b any) int {
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	switch x := a.(type) {
	case bool:
		y, _ := b.(bool)
		return toInt(x) - toInt(y)
	case json.Number:
		y, _ := b.(json.Number)
		u, _ := x.Float64()
		v, _ := y.Float64()
		switch {
		case u < v:
			return -1
		case u > v:
			return 1
		}
		return 0
	case string:
		y, _ := b.(string)
		return strings.Compare(x, y)
	case nil:
		return 0
	default:
		u, _ := json.Marshal(a)
		v, _ := json.Marshal(b)
		return strings.Compare(string(u), string(v))
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func rank(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case json.Number:
		return 2
	case string:
		return 3
	case []any:
		return 4
	default:
		return 5
	}
}
