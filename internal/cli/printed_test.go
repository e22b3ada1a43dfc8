package cli

import (
	"bytes"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/terminal"
)

// A job that was run with every flag of a place has every command that is printed about it lead to the same place, each
// flag once: on the screen, in errors, in the history, in reports and in pages.
func TestPrintedCommandsLeadToTheSamePlace(t *testing.T) {
	d := build(t)
	redis := miniredis.RunT(t)
	_, state := d.up()
	t.Setenv("DISDEL_AUTH", wskKey(t, state.Properties))
	place := [][2]string{
		{"home", filepath.Join(t.TempDir(), "it's a home")},
		{"storage", "file://" + t.TempDir()},
		{"redis", "redis://" + redis.Addr() + "/0"},
		{"redis-prefix", "mine"},
		{"apihost", state.Address},
		{"pool-memory", "1GB"},
	}
	var flags []string
	for _, f := range place {
		flags = append(flags, "--"+f[0], f[1])
	}
	finding := flags[:2] // what a command that reads the record needs
	page := filepath.Join(t.TempDir(), "page.html")
	broken := d.file("metadata: {name: x}\n")
	for _, step := range []struct {
		args []string
		code int
		from int // of the flags that have to be there: those of the place from here on need not
	}{
		{append([]string{"quickstart"}, flags...), 0, 6},
		{append([]string{"submit", broken}, flags...), 2, 6},
		{append([]string{"quickstart", "--set", "reliability.deadline=1ms"}, flags...), -1, 6},
		{append([]string{"history", "show", "@last"}, finding...), 0, 6},
		{append([]string{"report", "@last"}, finding...), 0, 6},
		{append([]string{"report", "@last", "--format", "md"}, finding...), 0, 6},
		{append([]string{"report", "@last", "--html", page}, finding...), 0, 6},
		{append([]string{"history", "show", "nobody"}, finding...), -1, 1},
		{append([]string{"infer", "nobody", "--input", broken}, flags...), -1, 6},
		{append([]string{"dataset", "show", "nobody"}, flags...), -1, 6},
		{append([]string{"dataset", "show", "nobody", "-o", "json"}, flags...), -1, 6},
		{append([]string{"report", "nobody"}, flags...), -1, 6},
	} {
		out, errs, code := d.run(step.args...)
		if step.code >= 0 && code != step.code || step.code < 0 && code == 0 {
			t.Fatalf("%q: exit %d\n%s", step.args, code, errs)
		}
		text := errs + "\n" + out
		if data, err := os.ReadFile(page); err == nil {
			text += tags.ReplaceAllString(html.UnescapeString(string(data)), " ")
		}
		found := printedCommands(t, d.path, text)
		if len(found) == 0 && !slices.Contains(step.args, broken) {
			t.Errorf("%q: no command in\n%s", step.args, text)
		}
		for _, words := range found {
			leadsTo(t, words, place[:step.from])
		}
	}
}

var tags = regexp.MustCompile(`</?(p|pre|code|section|li)>`)

// leadsTo has the program's own parser find every flag of a place in a command, once.
func leadsTo(t *testing.T, words []string, place [][2]string) {
	t.Helper()
	line := splitArgs(newApp(terminal.New(strings.NewReader(""), io.Discard, io.Discard)), words)
	for _, f := range place {
		n := 0
		for i, word := range line.Globals {
			if word == "--"+f[0] && i+1 < len(line.Globals) && line.Globals[i+1] == f[1] {
				n++
			}
		}
		if n != 1 {
			t.Errorf("--%s %s stands %d times in %q", f[0], f[1], n, words)
		}
	}
}

// printedCommands are the commands of a text that work at a place, as a shell takes them apart.
func printedCommands(t *testing.T, program, text string) [][]string {
	t.Helper()
	var out [][]string
	for line := range strings.Lines(text) {
		line = strings.NewReplacer(`\"`, `"`).Replace(line)
		at := regexp.MustCompile(`(^|[^\w./-])(disdel|`+regexp.QuoteMeta(program)+`) `).FindAllStringIndex(line, -1)
		for i, m := range at {
			end := len(line)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			words := append([]string{"disdel"}, shellWords(strings.TrimSpace(line[m[1]:end]))...)
			dealt := splitArgs(newApp(terminal.New(strings.NewReader(""), io.Discard, io.Discard)), words)
			if len(dealt.Path) > 0 && slices.Contains(addresses.Commands, dealt.Path[0]) {
				out = append(out, words)
			}
		}
	}
	return out
}

// shellWords takes a text apart as a POSIX shell does, as far as words and quotes go.
func shellWords(text string) []string {
	var out []string
	var word bytes.Buffer
	open, quoted := false, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'':
			quoted, open = !quoted, true
		case quoted:
			word.WriteByte(c)
		case c == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			open = true
		case c == ' ' || c == '\t' || c == '\n':
			if open {
				out = append(out, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		out = append(out, word.String())
	}
	return out
}

// wskKey is the key in a file of wsk.
func wskKey(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if key, ok := strings.CutPrefix(line, "AUTH="); ok {
			return strings.TrimSpace(key)
		}
	}
	t.Fatalf("no key in %s", data)
	return ""
}

// Every command is either one that works at a place, or one about this machine or this program.
func TestCommandsOfPlaces(t *testing.T) {
	about := []string{
		"context", "completion", "example", "explain", "man", "platform", "runtime", "version", "help", completeName,
	}
	for _, c := range newApp(terminal.New(strings.NewReader(""), io.Discard, io.Discard)).Commands {
		if slices.Contains(addresses.Commands, c.Name) == slices.Contains(about, c.Name) {
			t.Errorf("%s: at a place %v, about this program %v", c.Name, slices.Contains(addresses.Commands, c.Name),
				slices.Contains(about, c.Name))
		}
	}
}

