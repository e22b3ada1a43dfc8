package dense

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// column collects what is known of a column.
type column struct {
	dataset.Column
	passed string             // why it is omitted; "": it is not
	target bool               // it has numbers to predict
	asked  dataset.ColumnKind // by the user; "": it is detected

	numbers, texts int
	squares        float64 // sum of squared distances from the mean (Welford 1962)
	integers       bool    // all numbers are whole
	inexact        bool    // a whole number is exactIntegers or more
	tooMany        bool    // different texts for a category
	// recent has numbers, from 1, of seen texts by their last character: most columns have few texts, or far too many
	recent [16]uint8
	seen   textSet // until close
	// different is the number of different texts; with tooMany there are more
	different int
	odd       []place
	unread    *place         // the first text that cannot be a category
	example   string         // the first text that is not missing
	typed     *typed         // nil: the file has texts
	index     map[string]int // of categories, after close
}

// typed spells the numbers of a column whose file has no texts of them.
type typed struct {
	spell  func(v float64) string
	lately [16]float64 // numbers whose texts were seen
}

// place is a text that is no number, or no category.
type place struct {
	line int
	text string

	cause string // that other texts have, too
	more  int    // texts of the same cause
	lines []int  // of the first of them
}

func newColumn(name string) column {
	return column{Column: dataset.Column{Name: name, Low: math.Inf(1), High: math.Inf(-1)}, integers: true}
}

// width is the number of values of the column in a row.
func (c *column) width() int {
	if c.passed != "" {
		return 0
	}
	return c.Width()
}

// add considers the column's cell of a row.
func (c *column) add(line int, x *cell) {
	if x.kind == aGap {
		c.Missing++
		return
	}
	if c.numbers+c.texts == 0 {
		c.example = strings.Clone(c.textOf(x))
	}
	if !c.tooMany {
		c.look(line, x)
	}
	if x.kind != aNumber {
		c.texts++
		c.addOdd(line, x.text)
		return
	}
	v := x.value
	c.numbers++
	off := v - c.Mean
	c.Mean += off / float64(c.numbers)
	c.squares += off * (v - c.Mean)
	c.Low, c.High = min(c.Low, v), max(c.High, v)
	c.integers = c.integers && v == math.Trunc(v)
	c.inexact = c.inexact || math.Abs(v) >= exactIntegers
}

// look notes the text of a cell, while there are few.
func (c *column) look(line int, x *cell) {
	text := x.text
	if text == "" && c.typed != nil {
		bits := math.Float64bits(x.value)
		last := &c.typed.lately[(bits^bits>>20^bits>>50)&15]
		if *last == x.value && x.value != 0 {
			return
		}
		*last, text = x.value, c.typed.spell(x.value)
	}
	if k := c.recent[ending(text)]; k == 0 || string(c.seen.bytes(int(k)-1)) != text {
		c.see(line, text)
	}
}

// textOf is the text of a cell.
func (c *column) textOf(x *cell) string {
	if x.text == "" && x.plain && c.typed != nil {
		return c.typed.spell(x.value)
	}
	return x.text
}

// exactIntegers is up to where a number can be every integer; a larger integer may have been rounded to it.
const exactIntegers = 1 << 53

// ending is a number for a text's last character, different for each digit.
func ending(text string) int {
	if text == "" {
		return 0
	}
	return int(text[len(text)-1] & 15)
}

// see notes a text, while there are few.
func (c *column) see(line int, text string) {
	k, isNew := c.seen.add(text, mostCategories)
	if k < 0 {
		c.tooMany, c.seen = true, textSet{}
		return
	}
	if isNew {
		c.different++
		if c.unread == nil && (!utf8.ValidString(text) || len(text) > longestName) {
			c.unread = &place{line: line, text: strings.Clone(text)} // so that the block's memory can be freed
		}
	}
	c.recent[ending(text)] = uint8(k + 1)
}

// mostLines is how many lines are listed of texts that have one cause.
const mostLines = 4

