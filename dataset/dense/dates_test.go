package dense

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel/dataset"
)

// A column of dates is refused with a way to keep it, which a column of names does not get.
func TestDatesAreRefusedWithAWayToKeepThem(t *testing.T) {
	for layout, hint := range map[string]bool{time.DateOnly: true, time.DateTime: true, "name 2006 01 02": false} {
		var text strings.Builder
		text.WriteString("when,size,y\n")
		for i := range 20_000 {
			day := time.Date(1970, 1, 1+i, 0, 0, 0, 0, time.UTC)
			fmt.Fprintf(&text, "%s,%d,%c\n", day.Format(layout), i, 'a'+i%2)
		}
		_, err := CSV{Source: dataset.TextSource("a.csv", text.String())}.Input("a")
		if err == nil || strings.Contains(err.Error(), "days since the first") != hint {
			t.Errorf("%s: %v", layout, err)
		}
	}
}