// A job whose controller was killed goes on where it ran, whatever the shell says now; another place, and a storage
// without its checkpoints, are refused by name.
func TestAResumeReturnsToWhereTheJobRan(t *testing.T) {
	t.Parallel()
	d := build(t)
	redis := miniredis.RunT(t)
	_, state := d.up()
	job := d.file(strings.Replace(steadyJob, "epochs: 16", "epochs: 2000", 1))
	address := "redis://" + redis.Addr() + "/0"
	d.killedAfterACheckpoint("submit", job, "--apihost", state.Address, "--redis", address)
	before := d.record()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{
			[]string{"--apihost", "http://127.0.0.1:1"},
			[]string{string(disdel.CodeElsewhere), "ran on " + state.Address, "you gave http://127.0.0.1:1"},
		},
		{[]string{"--redis", "redis://127.0.0.1:1/0"}, []string{string(disdel.CodeElsewhere), "ran on " + address}},
		{[]string{"--storage", "file://" + t.TempDir()}, []string{string(disdel.CodeElsewhere), "ran on the embedded one"}},
	} {
		_, errs, code := d.run(append([]string{"resume", "@last", "-o", "json"}, c.args...)...)
		for _, want := range c.want {
			if code == 0 || !strings.Contains(errs, want) {
				t.Errorf("%q: exit %d, no %q in\n%s", c.args, code, want, errs)
			}
		}
	}
	calls := activationsOf(t, state)
	epochs := d.fewMoreEpochs()
	out, said, code := d.run("resume", "@last", "--set", epochs, "-o", "json")
	if code != 0 || parse(t, out).Status != "succeeded" {
		t.Fatalf("exit %d\n%s", code, said)
	}
	after := d.record()
	if len(after.Rounds) == 0 || after.Resumes != 1 || activationsOf(t, state) == calls {
		t.Errorf("%d rounds, %d resumes, %d activations before", len(after.Rounds), after.Resumes, calls)
	}
	if place := addresses.Place(after.Place); !slices.Equal(place, addresses.Place(before.Place)) {
		t.Errorf("it ran at %v, and then at %v", before.Place, after.Place)
	}
}

// killedAfterACheckpoint runs a command that trains a job, and kills it once the job's record has a checkpoint.
func (d *tool) killedAfterACheckpoint(args ...string) {
	d.t.Helper()
	cmd, _, errs := d.command(args...)
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.until("two checkpoints", func() bool { return len(d.checkpoints()) > 1 })
	d.until("a checkpoint in the record", func() bool { return d.record().Checkpoint != nil })
	cmd.Process.Kill()
	cmd.Wait()
	if d.record().Checkpoint == nil {
		d.t.Fatalf("no checkpoint\n%s", errs)
	}
}

// fewMoreEpochs is a setting that has a job of one epoch a round end soon after its newest checkpoint. Its record may
// lag behind that, and actions that run on after a kill may write one more.
func (d *tool) fewMoreEpochs() string {
	newest := 0
	for _, file := range d.checkpoints() {
		round, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))) // no number: the folder is of nothing that counts
		newest = max(newest, round)
	}
	return "training.epochs=" + strconv.Itoa(newest+15)
}

// A job that ran on the embedded platform is not taken to the cluster that the shell names, until it is asked for: then
// it goes on there from its checkpoint.
func TestAResumeMovesWhereItIsAsked(t *testing.T) {
	d := build(t)
	redis := miniredis.RunT(t)
	_, state := d.up()
	d.killedAfterACheckpoint("submit", d.file(strings.Replace(steadyJob, "epochs: 16", "epochs: 2000", 1)))
	t.Setenv("DISDEL_APIHOST", state.Address)
	args := []string{
		"resume", "@last", "--redis", "redis://" + redis.Addr() + "/0", "--set", d.fewMoreEpochs(), "-o", "json",
	}
	_, errs, code := d.run(args...)
	for _, want := range []string{string(disdel.CodeElsewhere), "ran on the embedded one", "--apihost ''", "--redis ''"} {
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, errs)
		}
	}
	calls := activationsOf(t, state)
	out, errs, code := d.run(append(args, "--move")...)
	if code != 0 || parse(t, out).Status != "succeeded" {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	rec := d.record()
	at, _ := addresses.Place(rec.Place).Value("apihost")
	if at != state.Address || activationsOf(t, state) == calls || len(rec.Rounds) == 0 || rec.Rounds[0].Round != 0 {
		t.Errorf("it ran at %v, %d activations before, %d rounds", rec.Place, calls, len(rec.Rounds))
	}
}

// A job whose checkpoints are not there is not trained from its start without a word.
func TestAResumeDoesNotBeginAnewUnasked(t *testing.T) {
	d := build(t)
	job := d.file(strings.Replace(steadyJob, "epochs: 16", "epochs: 2000", 1))
	cmd, _, _ := d.command("submit", job)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.until("a job", func() bool { return len(d.checkpoints()) > 1 })
	d.until("a checkpoint in its record", func() bool { return d.record().Checkpoint != nil })
	cmd.Process.Kill()
	cmd.Wait()
	if err := os.RemoveAll(filepath.Join(d.home, "models", "checkpoints")); err != nil {
		t.Fatal(err)
	}
	_, errs, code := d.run("resume", "@last", "-o", "json")
	if code == 0 || !strings.Contains(errs, string(disdel.CodeNoCheckpoint)) || !strings.Contains(errs, "--from-start") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	if _, errs, code := d.run("resume", "@last", "--from-start", "--set", "training.epochs=2"); code != 0 {
		t.Errorf("exit %d\n%s", code, errs)
	}
}
