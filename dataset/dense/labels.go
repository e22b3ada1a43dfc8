package dense

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel/dataset"
)

// labels is the different texts in the place of a label, and how often each was there.
type labels struct {
	rows  map[string]*int
	class map[string]int32 // once it is closed
	names []string         // of the classes in their order
	plain bool             // they are 0, 1, 2 ... without a gap, and need no names
	over  bool             // there are more than mostClasses
	long  string           // the beginning of one that is longer than any name; "": there is none
}

// mostClasses is how many different labels are taken for classes: more of them are numbers to be predicted, or names.
const mostClasses = 10_000

// longestName is how long the name of a class, or of a category, may be: what is longer is a text to be read.
const longestName = 1 << 10

func newLabels() *labels { return &labels{rows: map[string]*int{}} }

// add counts a label. Numbers that are written in several ways are one.
func (l *labels) add(text string) {
	if l.over {
		return
	}
	if len(text) > longestName {
		l.long = strings.Clone(text[:longestName])
		return
	}
	n := l.rows[text]
	if n == nil {
		if text = canonical(text); l.rows[text] == nil {
			if l.over = len(l.rows) >= mostClasses; l.over {
				return
			}
			l.rows[strings.Clone(text)] = new(int) // the text's memory is not to be kept
		}
		n = l.rows[text]
	}
	*n++
}

// canonical is the usual way to write a number, and a text as it is.
func canonical(text string) string {
	if v, ok := number(text); ok {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return text
}

// close numbers the classes: numbers by their value, then texts by the alphabet.
func (l *labels) close() {
	for text := range l.rows {
		l.names = append(l.names, text)
	}
	slices.SortFunc(l.names, naturally)
	l.class, l.plain = map[string]int32{}, true
	for i, text := range l.names {
		l.class[text] = int32(i)
		l.plain = l.plain && text == strconv.Itoa(i)
	}
}

// name gives the classes names, in the order of their numbers from 0; why says where a label is no such number. Without
// names nothing changes.
func (l *labels) name(names []string) (why string) {
	if len(names) == 0 {
		return ""
	}
	rows := map[string]*int{}
	for _, name := range names {
		rows[name] = new(int)
	}
	for text, n := range l.rows {
		v, ok := number(text)
		if !ok || v < 0 || v != math.Trunc(v) || v >= float64(len(names)) {
			return fmt.Sprintf("there are names for %d classes, and a label is %.40q", len(names), text)
		}
		l.class[text] = int32(v)
		*rows[names[int(v)]] += *n
	}
	l.names, l.rows, l.plain = names, rows, false
	return ""
}

// naturally orders numbers by their value and before texts, which are ordered by the alphabet.
func naturally(a, b string) int {
	x, isX := number(a)
	y, isY := number(b)
	switch {
	case isX && isY:
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	case isX != isY && isX:
		return -1
	case isX != isY:
		return 1
	default:
		return cmp.Compare(a, b)
	}
}

// of is the class of a label.
func (l *labels) of(text string) (int32, bool) {
	k, ok := l.class[text]
	if !ok {
		k, ok = l.class[canonical(text)]
	}
	return k, ok
}

// classNames is nil where labels say no more than the classes' numbers.
func (l *labels) classNames() []string {
	if l.plain {
		return nil
	}
	return l.names
}

// counts is how many rows each class has.
func (l *labels) counts() []dataset.ClassRows {
	out := make([]dataset.ClassRows, len(l.names))
	for i, text := range l.names {
		out[i] = dataset.ClassRows{Name: text, Rows: *l.rows[text]}
	}
	return out
}

// fault says why the labels are no classes, "" if they are.
func (l *labels) fault() string {
	switch {
	case l.long != "":
		return fmt.Sprintf("%.40q goes on for more than %d bytes, as no class's name does", l.long, longestName)
	case l.over:
		return fmt.Sprintf("it has more than %d different values, which are no classes. To predict a number (regression) "+
			"is not supported yet: make ranges of the numbers", mostClasses)
	case len(l.names) == 1:
		return fmt.Sprintf("it is %.40q in all rows, and there is nothing to tell apart", l.names[0])
	}
	for _, text := range l.names {
		if !utf8.ValidString(text) {
			return fmt.Sprintf("%.40q is %s", text, notUTF8)
		}
	}
	return ""
}

// numeric says why the labels are numbers to predict, "" if they are classes, or if somebody insists that they are.
func (l *labels) numeric(insists bool) string {
	if insists || l.over {
		return ""
	}
	return dataset.NumericTarget(l.counts())
}

// numericNotes says that many numbers are taken for classes, unless a person said that they are.
func (l *labels) numericNotes(insists bool) []string {
	if insists {
		return nil
	}
	if note := dataset.NumericClasses(l.counts()); note != "" {
		return []string{note}
	}
	return nil
}
