package couchlite

import (
	"encoding/json"
	"slices"
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
			ok, err = matchesField(value, exists, want)
		}
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func badSelector(key string) error {
	return couchError{400, "invalid_operator", "Invalid operator: " + key}
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

// matchesField compares one field with a value or an object of operators.
func matchesField(value any, exists bool, want any) (bool, error) {
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
			hit, err := matchesField(inner, there, arg)
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

// compare orders JSON values like CouchDB's collation: null, booleans, numbers, strings, arrays, objects.
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

// matchResult tells whether a document matches a selector, as far as the catalog knows.
type matchResult int

const (
	no matchResult = iota
	unknown
	yes
)

// test checks a document by its entry.
type test func(*entry) matchResult

func constantTest(v matchResult) test { return func(*entry) matchResult { return v } }

// compile makes a test from a selector. It uses ids and marks; for other fields the result is unknown and the document
// must be read.
func (c *catalog) compile(selector map[string]any) test {
	var all []test
	for key, want := range selector {
		all = append(all, c.condition(key, want))
	}
	return func(e *entry) matchResult {
		out := yes
		for _, t := range all {
			out = min(out, t(e))
			if out == no {
				return no
			}
		}
		return out
	}
}

func (c *catalog) condition(key string, want any) test {
	switch k := slices.Index(c.head.Fields, key); {
	case key == "$and" || key == "$or":
		return c.junction(key, want)
	case key == "_id":
		return idTest(want)
	case k < 0 || strings.HasPrefix(key, "$"):
		return constantTest(unknown)
	default:
		return markTest(k, want)
	}
}

func (c *catalog) junction(op string, want any) test {
	list, ok := want.([]any)
	if !ok {
		return constantTest(unknown)
	}
	var parts []test
	for _, item := range list {
		sub, ok := item.(map[string]any)
		if !ok {
			return constantTest(unknown)
		}
		parts = append(parts, c.compile(sub))
	}
	return func(e *entry) matchResult {
		minimum, maximum := yes, no
		for _, t := range parts {
			v := t(e)
			minimum, maximum = min(minimum, v), max(maximum, v)
		}
		if op == "$and" {
			return minimum
		}
		return maximum
	}
}

func asVerdict(ok bool) matchResult {
	if ok {
		return yes
	}
	return no
}

// idTest compares ids.
func idTest(want any) test {
	ops, isMap := want.(map[string]any)
	if !isMap {
		ops = map[string]any{"$eq": want}
	}
	return func(e *entry) matchResult {
		out := yes
		for op, arg := range ops {
			text, ok := arg.(string)
			if !ok {
				return unknown
			}
			switch op {
			case "$eq":
				ok = e.id == text
			case "$gt":
				ok = e.id > text
			case "$gte":
				ok = e.id >= text
			case "$lt":
				ok = e.id < text
			case "$lte":
				ok = e.id <= text
			default:
				return unknown
			}
			out = min(out, asVerdict(ok))
		}
		return out
	}
}

// markTest compares the marks of field k. Marks have no order.
func markTest(k int, want any) test {
	ops, isMap := want.(map[string]any)
	if !isMap {
		ops = map[string]any{"$eq": want}
	}
	var all []test
	for op, arg := range ops {
		all = append(all, operatorTest(k, op, arg))
	}
	return func(e *entry) matchResult {
		out := yes
		for _, t := range all {
			out = min(out, t(e))
		}
		return out
	}
}

func operatorTest(k int, op string, arg any) test {
	marksOf := func(e *entry) string { return e.marks[k*markSize : (k+1)*markSize] }
	switch op {
	case "$eq":
		m := markOf(arg)
		return func(e *entry) matchResult { return asVerdict(marksOf(e) == m) }
	case "$exists":
		there, ok := arg.(bool)
		if !ok {
			return constantTest(unknown)
		}
		return func(e *entry) matchResult { return asVerdict((marksOf(e) != noMark) == there) }
	case "$in":
		list, ok := arg.([]any)
		if !ok {
			return constantTest(unknown)
		}
		var marks []string
		for _, v := range list {
			marks = append(marks, markOf(v))
		}
		return func(e *entry) matchResult { return asVerdict(slices.Contains(marks, marksOf(e))) }
	default:
		return constantTest(unknown)
	}
}

// idRange is the range of ids that a selector allows.
func idRange(selector map[string]any) span {
	var s span
	ops, ok := selector["_id"].(map[string]any)
	if !ok {
		return s
	}
	for op, arg := range ops {
		text, _ := arg.(string)
		switch op {
		case "$gt", "$gte":
			s.low = max(s.low, text)
		case "$lt", "$lte":
			if s.high == "" || text < s.high {
				s.high = text
			}
		}
	}
	return s
}

// byID tells whether the requested order is the order of ids, which is so if each field before _id has one value.
func (q *query) byID() (descending, ok bool) {
	if len(q.Sort) == 0 {
		return false, true
	}
	for _, by := range q.Sort {
		for field, direction := range by {
			if field == "_id" {
				return direction == "desc", true
			}
			if !isSingleValue(q.Selector[field]) {
				return false, false
			}
		}
	}
	return false, true
}

// isSingleValue tells whether a condition allows only one value.
func isSingleValue(want any) bool {
	ops, isMap := want.(map[string]any)
	if !isMap {
		return want != nil
	}
	_, eq := ops["$eq"]
	return eq
}
