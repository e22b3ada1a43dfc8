package dense

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// CSV is rows of a table: a label or numbers to predict, and columns of numbers and of texts. What is not given is
// detected, also the file's format: CSV, JSON objects in lines or in an array, or Parquet with flat columns. Faults of
// a Parquet file, and of an array, have the number of the row, from 1, as their line.
type CSV struct {
	dataset.Source
	Test      *dataset.Source // held-out rows with the same columns; nil: none
	HeldOut   *HeldOut        // which rows of Source are held out; nil: none
	Separator rune            // 0: comma, semicolon, tab or bar, the most frequent in the first line; or Blanks
	Header    Header          // "": detected
	// Label is its column's name, or number from 1; "": label, class, target or y, or the last one. With several columns,
	// which commas separate, rows have several labels, each yes or no: 1 or 0, true or false.
	Label        string
	LabelClasses bool     // each label is a class, even if labels look like numbers to predict
	Targets      []string // names or numbers of the columns of numbers to predict; nil: rows have a label
	Skip         []string // names or numbers of columns to omit
	// Kinds are the kinds of columns, by name or number, where the detected ones are wrong. ColumnSkip omits a column.
	Kinds   map[string]dataset.ColumnKind
	Missing []string // further texts that stand for no value
	// Decimal is the mark of decimals, a comma or a point; the other one separates thousands. "": a point, and thousands
	// have no mark.
	Decimal string
	Scale   Scale // of numbers; "": standard, and with Shape none
	Shape   []int // of the numbers of a row, [channels height width]; nil: single values
	// MaxColumns limits the columns; 0: 65,536. Reading needs about a kilobyte for each.
	MaxColumns int
}

// Headless is the format of the names of columns in a table without a header, numbered from 1.
const Headless = "column %d"

// Header says whether the first line has the names of the columns.
type Header string

// The headers.
const (
	HeaderYes Header = "yes"
	HeaderNo  Header = "no"
)

// Scale says how a number becomes a value of about -1 to 1, by its distribution over the training rows.
type Scale string

// The scales, named as those of sparse rows.
const (
	Standard Scale = "standard" // minus the mean, divided by the standard deviation
	Range    Scale = "range"    // from 0 at the least to 1 at the largest
	AsIs     Scale = "none"
)

// usualMissing are texts that usually stand for no value.
var usualMissing = []string{
	"", "?", "NA", "N/A", "#N/A", "<NA>", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "none", "-",
	"-nan", "-NaN", "#NA", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", // as C and pandas write them
}

// mostCategories is how many different texts of a column can be categories: each is a value of every row.
const mostCategories = 64

// mostValues limits the values of a row.
const mostValues = 1 << 24

// Input reads the file once, to find out its columns and faults. It returns Invalid, or all faults as *disdel.Faults
// with their lines.
func (c CSV) Input(name string) (in dataset.DenseInput, err error) {
	if err := c.check(); err != nil {
		return in, err
	}
	t := &table{CSV: c}
	if err := t.begin(); err != nil {
		return in, err
	}
	if err := t.learn(); err != nil {
		return in, err
	}
	if t.heldOutPart() != nil {
		if err := t.test(*t.heldOutPart()); err != nil {
			return in, err
		}
	}
	in = dataset.DenseInput{
		Name: name, Title: "Rows of " + base(c.Name), Shape: t.shape(), Classes: len(t.labels.names),
		ClassNames: t.labels.classNames(), LabelClasses: t.LabelClasses, Bytes: t.bytes, Columns: t.described(), Each: t.each,
	}
	if in.Columns != nil {
		in.Missing, in.Decimal = t.CSV.Missing, t.Decimal
		if c.Separator > 0 {
			in.Separator = string(c.Separator)
		}
	}
	if in.Columns != nil && len(t.targets) == 0 {
		in.Label = t.names[t.label]
	}
	if len(t.targets) > 0 {
		in.Classes, in.ClassNames, in.Targets = len(t.targets), nil, t.targetsOf()
	}
	in.Understood = t.understood()
	err = t.onlyID(&in.Understood)
	return in, err
}