// addOdd notes a text that is no number. A column of numbers counts the texts of each cause. Others keep a few places:
// they may still become numbers.
func (c *column) addOdd(line int, text string) {
	room := min(mostFaults, mostLines+c.numbers)
	if c.target || c.isNumber() {
		room = mostFaults
		cause := causeOf(text)
		if at := slices.IndexFunc(c.odd, func(p place) bool { return p.cause == cause }); at >= 0 {
			c.odd[at].add(place{line: line})
			return
		}
	}
	if len(c.odd) < room {
		text = strings.Clone(text) // so that the block's memory can be freed
		c.odd = append(c.odd, place{line: line, text: text, cause: causeOf(text)})
	}
}

// causeOf is equal for texts that are no numbers for the same reason.
func causeOf(text string) string { return cmp.Or(nearNumber(text), text) }

// add counts another place of the same cause.
func (p *place) add(other place) {
	p.more += 1 + other.more
	for _, line := range append([]int{other.line}, other.lines...) {
		if len(p.lines) < mostLines {
			p.lines = append(p.lines, line)
		}
	}
}

// oddTexts tells of each cause once. It returns the number of texts that it tells of.
func (c *column) oddTexts(tell func(p *place)) (told int) {
	var list []place
	for _, p := range c.odd {
		if at := slices.IndexFunc(list, func(q place) bool { return p.cause == q.cause }); at >= 0 {
			list[at].add(p)
		} else {
			list = append(list, p)
		}
	}
	for i := range list {
		tell(&list[i])
		told += 1 + list[i].more
	}
	return told
}

// others says how many other texts have the same cause, and where the next ones are.
func (p *place) others() string {
	if p.more == 0 {
		return ""
	}
	var lines []string
	for _, line := range p.lines {
		lines = append(lines, strconv.Itoa(line))
	}
	if p.more > len(lines) {
		lines = append(lines, "...")
	}
	where := strings.Join(lines, ", ")
	if p.more == 1 {
		return "; one more is like it: line " + where
	}
	return fmt.Sprintf("; %d more are like it: lines %s", p.more, where)
}

// advice says what to do about a text that is no number, and where its cause is also found.
func (p *place) advice() string {
	what := nearNumber(p.text) + p.others()
	if p.more > 0 && p.cause == p.text {
		what += fmt.Sprintf("; if it stands for no value: --missing %.40s", quoted(p.text))
	}
	return what
}

// fewTexts is for how many numbers one text is probably an error and no category.
const fewTexts = 20

// close decides from all rows what the column is, and adds its faults.
func (c *column) close(at int, wrong *faults) {
	if c.passed != "" {
		return
	}
	switch {
	case c.numbers+c.texts == 0:
		c.passed = "it is empty"
	case c.isNumber():
		c.Kind = dataset.ColumnNumber
		c.Deviation = math.Sqrt(c.squares / float64(max(1, c.numbers)))
		wrong.more += c.texts - c.oddTexts(func(p *place) {
			wrong.at(p.line, at+1, c.Name, "%.40q is no number%s", p.text, p.advice())
		})
	case c.tooMany && len(c.odd) == 0:
		wrong.add(disdel.Fault{
			Column: at + 1, Path: c.Name,
			Msg:  fmt.Sprintf("it has more than %d different numbers, and a category has no more", mostCategories),
			Hint: "leave the kind of this column out",
		})
	case c.tooMany:
		wrong.at(c.odd[0].line, at+1, c.Name, "%s", tooManyTexts(c.odd[0].text, c.Name))
	case c.unread != nil:
		wrong.at(c.unread.line, at+1, c.Name, "%s", unreadable(c.unread.text))
	case c.different == 1:
		c.passed = "it is the same in all rows"
	default:
		c.Kind = dataset.ColumnCategory
		c.Categories = c.seen.texts()
		slices.SortFunc(c.Categories, numbersFirst)
		c.index = map[string]int{}
		for k, text := range c.Categories {
			c.index[text] = k
		}
	}
	if c.seen = (textSet{}); c.Kind != dataset.ColumnNumber {
		c.Low, c.High, c.Mean = 0, 0, 0
	}
}

