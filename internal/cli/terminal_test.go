package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/terminal"
)

// A job goes on when nobody reads what it says of itself.
func TestAJobOutlivesThePipeOfItsMessages(t *testing.T) {
	d := build(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd, out, _ := d.command("quickstart", "--set", "training.epochs=3", "-o", "json")
	cmd.Stderr = w
	r.Close()
	err = cmd.Run()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if doc := parse(t, out.String()); doc.Status != "succeeded" {
		t.Errorf("%s", doc.Status)
	}
	d.nothingStays()
}

// Output that cannot be written is an error of every command, as a table or a document; a pipe that is closed is none
// to speak of.
func TestWhatCannotBeWrittenIsTold(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, line := range []string{
		"history", "dataset list", "model list", "version", "explain", "explain training",
		"help", "help exit-codes", "history --help",
	} {
		for _, format := range []string{"table", "json"} {
			var errs strings.Builder
			code := run(append(strings.Fields("disdel "+line), "-o", format), nil, full, &errs)
			if code != terminal.ExitFailed || !strings.Contains(errs.String(), "write to standard output") {
				t.Errorf("%s -o %s: exit %d\n%s", line, format, code, errs.String())
			}
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	var errs strings.Builder
	if code := run([]string{"disdel", "model", "list"}, nil, w, &errs); code != terminal.ExitPipe || errs.String() != "" {
		t.Errorf("closed pipe: exit %d\n%s", code, errs.String())
	}
}