func (c *CSV) check() error {
	bad := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "read " + c.Name, Msg: msg, Hint: hint}
	}
	switch {
	case !slices.Contains([]Header{"", HeaderYes, HeaderNo}, c.Header):
		return bad("there is no header "+strconv.Quote(string(c.Header)), "yes or no; without it, it is found out")
	case len(c.Targets) > 0 && (c.Label != "" || c.LabelClasses):
		return bad("a row has either a label or targets", "leave the label out, or the targets")
	case !slices.Contains([]Scale{"", Standard, Range, AsIs}, c.Scale):
		return bad("there is no scale "+strconv.Quote(string(c.Scale)), "standard, range or none")
	case !slices.Contains([]string{"", ",", "."}, c.Decimal):
		return bad("decimals have no "+strconv.Quote(c.Decimal), "write --decimal , or --decimal .")
	case c.MaxColumns < 0 || c.MaxColumns > largestMaxColumns:
		return bad(fmt.Sprintf("a table of %d columns is not read", c.MaxColumns),
			fmt.Sprintf("--max-columns takes 1 to %d", largestMaxColumns))
	case strings.ContainsRune("\"\r\n\uFFFD", c.Separator) && c.Separator != 0:
		return bad("the separator is one character, and neither a quote nor the end of a line", "")
	default:
		return c.checkHeldOut()
	}
}

// table is a CSV file during reading.
type table struct {
	CSV
	format  tableFormat
	blanks  bool // runs of blanks separate the columns; they are read as tabs
	header  bool
	sniffed bool // the header was detected
	names   []string
	label   int   // its column; the first target where rows have targets
	targets []int // columns of the targets, in the order of the outputs; nil: rows have a label
	several bool  // the targets are labels, each yes or no
	columns []column
	missing map[string]bool
	// numbersMiss says that a number may stand for no value, or for another number.
	numbersMiss bool

	labels  labels
	learned int // training rows
	tested  int
	bytes   bool

	unlabelled int // rows without a label, which are left out

	first struct {
		line   int
		record []string
	}
	unknown int // texts of held-out rows that no training row has

	held *heldOutRows // nil: no row of Source is held out
}

// shape is the shape of a row.
func (t *table) shape() []int {
	if t.Shape != nil {
		return t.Shape
	}
	return []int{1, 1, t.width()}
}

// width is the number of values of a row.
func (t *table) width() int {
	n := 0
	for i := range t.columns {
		n += t.columns[i].width()
	}
	return n
}

// begin reads the first lines.
func (t *table) begin() error {
	t.missing = missingTexts(t.CSV.Missing)
	t.numbersMiss = t.Decimal == "," // 1.234 is no fraction
	for text := range t.missing {
		_, isNumber := written(text, t.Decimal)
		t.numbersMiss = t.numbersMiss || isNumber
	}
	if err := t.convert(); err != nil {
		return err
	}
	if t.format == formatCSV {
		top, err := t.sniff()
		if err != nil {
			return err
		}
		if t.names = make([]string, len(top[0])); t.header {
			t.names = top[0]
		}
		t.names = HeaderNames(t.names)
		if err := t.checkHeldOutHeader(); err != nil {
			return err
		}
	}
	for i := range t.names {
		if !utf8.ValidString(t.names[i]) {
			wrong := faults{file: t.Name}
			wrong.at(1, i+1, "columns", "the name %.40q is %s", t.names[i], notUTF8)
			return wrong.err()
		}
	}
	if !slices.Contains(t.names, t.Label) && strings.Contains(t.Label, ",") {
		if err := t.severalLabels(); err != nil {
			return err
		}
	}
	if err := t.choose(); err != nil {
		return err
	}
	t.labels = *newLabels()
	return t.chooseHeldOut()
}

