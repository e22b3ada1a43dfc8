package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/tenant"
)

// What users of kubectl, gh, git and mlflow type leads to the command of disdel.
func TestWordsOfOtherProgramsLeadToACommand(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	for line, hint := range map[string]string{
		"ls":                            "disdel jobs, disdel dataset list or disdel model list",
		"get":                           "disdel jobs, disdel jobs show JOB",
		"get jobs":                      "disdel jobs, disdel jobs show JOB",
		"status":                        "disdel jobs, disdel jobs show JOB or disdel platform status",
		"login":                         "disdel context add NAME --server URL",
		"config":                        "disdel context list",
		"train job.yaml":                "disdel submit FILE",
		"run job.yaml":                  "disdel submit FILE",
		"apply -f job.yaml":             "disdel submit FILE",
		"delete pets":                   "disdel jobs delete JOB",
		"rm pets":                       "disdel jobs delete JOB",
		"clean":                         "disdel prune",
		"schema":                        "disdel explain -o json",
		"template":                      "disdel example",
		"tenant revoke ann":             "disdel tenant",
		"predict":                       "disdel infer MODEL FILE",
		"serve --port 8080":             "--listen 127.0.0.1:8080",
		"ui --port 8080":                "--listen 127.0.0.1:8080",
		"submit -f job.yaml":            "disdel submit FILE",
		"submit job.yaml --batch 16":    "--set training.batchSize=16",
		"jobs --watch":                  "disdel jobs watch",
		"jobs -w":                       "disdel jobs watch",
		"jobs pets":                     "disdel jobs show pets",
		"export x --to json":            "there is no job", // the job comes first
		"model export pets -o pets.bin": "--file pets.bin",
		"infer pets -o answers.csv":     "--file answers.csv",
		"export x -o runs.csv":          "--file runs.csv",
	} {
		out, errs, code := typed(t, strings.Fields(line)...)
		if code == 0 || out != "" || !strings.Contains(errs, hint) {
			t.Errorf("%s: exit %d, %q wanted\n%s%s", line, code, hint, out, errs)
		}
	}
}

// Words of other programs that work: the help of each is that of the command it means.
func TestShortcutsAreCommands(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	for line, command := range map[string]string{
		"ps": "jobs", "list": "jobs", "history": "jobs", "job": "jobs", "job list": "jobs list", "history show": "jobs show",
		"logs": "jobs logs", "watch": "jobs watch", "cancel": "jobs cancel", "stop": "jobs cancel", "wait": "jobs wait",
		"pause": "jobs pause", "follow": "jobs follow", "describe": "jobs show", "dashboard": "ui", "retry": "resume",
		"jobs rm": "jobs delete", "history prune": "jobs prune", "history export": "jobs export",
		"context delete": "context remove",
	} {
		for _, way := range []string{line + " --help", "help " + line} {
			out, errs, code := typed(t, strings.Fields(way)...)
			if code != 0 || !strings.Contains(out, "   disdel "+command+" - ") {
				t.Errorf("%s: exit %d\n%s%s", way, code, out, errs)
			}
		}
	}
}

// Every command that help shows belongs to one group, and every group has commands.
func TestEveryCommandIsInAGroup(t *testing.T) {
	app := newApp(terminal.New(nil, nil, nil))
	seen := map[string]int{}
	shown := 0
	for _, g := range commandGroups {
		shown += len(g.top)
		for _, name := range append(g.top, g.more...) {
			if c := commandOf(app.Commands, name); c == nil || c.Hidden || c.Name != name {
				t.Errorf("%s: there is no command %q", g.title, name)
			}
			seen[name]++
		}
	}
	for _, c := range app.Commands {
		if !c.Hidden && seen[c.Name] != 1 {
			t.Errorf("%s is in %d groups", c.Name, seen[c.Name])
		}
	}
	if shown > 20 {
		t.Errorf("the help explains %d commands, want at most 20", shown)
	}
	out, _, _ := typed(t, "--help")
	for _, g := range commandGroups {
		if !strings.Contains(out, g.title) {
			t.Errorf("the help has no %s", g.title)
		}
	}
}

// The help of a command names the flags of its subcommands.
func TestHelpNamesTheFlagsOfSubcommands(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	for line, flags := range map[string]string{
		"jobs": "logs  --follow --task --worker --round --tail", "job": "logs  --follow --task",
		"model": "show     --input --classes --layers --keras", "dataset": "--libsvm --csv",
	} {
		words := strings.Join(strings.Fields(flags), " ")
		if out, _, _ := typed(t, "help", line); !strings.Contains(strings.Join(strings.Fields(out), " "), words) {
			t.Errorf("%s: no %q\n%s", line, flags, out)
		}
	}
}

// answered runs a command line on a terminal whose user gives an answer.
func answered(t *testing.T, answer, line string) (messages string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	u := terminal.New(strings.NewReader(answer), &out, &errs)
	u.Scripted = true
	err = carryOut(context.Background(), u, append([]string{"disdel"}, strings.Fields(line)...))
	return errs.String(), err
}

