package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// oneDocument FILE [COMMAND...] fails unless a file, stdout or stderr holds one JSON document and nothing else. The
// document has only fields of the shape that testdata/json.golden has for the command; on stderr it is an error's.
func oneDocument(ts *testscript.TestScript, not bool, args []string) {
	if not || len(args) == 0 {
		ts.Fatalf("usage: document FILE [COMMAND...]")
	}
	text := ts.ReadFile(args[0])
	d := json.NewDecoder(strings.NewReader(text))
	var v any
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("%s is no JSON: %v\n%s", args[0], err, text)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		ts.Fatalf("%s has more than one document\n%s", args[0], text)
	}
	command := strings.Join(args[1:], " ")
	if args[0] == "stderr" {
		command = "error"
	}
	if strange := strangeIn(ts, command, v); len(strange) > 0 {
		ts.Fatalf("the document of %q has what its shape does not have:\n%s", command, strings.Join(strange, "\n"))
	}
}

// Every command that does something is run with -o json by the script.
func TestTheScriptOfJSONRunsEveryCommand(t *testing.T) {
	script, err := os.ReadFile("testdata/json.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for path, c := range allCommands() {
		run := regexp.MustCompile(`(?m)^!? ?exec disdel (-q )?` + path + `\b.*-o json.*\n(! stdout .\n)?document `)
		if len(c.Subcommands) == 0 && !c.Hidden && !run.Match(script) {
			t.Errorf("testdata/json.txtar does not run disdel %s with -o json", path)
		}
	}
}