// severalLabels makes the columns of several labels targets. It returns Invalid for rules that are for classes.
func (t *table) severalLabels() error {
	t.several = true
	for name := range strings.SplitSeq(t.Label, ",") {
		t.Targets = append(t.Targets, strings.TrimSpace(name))
	}
	t.Label = ""
	if !t.LabelClasses {
		return t.check()
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + t.Name, Msg: "each of several labels is yes or no, and no class",
		Hint: "leave --label-classes out, or name one column: --label COLUMN",
	}
}

// usualLabels are common names of a label's column.
var usualLabels = []string{"label", "class", "target", "y"}

// choose finds the label's column and the omitted ones.
func (t *table) choose() error {
	t.label = len(t.names) - 1
	for _, text := range t.Targets {
		at, err := t.find(text)
		if err == nil && slices.Contains(t.targets, at) {
			err = &disdel.Error{
				Kind: disdel.Invalid, Op: "read " + t.Name, Msg: fmt.Sprintf("the target %s is given twice", t.names[at]),
				Hint: "leave one of them out",
			}
		}
		if err != nil {
			return err
		}
		t.targets = append(t.targets, at)
	}
	if len(t.targets) > 0 {
		t.label = t.targets[0]
	} else if t.Label != "" {
		at, err := t.find(t.Label)
		if err != nil {
			return err
		}
		t.label = at
	} else {
		for _, usual := range slices.Backward(usualLabels) {
			if at := slices.IndexFunc(t.names, func(n string) bool { return strings.EqualFold(n, usual) }); at >= 0 {
				t.label = at
			}
		}
	}
	t.columns = make([]column, len(t.names))
	for i := range t.columns {
		t.columns[i] = newColumn(t.names[i])
		if t.format == formatParquet && strings.HasPrefix(t.names[i], "__index_level_") {
			t.columns[i].passed = isIndex
		}
	}
	t.columns[t.label].passed = isLabel
	for _, at := range t.targets {
		if t.columns[at].passed, t.columns[at].target = isTarget, true; t.several {
			t.columns[at].passed = isYesOrNo
		}
	}
	for _, text := range t.Skip {
		at, err := t.find(text)
		if err != nil {
			return err
		}
		if at != t.label && !t.columns[at].target {
			t.columns[at].passed = asAsked
		}
	}
	return t.setKinds()
}

// setKinds sets the kinds of columns that the user names. It returns one error for all faults.
func (t *table) setKinds() error {
	var wrong []string
	var hint error
	for _, text := range slices.Sorted(maps.Keys(t.Kinds)) {
		kind := t.Kinds[text]
		at, err := t.find(text)
		switch {
		case err != nil:
			wrong, hint = append(wrong, "there is no column "+strconv.Quote(text)), err
		case kind != dataset.ColumnNumber && kind != dataset.ColumnCategory && kind != dataset.ColumnSkip:
			wrong = append(wrong, fmt.Sprintf("%s: there is no kind %q", t.names[at], kind))
		case t.columns[at].target && kind != dataset.ColumnNumber:
			wrong = append(wrong, t.names[at]+": "+t.columns[at].passed)
		case t.columns[at].passed == isLabel && kind != dataset.ColumnCategory:
			wrong = append(wrong, t.names[at]+": it is the label; to predict a number: --target "+t.names[at])
		case t.columns[at].passed == asAsked && kind != dataset.ColumnSkip, t.columns[at].asked != "":
			wrong = append(wrong, t.names[at]+": it has two kinds")
		case kind == dataset.ColumnSkip:
			t.columns[at].passed = asAsked
		default:
			if t.columns[at].asked = kind; t.columns[at].passed == isIndex {
				t.columns[at].passed = ""
			}
		}
	}
	if wrong == nil {
		return nil
	}
	bad := &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + t.Name, Msg: strings.Join(wrong, "; "),
		Hint: "the kinds are number, category and skip",
	}
	if hint != nil {
		bad.Hint += "; " + disdel.AsError(hint).Hint
	}
	return bad
}

