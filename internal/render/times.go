package render

import (
	"strconv"
	"time"

	"github.com/disdel/disdel"
)

// Unit is what times are shown in.
type Unit struct {
	Name string
	of   time.Duration
}

// TimeUnit is the unit in which the longest of some times reads well.
func TimeUnit(longest disdel.Millis) Unit {
	switch d := time.Duration(longest); {
	case d < 10*time.Minute:
		return Unit{"s", time.Second}
	case d < 10*time.Hour:
		return Unit{"min", time.Minute}
	default:
		return Unit{"h", time.Hour}
	}
}

// Value is a time as a number of units.
func (u Unit) Value(m disdel.Millis) float64 { return float64(m) / float64(u.of) }

// Text is a time with two digits, without the unit.
func (u Unit) Text(m disdel.Millis) string { return Decimal(u.Value(m)) }

// Decimal is a number with two digits, or with all of those before the point.
func Decimal(v float64) string {
	if v < 9.95 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// Basis says what a forecast rests on: "history", or where no job of just this shape ran, "extrapolated from similar
// jobs".
func Basis(f *disdel.Forecast) string {
	if f.Jobs > 0 && !f.Measured {
		return "extrapolated from " + string(f.Source)
	}
	return string(f.Source)
}