// tooManyTexts says why a column with more than mostCategories texts, such as this one, cannot be read, and what to do.
func tooManyTexts(text, name string) string {
	if near := nearNumber(text); near != "" {
		return fmt.Sprintf("%.40q is no number%s; or leave it out (--skip %s)", text, near, quoted(name))
	}
	if isDate(text) {
		return fmt.Sprintf("it has more than %d different dates such as %.40q: leave it out (--skip %s), or write it as "+
			"a number, such as days since the first", mostCategories, text, quoted(name))
	}
	what := "names, ids and dates"
	if strings.Count(text, " ") >= fewWords {
		what = "sentences"
	}
	return fmt.Sprintf("it has more than %d different texts such as %.40q, as %s have: leave it out (--skip %s); "+
		"to learn from words of texts: disdel explain text", mostCategories, text, what, quoted(name))
}

// isDate tells whether a text begins with a date as ISO 8601 writes it.
func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))])
	return err == nil
}

// fewWords is how many spaces a text has at least that is a sentence and no name.
const fewWords = 4

// quoted is a name as an argument of a shell.
func quoted(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return strings.ContainsRune(" $`\"'\\&|;<>()*?[]#~!{}", r) }) {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return name
}

// isNumber tells whether the column has numbers.
func (c *column) isNumber() bool {
	if c.asked != "" {
		return c.asked == dataset.ColumnNumber
	}
	return c.texts == 0 || c.texts*fewTexts < c.numbers
}

// closeTarget adds the faults of a column of numbers to predict.
func (c *column) closeTarget(at int, wrong *faults) {
	c.Deviation = math.Sqrt(c.squares / float64(max(1, c.numbers)))
	wrong.more += c.texts - c.oddTexts(func(p *place) {
		wrong.at(p.line, at+1, c.Name, "the target: %.40q is no number to predict%s", p.text, p.advice())
	})
	if c.texts == 0 && c.numbers > 0 && !(c.Deviation > 0) {
		wrong.add(disdel.Fault{
			Column: at + 1, Path: c.Name,
			Msg:  fmt.Sprintf("the target: it is %g in all rows, and there is nothing to predict", c.Mean),
			Hint: "name another column: --target COLUMN",
		})
	}
}

// closeLabel adds the faults of a column of a label of several.
func (c *column) closeLabel(at int, wrong *faults) {
	wrong.more += c.texts - c.oddTexts(func(p *place) {
		wrong.at(p.line, at+1, c.Name, "the label: %.40q is not 0, 1, true or false%s", p.text, p.others())
	})
	if c.texts == 0 && c.numbers > 0 && c.Low == c.High {
		wrong.add(disdel.Fault{
			Column: at + 1, Path: c.Name,
			Msg:  fmt.Sprintf("the label: it is %g in all rows, and there is nothing to learn", c.Mean),
			Hint: "leave it out of --label",
		})
	}
}

// readFlag reads a label of several: yes or no.
func (t *table) readFlag(x *cell) {
	text := x.text
	t.readValue(x)
	switch {
	case x.kind == aNumber && x.value != 0 && x.value != 1:
		if x.kind = aText; text == "" { // a file with types has none
			x.text = strconv.FormatFloat(x.value, 'g', -1, 64)
		}
	case x.kind == aText && strings.EqualFold(text, "true"):
		x.value, x.kind = 1, aNumber
	case x.kind == aText && strings.EqualFold(text, "false"):
		x.value, x.kind = 0, aNumber
	}
}

// notUTF8 is the message for a text that is not UTF-8.
const notUTF8 = "no text in UTF-8; if it is in Latin-1: iconv -f latin1 -t utf-8 FILE > OUT"

// unreadable says why a text cannot be a category.
func unreadable(text string) string {
	if !utf8.ValidString(text) {
		return fmt.Sprintf("%.40q is %s", text, notUTF8)
	}
	return fmt.Sprintf("%.40q goes on for %d bytes, as no category does: leave it out (--skip)", text, len(text))
}