// Why columns are no values of a row.
const (
	isLabel   = "it is the label"
	isTarget  = "it is a number to predict"
	isYesOrNo = "it is one of several labels"
	isIndex   = "it is the index of a pandas table"
)

// asAsked is why a column that the user names is left out.
const asAsked = "as was asked for"

// find returns the column with a name, or a number from 1.
func (t *table) find(text string) (int, error) {
	if at := slices.Index(t.names, text); at >= 0 {
		return at, nil
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(t.names) {
		return n - 1, nil
	}
	known := t.names
	if len(known) > mostNames {
		known = append(slices.Clone(known[:mostNames]), "...")
	}
	return 0, &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + t.Name, Msg: "there is no column " + strconv.Quote(text),
		Hint: "the columns are " + strings.Join(known, ", ") + ", or numbers from 1",
	}
}

// mostNames is how many names of columns are listed.
const mostNames = 12

// learn reads the training rows for their common properties.
func (t *table) learn() error {
	wrong := &faults{file: t.Name}
	err := t.rows(t.Source, wrong, func(r row) error {
		if r.heldOut {
			return nil // its values decide nothing: they are those of new rows
		}
		if t.first.line == 0 {
			t.first.line, t.first.record = r.line, t.cloned(r.cells)
		}
		t.learned++
		for i := range t.columns {
			if c := &t.columns[i]; c.passed == "" || c.target {
				c.add(r.line, &r.cells[i])
			}
		}
		if len(t.targets) == 0 {
			t.labels.add(r.cells[t.label].text)
		}
		return nil
	})
	t.unlabelled = wrong.unlabelled
	if err != nil {
		return err
	}
	if t.learned == 0 && wrong.err() == nil {
		wrong.at(0, 0, "rows", "there are none with a %s", t.what())
	}
	t.decide(wrong)
	slices.SortStableFunc(wrong.list, func(a, b disdel.Fault) int { return a.Line - b.Line })
	if t.sniffed && !t.header && len(wrong.list) > 0 && wrong.list[0].Line == 1 && wrong.list[0].Hint == "" {
		wrong.list[0].Hint = "if the first line is a header: --header yes"
	}
	return wrong.err()
}

// cloned copies a record.
func (t *table) cloned(cells []cell) []string {
	out := make([]string, len(cells))
	for i := range cells {
		out[i] = strings.Clone(t.columns[i].textOf(&cells[i]))
	}
	return out
}

// decide decides what all columns are.
func (t *table) decide(wrong *faults) {
	t.labels.close()
	for _, at := range t.targets {
		if t.several {
			t.columns[at].closeLabel(at, wrong)
		} else {
			t.columns[at].closeTarget(at, wrong)
		}
	}
	if len(t.targets) > 0 {
		// Every row has numbers.
	} else if why := cmp.Or(t.labels.fault(), t.labels.scattered(t.chosen())); why != "" && t.learned > 0 {
		hint := "name the label's column: --label COLUMN"
		if t.labels.fault() == "" && t.labels.allNumbers() {
			hint += "; to predict these numbers: --target " + quoted(t.names[t.label])
		}
		wrong.add(disdel.Fault{Path: t.names[t.label], Msg: "the label: " + why, Hint: hint})
	} else if why := t.labels.numeric(t.LabelClasses); why != "" {
		wrong.add(disdel.Fault{
			Path: t.names[t.label], Msg: "the label: " + why,
			Hint: dataset.NumericTargetHint + "; if another column has the class: --label COLUMN",
		})
	}
	inBytes := true
	for i := range t.columns {
		c := &t.columns[i]
		c.close(i, wrong)
		inBytes = inBytes && (c.passed != "" || c.inBytes())
	}
	scale := t.Scale
	if scale == "" && t.Shape != nil {
		scale = AsIs
	}
	if scale == "" {
		scale = Standard
	}
	t.bytes = t.Shape != nil && scale == AsIs && inBytes
	for i := range t.columns {
		t.columns[i].scale(scale)
	}
	t.Scale = scale
	width := t.width()
	switch {
	case t.Shape != nil && width != product(t.Shape):
		wrong.at(0, 0, "columns", "a row has %d values, and shape %v needs %d", width, t.Shape, product(t.Shape))
	case width == 0 && t.learned > 0 && len(wrong.list) == 0:
		wrong.at(0, 0, "columns", "none is left beside the %s", t.what())
	case width > mostValues:
		wrong.at(0, 0, "columns", "a row has %d values, and %d are the most", width, mostValues)
	}
}

