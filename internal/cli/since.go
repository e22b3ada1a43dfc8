package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// longest are the units that Go's durations lack: people count the past in them.
var longest = map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour}

// mostUnits of the past are more than there is a history of, and fit a duration.
const mostUnits = 10_000

// ParseAgo reads a time that has passed: Go's syntax, or days and weeks.
func ParseAgo(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	for unit, length := range longest {
		if number, ok := strings.CutSuffix(text, unit); ok {
			var n float64
			n, err = strconv.ParseFloat(number, 64)
			d = time.Duration(min(n, mostUnits) * float64(length))
		}
	}
	if err != nil || d <= 0 {
		return 0, &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("%q is no time that has passed", text),
			Hint: "write a time such as 90m, 12h, 7d or 2w",
		}
	}
	return d, nil
}
