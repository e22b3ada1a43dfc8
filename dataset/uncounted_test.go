package dataset

import (
	"strings"
	"testing"
)

// Rows whose reader did not count the classes are not said to have none.
func TestUncountedClassesAreNotWarnedOf(t *testing.T) {
	m := &Manifest{Sample: []int{1, 1, 2}, Classes: 3, Train: Part{Rows: 9}, Test: Part{Rows: 3}}
	if list := (&Interpretation{}).Warnings(m); len(list) > 0 {
		t.Errorf("%q", list)
	}
	counted := &Interpretation{Classes: []ClassRows{{"a", 9}, {"b", 0}, {"c", 0}}}
	if list := counted.Warnings(m); len(list) != 1 {
		t.Errorf("%q", list)
	}
	each := make([]int, 12)
	for k := range each {
		each[k] = 1
	}
	if text := classWarnings(each, false); !strings.Contains(text, "every row has a class of its own") {
		t.Errorf("%q", text)
	}
}
