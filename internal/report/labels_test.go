package report_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/report"
)

// docs/reference/labels.md has every label with its meaning, in the words of the page.
func TestTheLabelsAreDocumented(t *testing.T) {
	const path = "../../docs/reference/labels.md"
	var want strings.Builder
	want.WriteString("# Labels\n\nThe columns, tiles and fields of the page and of HTML reports. " +
		"A click, a tap or a key on a label " +
		"shows the same text.\nThe [glossary](glossary.md) has the other words.\n\n| label | meaning |\n|---|---|\n")
	for _, label := range report.Labels() {
		fmt.Fprintf(&want, "| %s | %s |\n", strings.TrimSuffix(report.Sentence(label), "."), report.Meaning(label))
	}
	if *update {
		if err := os.WriteFile(path, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want.String() {
		t.Errorf("%s differs from the labels: run the test with -update (%v)", path, err)
	}
}

// A page has the meaning of each of its labels once, so that a button never leads nowhere.
func TestAPageHasTheMeaningsOfItsLabels(t *testing.T) {
	page := string(report.Label("Peak")) + string(report.Hint("peak")) + string(report.Label("Train loss")) +
		string(report.Label("<b>"))
	got := string(report.Meanings(page))
	if strings.Count(got, ` popover=""`) != 2 || !strings.Contains(got, `id="what-peak"`) ||
		!strings.Contains(got, `id="what-train-loss"`) || !strings.Contains(page, `popovertarget="what-train-loss"`) {
		t.Errorf("%s\n%s", page, got)
	}
	if !strings.HasSuffix(page, "&lt;b&gt;") || report.Hint("<b>") != "" {
		t.Errorf("an unknown label is not a text: %s", page)
	}
}
