package cli

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// near FILE WANT compares texts as cmp does, but takes numbers that differ by less than 15 % and lines that break
// elsewhere: what is estimated depends on measured constants, and a text that shows it need not change with each of
// them.
func near(ts *testscript.TestScript, not bool, args []string) {
	if not || len(args) != 2 {
		ts.Fatalf("usage: near FILE WANT")
	}
	if diff := differs(ts.ReadFile(args[0]), ts.ReadFile(args[1])); diff != "" {
		ts.Fatalf("%s and %s differ: %s (cmp in place of near and -update rewrite it)", args[0], args[1], diff)
	}
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

// differs names the first word that is not the same, "" if there is none.
func differs(got, want string) string {
	a, b := strings.Fields(got), strings.Fields(want)
	for i := range min(len(a), len(b)) {
		if !alike(a[i], b[i]) {
			return fmt.Sprintf("word %d is %q, not %q", i+1, strings.Join(a[max(0, i-3):i+1], " "),
				strings.Join(b[max(0, i-3):i+1], " "))
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d words, not %d", len(a), len(b))
	}
	return ""
}

func alike(a, b string) bool {
	if number.ReplaceAllString(a, "#") != number.ReplaceAllString(b, "#") {
		return false
	}
	to := number.FindAllString(b, -1)
	for i, text := range number.FindAllString(a, -1) {
		x, _ := strconv.ParseFloat(text, 64)
		y, _ := strconv.ParseFloat(to[i], 64)
		if math.Abs(x-y) > 0.15*max(x, y)+0.5 {
			return false
		}
	}
	return true
}

func TestNearTellsWhatMatters(t *testing.T) {
	const want = "limit  149 MB (2 at once,\n  --set training.batchSize=400)"
	for text, same := range map[string]bool{
		"limit  155 MB (2 at once, --set training.batchSize=368)": true,
		"limit 190 MB (2 at once, --set training.batchSize=400)":  false,
		"limit 149 MB (3 at once, --set training.batchSize=400)":  false,
		"limit 149 KB (2 at once, --set training.batchSize=400)":  false,
		"limit 149 MB (2 at once)":                                false,
	} {
		if diff := differs(text, want); (diff == "") != same {
			t.Errorf("%q: %q", text, diff)
		}
	}
}
