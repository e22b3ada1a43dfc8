// Package golden compares texts with golden files: files of a repository that hold what a program printed when somebody
// last read it.
package golden

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Same fails a test if text differs from a file. update writes the file first.
func Same(t *testing.T, file, text string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s differs (-file +program); read the difference, then run the test with -update\n%s", file, diff)
	}
}

// Block fails a test if a part of a page differs from text. The part is between the lines "<!-- made: NAME -->" and
// "<!-- end: NAME -->". update writes it first.
func Block(t *testing.T, page, name, text string, update bool) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(content), "<!-- made: "+name+" -->\n")
	_, tail, ended := strings.Cut(rest, "<!-- end: "+name+" -->\n")
	if !found || !ended {
		t.Fatalf("%s has no part %s", page, name)
	}
	Same(t, page, head+"<!-- made: "+name+" -->\n\n"+text+"\n<!-- end: "+name+" -->\n"+tail, update)
}