// On a terminal deletions ask first; anything but yes deletes nothing.
func TestDeletionsAsk(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	if _, errs, code := typed(t, "dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	for _, answer := range []string{"", "n\n", "no\n", "\n"} {
		messages, err := answered(t, answer, "dataset remove digits")
		if disdel.KindOf(err) != disdel.Canceled || !strings.Contains(messages, "Delete the data set digits? [y/N]") {
			t.Errorf("%q: %v\n%s", answer, err, messages)
		}
		if _, errs, code := typed(t, "dataset", "show", "digits"); code != 0 {
			t.Fatalf("%q: it is gone\n%s", answer, errs)
		}
	}
	for _, line := range []string{"model remove pets:v1", "jobs delete pets", "prune data"} {
		if _, err := answered(t, "n\n", line); err == nil {
			t.Errorf("%s: no error", line)
		}
	}
	if messages, err := answered(t, "y\n", "dataset remove digits"); err != nil {
		t.Errorf("%v\n%s", err, messages)
	}
	if _, _, code := typed(t, "dataset", "show", "digits"); code == 0 {
		t.Error("it is still there")
	}
}

// terminalPair is a real terminal, and the side of the person at it.
func terminalPair(t *testing.T) (person, screen *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine gives no terminal: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("this machine gives no terminal: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	return person, screen
}

// On a terminal deletions ask, however the messages look: only --yes skips the question.
func TestDeletionsAskOnAPlainAndAQuietTerminal(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	if _, errs, code := typed(t, "dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	for flag, kind := range map[string]string{"--plain": "xterm", "--quiet": "xterm", "": "dumb"} {
		t.Setenv("TERM", kind)
		line := strings.Fields("disdel " + flag + " dataset remove digits")
		person, screen := terminalPair(t)
		if _, err := person.WriteString("n\n"); err != nil {
			t.Fatal(err)
		}
		u := terminal.New(screen, &bytes.Buffer{}, screen)
		err := carryOut(t.Context(), u, line)
		if err == nil {
			t.Fatalf("%v with TERM=%s asked nothing", line, kind)
		}
		question, _ := bufio.NewReader(person).ReadString(']')
		if disdel.KindOf(err) != disdel.Canceled || !strings.Contains(question, "Delete the data set digits?") {
			t.Errorf("%v with TERM=%s: %v\n%s", line, kind, err, question)
		}
	}
	if _, errs, code := typed(t, "dataset", "show", "digits"); code != 0 {
		t.Error(errs)
	}
}

// quickstart keeps a data set of the user that has the name of its own.
func TestQuickstartKeepsTheUsersDigits(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	table := filepath.Join(t.TempDir(), "own.csv")
	if err := os.WriteFile(table, []byte("a,b,label\n1,2,x\n2,1,y\n1,1,x\n2,2,y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := typed(t, "dataset", "add", "digits", "--csv", table, "--label", "label"); code != 0 {
		t.Fatal(errs)
	}
	before, _, _ := typed(t, "dataset", "show", "digits", "-o", "json")
	if _, errs, code := typed(t, "quickstart"); code == 0 || !strings.Contains(errs, "dataset add digits --overwrite") {
		t.Errorf("quickstart: exit %d\n%s", code, errs)
	}
	if after, _, _ := typed(t, "dataset", "show", "digits", "-o", "json"); after != before {
		t.Errorf("was %s, is %s", before, after)
	}
}

// tenant create changes only those quotas that its flags name.
func TestOneQuotaIsChangedAtATime(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	for _, flags := range []string{"--jobs 2 --memory 2GB --cost 500GB-s", "--jobs 3", "--disk 1GB", "--role read"} {
		line := append([]string{"tenant", "create", "ann"}, strings.Fields(flags)...)
		if _, errs, code := typed(t, line...); code != 0 {
			t.Fatal(errs)
		}
	}
	out, errs, _ := typed(t, "tenant", "list", "-o", "json")
	var all []tenant.Info
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	want := scheduler.Quota{Jobs: 3, Memory: 2 * disdel.GB, Disk: disdel.GB, Cost: 500}
	if all[0].Quota != want {
		t.Errorf("%+v, want %+v", all[0].Quota, want)
	}
}

// A rule for the result needs a command that waits for it.
func TestARuleIsRefusedWithDetach(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	for _, line := range []string{"submit job.yaml", "resume job-x"} {
		line := append(strings.Fields(line), "--detach", "--fail-if", "accuracy < 0.5")
		_, errs, code := typed(t, line...)
		if code != terminal.ExitUsage || !strings.Contains(errs, "disdel jobs wait JOB --fail-if 'accuracy < 0.5'") {
			t.Errorf("%v: exit %d\n%s", line, code, errs)
		}
	}
}

// init names the file of a network by its whole path in a job file elsewhere.
func TestInitOfAJobFileElsewhereFindsTheNetwork(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	name, err := besideJob(filepath.Join(t.TempDir(), "k.yaml"), "net.json")
	if want := filepath.Join(dir, "net.json"); err != nil || name != want {
		t.Errorf("%s, %v; want %s", name, err, want)
	}
	if name, err = besideJob("jobs/k.yaml", "net.json"); err != nil || name != "../net.json" {
		t.Errorf("%s, %v", name, err)
	}
}
