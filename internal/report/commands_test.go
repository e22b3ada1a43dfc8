package report_test

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/report"
)

// pieces are the parts of hostile names.
var pieces = []string{
	"a", "job.yaml", " ", "'", `"`, "`", "$(", ")", "$HOME", ";", "&", "|", "\\", "\n", "#", "~", "*", "--", "=", "\t",
	"!", "é", "touch PWNED", "<", ">", "{a,b}", "%s", "-",
}

// A shell reads every printed command of a report as the intended words, whatever the record contains.
func TestAShellReadsCommandsAsTheyWereMeant(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	draw := rand.New(rand.NewPCG(31, 2))
	hostile := func() string {
		var out strings.Builder
		for range 1 + draw.IntN(6) {
			out.WriteString(pieces[draw.IntN(len(pieces))])
		}
		return out.String()
	}
	for range 60 {
		words := []string{hostile(), hostile(), hostile()}
		place := addresses.Place{{Name: "home", Value: hostile()}, {Name: "storage", Value: hostile()}}
		want := slices.Concat(words, []string{"--home", place[0].Value, "--storage", place[1].Value})
		if got := readBy(t, sh, place.Command("disdel", words...)); !slices.Equal(got, want) {
			t.Fatalf("%q is read as %q", want, got)
		}
		r := &disdel.Record{
			ID: "job-x", Status: disdel.StatusCanceled, Place: place, Checkpoint: &disdel.Checkpoint{},
			Failure: &disdel.Error{Kind: disdel.Canceled},
			Origin: &disdel.Origin{
				Command: "submit", File: "f" + hostile(), Sets: []string{"training.epochs=" + hostile()},
				Options: []disdel.Option{{Name: "risk", Value: hostile()}, {Name: hostile(), Value: "x"}},
			},
		}
		o := r.Origin
		submit := []string{
			"submit", o.File, "--risk", o.Options[0].Value, "--set", o.Sets[0], "--home", place[0].Value,
			"--storage", place[1].Value,
		}
		found := false
		for _, c := range report.New(r, time.Now()).Advice.Commands {
			for _, line := range c.Lines {
				if !strings.HasSuffix(line, " > job.yaml") {
					found = slices.Equal(readBy(t, sh, line), submit) || found
				}
			}
		}
		if !found {
			t.Fatalf("no command is read as %q", submit)
		}
	}
	stranger := &disdel.Record{
		ID: "job-x", Status: disdel.StatusCanceled, Tenant: "carol", Failure: &disdel.Error{Kind: disdel.Canceled},
		Origin: &disdel.Origin{Command: "submit x; touch PWNED; #", File: "f", Options: []disdel.Option{
			{Name: "server", Value: "https://evil.example"}, {Name: "home $(touch P2)", Value: "/x"},
		}},
	}
	for _, c := range report.New(stranger, time.Now()).Advice.Commands {
		for _, line := range c.Lines {
			if strings.Contains(line, "evil") || strings.Contains(line, "touch") {
				t.Errorf("a stranger's words: %s", line)
			}
		}
	}
}

// readBy is the words of a command line behind the program, as a shell takes them.
func readBy(t *testing.T, sh, line string) []string {
	t.Helper()
	rest, ok := strings.CutPrefix(line, "disdel ")
	if !ok {
		t.Fatalf("no command: %q", line)
	}
	cmd := exec.Command(sh, "-c", `printf '%s\0' `+rest)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// A file whose name a command would take for a flag is not submitted again, and the program of another tenant's action
// is not run: a file and a program are named by who runs the command.
func TestCommandsNameNeitherFlagsAsFilesNorStrangersPrograms(t *testing.T) {
	for _, c := range []struct {
		file, tenant   string
		submits, names bool
	}{
		{"job.yaml", "", true, true},
		{"-job.yaml", "", false, true},
		{"job.yaml", "carol", true, false},
		{"--home=/x", "carol", false, false},
	} {
		r := &disdel.Record{
			ID: "job-x", Status: disdel.StatusCanceled, Tenant: c.tenant, Failure: &disdel.Error{Kind: disdel.Canceled},
			Origin: &disdel.Origin{
				Command: "submit", File: c.file, Options: []disdel.Option{{Name: "action", Value: "/their/program"}},
			},
		}
		r.Job.Model.Custom = "mine"
		var all []string
		for _, way := range report.New(r, time.Now()).Advice.Commands {
			all = append(all, way.Lines...)
		}
		text := strings.Join(all, "\n")
		if strings.Contains(text, "submit "+c.file) != c.submits || strings.Contains(text, "/their/program") != c.names ||
			strings.Contains(text, "--action ACTION") == c.names {
			t.Errorf("%+v:\n%s", c, text)
		}
	}
}

// The command that submits a program again names its interpreter. A resumed job has it in its record, and the quickstart
// of a program stays one.
func TestCommandsKeepTheInterpreter(t *testing.T) {
	lines := func(command, value string) (all []string) {
		r := &disdel.Record{
			ID: "job-x", Status: disdel.StatusCanceled, Failure: &disdel.Error{Kind: disdel.Canceled},
			Checkpoint: &disdel.Checkpoint{},
			Origin:     &disdel.Origin{Command: command, Options: []disdel.Option{{Name: "python", Value: value}}},
		}
		if command == "submit" {
			r.Origin.File = "net.py:Net"
		}
		for _, c := range report.New(r, time.Now()).Advice.Commands {
			all = append(all, c.Lines...)
		}
		return all
	}
	for _, c := range []struct{ command, value, want string }{
		{"submit", "/opt/python", "disdel submit net.py:Net --python /opt/python"},
		{"submit", "/opt/python", "disdel resume job-x"},
		{"quickstart", "true", "disdel quickstart --python"},
	} {
		if got := lines(c.command, c.value); !slices.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q among them", c.command, got, c.want)
		}
	}
}