// nearNumber is an addition to a message for a text that is a number except for its marks of decimals and thousands,
// its percent sign, or its size; "" for any other.
func nearNumber(text string) string {
	bare, percent := strings.CutSuffix(text, "%")
	bare = strings.TrimSpace(bare)
	_, comma := written(bare, ",")
	_, point := written(bare, ".")
	_, plain := number(bare)
	size, _ := strconv.ParseFloat(bare, 64) // infinite for a number that is too large
	switch {
	case math.Abs(size) > math.MaxFloat32:
		return "; the largest one is 3.4e38: if it stands for no value, --missing " + quoted(text)
	case plain && percent:
		return "; a number has no percent sign"
	case plain:
		return ""
	case comma && point && strings.Contains(bare, ","):
		return "; if its comma is for decimals: --decimal , and if it separates thousands: --decimal ."
	case point:
		return "; decimals have a point, and with --decimal . thousands may have a mark"
	case comma:
		return "; decimals have a point, and with --decimal , a comma"
	default:
		return ""
	}
}

// isText tells whether a text does not even look like a number.
func isText(text string) bool {
	_, ok := number(text)
	return !ok && nearNumber(text) == ""
}

// almostNumbers notes that the column became categories, although most of its texts are numbers or look like them; ""
// for all others.
func (c *column) almostNumbers(format tableFormat) string {
	texts := slices.DeleteFunc(slices.Clone(c.Categories), func(text string) bool { return !isText(text) })
	if c.passed != "" || c.asked != "" || len(c.odd) == 0 || 2*len(texts) >= len(c.Categories) {
		return ""
	}
	var places []string
	near := ""
	c.oddTexts(func(p *place) {
		near = cmp.Or(near, nearNumber(p.text))
		places = append(places, fmt.Sprintf("%s has %.40q", format.place(p.line), p.text))
	})
	advice := near
	if len(texts) > 0 {
		advice += "; if a text stands for no value: --missing TEXT; for numbers: --kind " + quoted(c.Name+"=number")
	}
	return fmt.Sprintf("%s is kept as %d categories and not as numbers: %s%s",
		c.Name, len(c.Categories), strings.Join(places[:min(len(places), mostLines)], ", "), advice)
}

// scale sets how numbers are scaled.
func (c *column) scale(by Scale) {
	c.Shift, c.Factor = 0, 1
	switch {
	case c.Kind != dataset.ColumnNumber:
		c.Factor = 0
	case by == Standard:
		c.Shift = c.Mean
		if c.Deviation > 0 {
			c.Factor = 1 / c.Deviation
		}
	case by == Range:
		c.Shift = c.Low
		if c.High > c.Low {
			c.Factor = 1 / (c.High - c.Low)
		}
	}
}

// inBytes tells whether all numbers fit a byte each unchanged.
func (c *column) inBytes() bool {
	return c.Kind == dataset.ColumnNumber && c.integers && c.Missing == 0 && c.Low >= 0 && c.High <= math.MaxUint8
}

// write appends the values of a cell. An unknown category is stored like a missing one.
func (c *column) write(to []float32, x *cell) []float32 {
	if c.index != nil {
		at := len(to)
		to = append(to, make([]float32, len(c.Categories))...)
		if x.kind == aNumber {
			to[at+int(x.value)] = 1
		}
		return to
	}
	v := x.value
	if x.kind == aGap {
		v = c.Mean
	}
	return append(to, float32((v-c.Shift)*c.Factor))
}

// labels is the different labels, and how often each occurs.
type labels struct {
	rows  map[string]*int
	class map[string]int32 // after close
	names []string         // of the classes in their order
	plain bool             // they are 0, 1, 2 ... without a gap, and need no names
	over  bool             // there are more than mostClasses
	long  string           // the start of one that is longer than any name; "": none
}

// mostClasses is how many different labels can be classes: more of them are numbers to predict, or names.
const mostClasses = 10_000

