package dense

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// CSV is rows of a CSV file: a label, and columns of numbers and of texts. What is not said is found out.
type CSV struct {
	dataset.Source
	Test         *dataset.Source // held-out rows, of the same columns; nil: there are none
	Separator    rune            // 0: comma, semicolon, tab or bar, whichever the first line has most of
	Header       Header          // "": found out
	Label        string          // its column's name, or number from 1; "": label, class, target or y, else the last one
	LabelClasses bool            // each label is a class, also where labels look like numbers to predict
	Skip         []string        // names or numbers of columns that are left out
	Missing      []string        // texts that stand for no value beside the usual ones
	Scale        Scale           // of numbers; "": standard, and with Shape none
	Shape        []int           // what the numbers of a row are, [channels height width]; nil: so many single values
}

// Header says whether the first line has the names of the columns.
type Header string

// The headers.
const (
	HeaderYes Header = "yes"
	HeaderNo  Header = "no"
)

// Scale says how a number becomes a value of about -1 to 1. What it goes by is counted over the rows to learn from.
type Scale string

// The scales, named as those of sparse rows.
const (
	Standard Scale = "standard" // less the mean, over the standard deviation
	Range    Scale = "range"    // from 0 at the least to 1 at the largest
	AsIs     Scale = "none"
)

// usualMissing are texts that stand for no value in anybody's files.
var usualMissing = []string{"", "?", "NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "none", "-"}

// mostCategories is how many different texts of a column are taken for categories: each is a value of every row.
const mostCategories = 64

// mostValues bounds the values of a row.
const mostValues = 1 << 24

// Input reads the file once, to find out what its columns are and what is wrong with it. It returns Invalid, or all
// faults as *disdel.Faults with their lines.
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
	if t.Test != nil {
		if err := t.test(); err != nil {
			return in, err
		}
	}
	in = dataset.DenseInput{
		Name: name, Title: "Rows of " + base(c.Name), Shape: t.shape(), Classes: len(t.labels.names),
		ClassNames: t.labels.classNames(), LabelClasses: t.LabelClasses, Bytes: t.bytes, Columns: t.described(), Each: t.each,
	}
	in.Understood = t.understood()
	return in, nil
}

func (c *CSV) check() error {
	bad := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "read " + c.Name, Msg: msg, Hint: hint}
	}
	switch {
	case !slices.Contains([]Header{"", HeaderYes, HeaderNo}, c.Header):
		return bad("there is no header "+strconv.Quote(string(c.Header)), "yes or no; without it, it is found out")
	case !slices.Contains([]Scale{"", Standard, Range, AsIs}, c.Scale):
		return bad("there is no scale "+strconv.Quote(string(c.Scale)), "standard, range or none")
	case strings.ContainsRune("\"\r\n\uFFFD", c.Separator) && c.Separator != 0:
		return bad("the separator is one character, and neither a quote nor the end of a line", "")
	default:
		return nil
	}
}

// table is a CSV file that is being read.
type table struct {
	CSV
	header  bool
	sniffed bool // nobody said whether there is one
	names   []string
	label   int // its column
	columns []column
	missing map[string]bool
	// numbersMiss says that a number may stand for no value.
	numbersMiss bool

	labels  labels
	learned int // rows to learn from
	tested  int
	bytes   bool
	first   struct {
		line   int
		record []string
	}
	unknown int // texts of held-out rows that no row to learn from has
}

// shape is that of a row.
func (t *table) shape() []int {
	if t.Shape != nil {
		return t.Shape
	}
	return []int{1, 1, t.width()}
}

// width is how many values a row has.
func (t *table) width() int {
	n := 0
	for i := range t.columns {
		n += t.columns[i].width()
	}
	return n
}

// begin looks at the first lines.
func (t *table) begin() error {
	t.missing = map[string]bool{}
	for _, text := range append(slices.Clone(usualMissing), t.CSV.Missing...) {
		_, isNumber := number(text)
		t.missing[text], t.numbersMiss = true, t.numbersMiss || isNumber
	}
	top, err := t.sniff()
	if err != nil {
		return err
	}
	t.names = make([]string, len(top[0]))
	for i := range t.names {
		t.names[i] = "column " + strconv.Itoa(i+1)
		if t.header && top[0][i] != "" {
			t.names[i] = top[0][i]
		}
		if !utf8.ValidString(t.names[i]) {
			wrong := faults{file: t.Name}
			wrong.at(1, i+1, "columns", "the name %.40q is %s", t.names[i], notUTF8)
			return wrong.err()
		}
	}
	if err := t.choose(); err != nil {
		return err
	}
	t.labels = *newLabels()
	return nil
}

// usualLabels are the names that labels have in most files.
var usualLabels = []string{"label", "class", "target", "y"}

// choose finds the label's column and those that are left out.
func (t *table) choose() error {
	t.label = len(t.names) - 1
	if t.Label != "" {
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
	}
	t.columns[t.label].passed = isLabel
	for _, text := range t.Skip {
		at, err := t.find(text)
		if err != nil {
			return err
		}
		if at != t.label {
			t.columns[at].passed = "as was asked for"
		}
	}
	return nil
}

// isLabel is why the label's column is none of a row's values.
const isLabel = "it is the label"

// find is the column of a name, or of a number from 1.
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