// what is what a row has to learn from: "label" or "target".
func (t *table) what() string {
	if len(t.targets) > 0 {
		return "target"
	}
	return "label"
}

// asTarget describes a column of numbers to predict, or a label of several.
func (t *table) asTarget(at int) disdel.Target {
	c := &t.columns[at]
	if t.several {
		return disdel.Target{Name: c.Name, Deviation: 1, High: 1, Label: true}
	}
	return disdel.Target{Name: c.Name, Mean: c.Mean, Deviation: c.Deviation, Low: c.Low, High: c.High}
}

// targetsOf describes the targets after the columns are decided.
func (t *table) targetsOf() []disdel.Target {
	out := make([]disdel.Target, len(t.targets))
	for k, at := range t.targets {
		out[k] = t.asTarget(at)
	}
	return out
}

func product(shape []int) int {
	n := 1
	for _, v := range shape {
		n *= v
	}
	return n
}

// test reads the held-out rows for faults.
func (t *table) test(from dataset.Source) error {
	wrong := &faults{file: from.Name}
	err := t.rows(from, wrong, func(r row) error {
		if t.held != nil && !r.heldOut {
			return nil
		}
		t.tested++
		t.unknown += r.unknownTexts
		if r.why != "" {
			fault := disdel.Fault{Line: r.line, Column: r.at + 1, Path: t.names[r.at], Msg: r.why}
			if r.heldOut && r.at == t.label {
				fault.Hint = "another --seed holds out other groups, and a smaller --held-out fewer rows"
			}
			wrong.add(fault)
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch {
	case t.tested > 0 || wrong.err() != nil:
	case t.HeldOut != nil:
		wrong.at(0, 0, "rows", "none is held out, since the share is too small for so few; raise --held-out")
	default:
		wrong.at(0, 0, "rows", "there are none")
	}
	return wrong.err()
}

// each yields the rows.
func (t *table) each(yield func(dataset.DenseRow) error) error {
	if err := t.part(t.Source, false, yield); err != nil || t.Test == nil {
		return err
	}
	return t.part(*t.Test, true, yield)
}

func (t *table) part(from dataset.Source, heldOut bool, yield func(dataset.DenseRow) error) error {
	wrong := &faults{file: from.Name}
	var out dataset.DenseRow
	err := t.rows(from, wrong, func(r row) error {
		if r.why != "" { // the first reading did not find this
			wrong.at(r.line, r.at+1, t.names[r.at], "%s; the file has changed meanwhile", r.why)
			return wrong.err()
		}
		out.HeldOut, out.Label, out.Targets = heldOut || r.heldOut, r.class, r.targets
		if t.bytes {
			out.Bytes = out.Bytes[:0]
			for _, v := range r.values {
				out.Bytes = append(out.Bytes, byte(v))
			}
		} else {
			out.Values = r.values
		}
		return yield(out)
	})
	if err == nil {
		err = wrong.err()
	}
	return err
}

const mostShown = 8

// described is the columns of the data set.
func (t *table) described() []dataset.Column {
	if t.Shape != nil {
		return nil
	}
	out := make([]dataset.Column, 0, len(t.columns))
	for i := range t.columns {
		if t.columns[i].passed == "" {
			out = append(out, t.columns[i].Column)
		}
	}
	return out
}

var separators = map[rune]string{',': "commas", ';': "semicolons", '\t': "tabs", '|': "bars", ' ': "spaces"}

// understood is the interpretation of the file.
func (t *table) understood() dataset.Interpretation {
	by, ok := separators[t.Separator]
	switch {
	case t.blanks:
		by = "blanks (one or several spaces or tabs)"
	case !ok:
		by = fmt.Sprintf("%q", t.Separator)
	}
	u := dataset.Interpretation{
		Kind: "CSV, separated by " + by + ", without a header", Rows: t.learned, HeldOut: t.tested,
		Classes: t.labels.counts(), Values: t.kept(),
		Columns: t.readings(),
	}
	if t.header {
		u.Kind = "CSV, separated by " + by + ", with a header"
	}
	if t.format != formatCSV {
		u.Kind = string(t.format)
	}
	if len(t.targets) > 0 {
		u.Targets = t.targetsOf()
	}
	u.Example = dataset.Example{Place: t.format.place(t.first.line), Class: t.first.record[t.label]}
	for i := range t.columns {
		c := &t.columns[i]
		switch {
		case c.passed == isLabel:
			u.Kind += fmt.Sprintf("; the label is %s", c.Name)
		case c.target && t.several:
			yes := int(math.Round(c.Mean * float64(c.numbers)))
			u.Kind += fmt.Sprintf("; a label is %s, in %s", c.Name, disdel.Counted(yes, "row"))
		case c.target:
			u.Kind += fmt.Sprintf("; a target is %s", c.Name)
		case c.passed != "":
			u.Passed = append(u.Passed, c.Name+": "+c.passed)
		case len(u.Example.Values) == mostShown:
			u.Example.More++
		default:
			u.Example.Values = append(u.Example.Values, c.Name+" "+t.first.record[i])
		}
	}
	if t.held != nil {
		u.Kind += t.heldOutRule()
	}
	if t.unlabelled > 0 {
		u.Notes = append(u.Notes, disdel.Counted(t.unlabelled, "row")+" without "+
			t.names[t.label]+", the "+t.what()+", are left out")
	}
	if t.unknown > 0 {
		u.Notes = append(u.Notes,
			fmt.Sprintf("held-out rows have %d texts that no row to learn from has; they are kept as missing",
				t.unknown))
	}
	if len(t.targets) == 0 {
		u.Notes = append(u.Notes, t.labels.numericNotes(t.LabelClasses)...)
	}
	for i := range t.columns {
		if note := t.columns[i].almostNumbers(t.format); note != "" {
			u.Notes = append(u.Notes, note)
		}
	}
	u.Notes = append(u.Notes, t.inexactIntegers()...)
	if t.Shape == nil && t.pixels() {
		u.Notes = append(u.Notes,
			"all values are whole numbers from 0 to 255; if rows are images, add --shape 1xHEIGHTxWIDTH --overwrite")
	}
	return u
}

// inexactIntegers notes columns of integers that lose their last digits, as ids do.
func (t *table) inexactIntegers() (list []string) {
	for i := range t.columns {
		if c := &t.columns[i]; c.inexact && c.integers && (c.target || c.passed == "" && c.Kind == dataset.ColumnNumber) {
			list = append(list, fmt.Sprintf("%s has integers of 2^53 or more, which lose their last digits; if they are ids, "+
				"leave them out (--skip)", c.Name))
		}
	}
	return list
}

// kept says how values are stored.
func (t *table) kept() string {
	if t.bytes {
		return "bytes, as 0..1 from 0..255"
	}
	switch t.Scale {
	case Standard:
		return "numbers less their column's mean, over its deviation"
	case Range:
		return "numbers as 0..1 from their column's least to its largest"
	default:
		return "numbers as they are"
	}
}
