package jobfile

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

var update = flag.Bool("update", false, "write the golden files anew; commit only what you can explain")

// goodSections is a job file in parts: those that a case does not have are appended to it, which moves none of its
// lines.
var goodSections = []struct{ key, text string }{
	{"apiVersion", "apiVersion: disdel/v1\n"},
	{"kind", "kind: TrainingJob\n"},
	{"metadata", "metadata: {name: digits}\n"},
	{"model", "model: {name: lenet5}\n"},
	{"data", "data: {source: dataset://digits}\n"},
	{"training", "training: {epochs: 5}\n"},
}

var topKey = regexp.MustCompile(`(?m)^(\w+):`)

// complete appends the sections that a case leaves out. After a second document there is nothing to append to.
func complete(text string) string {
	if strings.Contains(text, "\n---") || strings.Contains(text, "\n...") {
		head, tail, _ := strings.Cut(text, "\n---")
		if !strings.HasPrefix(text, "%") {
			return text
		}
		return head + "\n---" + complete(tail)
	}
	has := map[string]bool{}
	for _, m := range topKey.FindAllStringSubmatch(text, -1) {
		has[m[1]] = true
	}
	for _, s := range goodSections {
		if !has[s.key] {
			text += s.text
		}
	}
	return text
}

// render is what a person sees of a job file.
func render(name, text string, sets []string) string {
	_, err := Parse(name, []byte(text), sets)
	var faults *disdel.Faults
	switch {
	case err == nil:
		return "no problem\n"
	case !errors.As(err, &faults):
		return "not Faults: " + err.Error() + "\n"
	}
	var out bytes.Buffer
	terminal.PrintFaults(faults, []byte(text), &out)
	return out.String()
}

// Every bad file of testdata/bad gets exactly the places, messages and hints written there.
func TestBadFilesSayWhatIsWrongWhereAndHowToMendIt(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	cases := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases += checkArchive(t, archive)
		if *update {
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if cases < 150 {
		t.Errorf("%d cases, fewer than the 150 that are promised", cases)
	}
}

// checkArchive runs the cases of one file: NAME.yaml, where wanted NAME.set with a --set a line, and NAME.want.
func checkArchive(t *testing.T, archive *txtar.Archive) (cases int) {
	var text string
	var sets []string
	for i := range archive.Files {
		f := &archive.Files[i]
		name, kind, _ := strings.Cut(f.Name, ".")
		switch kind {
		case "yaml":
			text, sets = complete(string(f.Data)), nil
		case "set":
			sets = strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n")
		case "want":
			cases++
			got := render("job.yaml", text, sets)
			if *update {
				f.Data = []byte(got)
			} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
	return cases
}
