package sparse

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
)

// labels is what is known of the texts in the place of a target: two different ones are 0 and 1, others have to be
// numbers.
type labels struct {
	seen   []string // the first three different ones
	lowest []string // of two: those of 0 and 1; nil: targets are numbers
}

func (l *labels) add(text []byte) {
	if len(l.seen) > 2 || slices.Contains(l.seen, string(text)) {
		return
	}
	// the same number written in two ways is one label
	if v, ok := number(text); ok && slices.ContainsFunc(l.seen, func(s string) bool {
		w, ok := number([]byte(s))
		return ok && w == v
	}) {
		return
	}
	l.seen = append(l.seen, string(text))
}

// close decides, when all have been seen, whether they are two classes.
func (l *labels) close() {
	if len(l.seen) != 2 {
		return
	}
	l.lowest = slices.Clone(l.seen)
	slices.SortFunc(l.lowest, func(a, b string) int {
		x, isX := number([]byte(a))
		y, isY := number([]byte(b))
		if isX && isY {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a, b)
	})
}

// classes is how many the targets are of: 1 where they are numbers.
func (l *labels) classes() int {
	if l.lowest != nil {
		return 2
	}
	return 1
}

// target is what a text stands for.
func (l *labels) target(text []byte) (v float32, ok bool) {
	if l.lowest == nil {
		return number(text)
	}
	for class, name := range l.lowest {
		if string(text) == name {
			return float32(class), true
		}
	}
	v, isNumber := number(text)
	for class, name := range l.lowest {
		if w, ok := number([]byte(name)); ok && isNumber && w == v {
			return float32(class), true
		}
	}
	return 0, false
}

// number reads a finite number in decimal, as other programs write them: neither Go's 1_000 nor its 0x1p4.
func number(text []byte) (v float32, ok bool) {
	if bytes.ContainsAny(text, "_xX") {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(text), 32)
	return float32(x), err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}
