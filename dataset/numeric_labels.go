package dataset

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Limits for numbers that are classes.
const (
	fewNumbers       = 20  // so many numbers are classes, except fractions with few rows each
	manyNumbers      = 100 // so many integers with gaps are classes
	enoughRowsOfEach = 10  // a fraction with so many rows is a class, such as half a star
)

// NumericTargetHint says what to do about labels that are numbers to predict.
const NumericTargetHint = "to predict it, add the data set with --target COLUMN; or make ranges of the numbers, for " +
	"example low, middle and high; if each number is a class, add --label-classes"

// numericLabels counts the numbers among a data set's labels.
type numericLabels struct {
	values    int // different numbers
	rows      int // of all of them
	fewest    int // rows of one number
	low, high float64
	fraction  string // the first number that is not an integer; "": all are integers
}

func countNumbers(labels []ClassRows) numericLabels {
	n := numericLabels{fewest: math.MaxInt, low: math.Inf(1), high: math.Inf(-1)}
	for _, label := range labels {
		v, ok := numberOf(label.Name)
		if !ok || label.Rows == 0 {
			continue
		}
		n.values, n.rows, n.fewest = n.values+1, n.rows+label.Rows, min(n.fewest, label.Rows)
		n.low, n.high = min(n.low, v), max(n.high, v)
		if v != math.Trunc(v) && n.fraction == "" {
			n.fraction = label.Name
		}
	}
	return n
}

// gapless tells whether the numbers count up from 0 or 1, like ids of classes.
func (n *numericLabels) gapless() bool {
	return n.fraction == "" && (n.low == 0 || n.low == 1) && n.high-n.low == float64(n.values-1)
}

// predicted tells whether the numbers are values to predict.
func (n *numericLabels) predicted() bool {
	switch {
	case n.fraction != "":
		return n.values > fewNumbers || n.rows < enoughRowsOfEach*n.values
	case n.gapless() && n.fewest > 1:
		return false
	default:
		return n.values > manyNumbers || n.values > fewNumbers && n.rows < 2*n.values
	}
}

// NumericTarget returns why labels are numbers to predict and not classes, by the rows of each label; "" for classes.
// Labels that are no numbers do not count. Numbers from 0 or 1 without a gap are ids of classes if each has at least
// two rows.
func NumericTarget(labels []ClassRows) string {
	n := countNumbers(labels)
	if !n.predicted() {
		return ""
	}
	such := ""
	if n.fraction != "" {
		such = fmt.Sprintf(" such as %.40s", n.fraction)
	}
	return fmt.Sprintf("it has %d different numbers%s in %d rows. A label is a class, and a number to predict is a "+
		"target", n.values, such, n.rows)
}

// NumericClasses says that many numbers are used as classes, in case they should be predicted. It returns "" for few
// numbers, and for numbers that NumericTarget refuses.
func NumericClasses(labels []ClassRows) string {
	n := countNumbers(labels)
	if n.values <= fewNumbers || n.predicted() {
		return ""
	}
	return fmt.Sprintf("%d numbers are taken for classes. To predict a number, add the data set with --target COLUMN. "+
		"If each number is a class, add --label-classes", n.values)
}

// labels returns the names of the classes. Manifests do not count the rows of each class: all get the mean.
func (m *Manifest) labels() []ClassRows {
	if m.Sparse != nil || m.LabelClasses || m.Classes == 0 || len(m.Targets) > 0 {
		return nil
	}
	rows := make([]int, m.Classes)
	for k := range rows {
		rows[k] = m.Train.Rows*(k+1)/m.Classes - m.Train.Rows*k/m.Classes
	}
	return classRows(rows, m.ClassNames)
}

// NumericTarget is the function NumericTarget for an existing data set. It knows the rows of all classes, not of
// each. It returns "" for sparse rows, whose targets are numbers, and for labels that the user called classes.
func (m *Manifest) NumericTarget() string {
	if m.NextToken {
		return "" // the classes are tokens
	}
	return NumericTarget(m.labels())
}

// NumericClasses is the function NumericClasses for an existing data set.
func (m *Manifest) NumericClasses() string {
	if m.NextToken {
		return ""
	}
	return NumericClasses(m.labels())
}

// classRows names the classes. A class without a name is called by its number.
func classRows(rows []int, names []string) []ClassRows {
	out := make([]ClassRows, len(rows))
	for k, n := range rows {
		out[k] = ClassRows{Name: strconv.Itoa(k), Rows: n}
		if k < len(names) {
			out[k].Name = names[k]
		}
	}
	return out
}

// numberOf reads a label as a number, perhaps with a decimal comma, a percent sign or a currency.
func numberOf(text string) (float64, bool) {
	text = strings.TrimSpace(strings.Trim(text, "%$€£ "))
	if strings.Count(text, ",") == 1 && !strings.Contains(text, ".") {
		text = strings.Replace(text, ",", ".", 1)
	}
	text = strings.ReplaceAll(text, ",", "")
	if strings.ContainsAny(text, "_xXpP") { // Go's own ways to write numbers
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// checkLabelsAreClasses returns an error for labels that are numbers to predict, by the rows of each class. If the
// user called such labels classes, it sets that in the manifest instead, for the data set's jobs.
func (in *DenseInput) checkLabelsAreClasses(m *Manifest, rows []int) error {
	labels := classRows(rows, in.ClassNames)
	why := NumericTarget(labels)
	if in.LabelClasses {
		m.LabelClasses = why != "" || NumericClasses(labels) != ""
		return nil
	}
	if why == "" {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "add data set " + in.Name, Msg: "the label: " + why, Hint: NumericTargetHint,
	}
}
