package dataset

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Bounds of the numbers that are taken for classes.
const (
	fewNumbers       = 20  // up to here numbers are classes, except fractions of few rows each
	manyNumbers      = 100 // above it each number needs enoughRowsOfEach on average
	enoughRowsOfEach = 10
)

// NumericTargetHint says what to do about labels that are numbers to predict.
const NumericTargetHint = "make ranges of the numbers, for example low, middle and high; if each number is a class, " +
	"add --label-classes"

// NumericTarget tells why labels are numbers to predict and not classes, by the rows of each different label. It
// returns "" for classes. Labels that are no numbers do not count. Numbers from 0 or 1 without a gap are ids of classes
// if each has two rows or more.
func NumericTarget(labels []ClassRows) string {
	n, rows, least, fraction := 0, 0, math.MaxInt, ""
	low, high := math.Inf(1), math.Inf(-1)
	for _, label := range labels {
		v, ok := numberOf(label.Name)
		if !ok || label.Rows == 0 {
			continue
		}
		n, rows, least = n+1, rows+label.Rows, min(least, label.Rows)
		low, high = min(low, v), max(high, v)
		if v != math.Trunc(v) && fraction == "" {
			fraction = label.Name
		}
	}
	counted := fraction == "" && (low == 0 || low == 1) && high-low == float64(n-1) && least > 1
	rare := rows < enoughRowsOfEach*n
	switch {
	case fraction != "" && (n > fewNumbers || rare):
	case counted, fraction != "":
		return ""
	case n > manyNumbers && rare:
	case n > fewNumbers && rows < 2*n:
	default:
		return ""
	}
	such := ""
	if fraction != "" {
		such = fmt.Sprintf(" such as %.40s", fraction)
	}
	return fmt.Sprintf("it has %d different numbers%s in %d rows. disdel learns classes; to predict a number "+
		"(regression) is not supported yet", n, such, rows)
}

// numberOf reads a label that is a number to people: it may have a decimal comma, a percent sign or a currency.
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

// numericTarget is the error of labels that are numbers to predict, by the rows of each class. Nil: they are classes.
func (in *DenseInput) numericTarget(rows []int) error {
	if in.LabelClasses {
		return nil
	}
	labels := make([]ClassRows, len(rows))
	for k, n := range rows {
		labels[k] = ClassRows{Name: strconv.Itoa(k), Rows: n}
		if k < len(in.ClassNames) {
			labels[k].Name = in.ClassNames[k]
		}
	}
	why := NumericTarget(labels)
	if why == "" {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "add data set " + in.Name, Msg: "the label: " + why, Hint: NumericTargetHint,
	}
}