// longestName is the longest name of a class or category: a longer text is something to read.
const longestName = 1 << 10

func newLabels() *labels { return &labels{rows: map[string]*int{}} }

// add counts a label. The same number in several spellings is one label.
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
			l.rows[strings.Clone(text)] = new(int) // so that the text's memory can be freed
		}
		n = l.rows[text]
	}
	*n++
}

// canonical is the usual spelling of a number; a text is unchanged, and so is a number that may stand for several
// integers: different ids stay different classes.
func canonical(text string) string {
	const smallest = 1e-4 // without an exponent
	v, ok := number(text)
	switch size := math.Abs(v); {
	case !ok, size >= exactIntegers:
		return text
	case size != 0 && size < smallest:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}

// close numbers the classes: numbers by their value, then texts alphabetically.
func (l *labels) close() {
	for text := range l.rows {
		l.names = append(l.names, text)
	}
	slices.SortFunc(l.names, numbersFirst)
	l.class, l.plain = map[string]int32{}, true
	for i, text := range l.names {
		l.class[text] = int32(i)
		l.plain = l.plain && text == strconv.Itoa(i)
	}
}

// name gives the classes names, in the order of their numbers from 0; why is set if a label is no such number.
// Without names nothing changes.
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

// numbersFirst orders numbers by their value and before texts, which are in alphabetical order.
func numbersFirst(a, b string) int {
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

// LabelText is the name that a table's label has as a class: a number in its usual spelling, other texts as they are.
func LabelText(text string) string { return canonical(trimmed(text)) }

// index is the class of a label.
func (l *labels) index(text string) (int32, bool) {
	k, ok := l.class[text]
	if !ok {
		k, ok = l.class[canonical(text)]
	}
	return k, ok
}

// classNames is nil if labels are only the classes' numbers.
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
		return fmt.Sprintf("it has more than %d different values, which are no classes. To predict a number, add --target "+
			"COLUMN", mostClasses)
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

// fewRows are so few rows that each may well have a class of its own.
const fewRows = 20

// scattered says why the labels of a column that nobody named are no classes: more than half of the rows differ.
func (l *labels) scattered(named bool) string {
	rows := 0
	for _, n := range l.rows {
		rows += *n
	}
	if named || rows < fewRows || 2*len(l.names) <= rows {
		return ""
	}
	return fmt.Sprintf("%d rows have %d different values, which are hardly classes. No column is called label or class, "+
		"and so it is the last one", rows, len(l.names))
}

// allNumbers tells whether each label is a number.
func (l *labels) allNumbers() bool {
	isText := func(name string) bool { _, ok := number(name); return !ok }
	return !slices.ContainsFunc(l.names, isText)
}

// chosen tells whether the label's column has its place by its name, or from the user.
func (t *table) chosen() bool {
	usual := func(name string) bool { return strings.EqualFold(name, t.names[t.label]) }
	return t.Label != "" || t.LabelClasses || slices.ContainsFunc(usualLabels, usual)
}

// numeric says why the labels are numbers to predict, "" if they are classes, or if the user insists that they are.
func (l *labels) numeric(insists bool) string {
	if insists || l.over {
		return ""
	}
	return dataset.NumericTarget(l.counts())
}

// numericNotes notes that many numbers are used as classes, unless the user insists that they are.
func (l *labels) numericNotes(insists bool) []string {
	if insists {
		return nil
	}
	if note := dataset.NumericClasses(l.counts()); note != "" {
		return []string{note}
	}
	return nil
}

// leastPixels is the smallest picture, 8x8.
const leastPixels = 64

// pixels tells whether the columns look like those of a picture.
func (t *table) pixels() bool {
	n, high := 0, 0.0
	for i := range t.columns {
		c := &t.columns[i]
		if c.passed == "" && !c.inBytes() {
			return false
		}
		if c.passed == "" {
			n, high = n+1, max(high, c.High)
		}
	}
	return n >= leastPixels && high > 1
}
