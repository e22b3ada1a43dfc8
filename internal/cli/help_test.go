package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/terminal"
)

// typed runs a command line in this process.
func typed(t *testing.T, line ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(append([]string{"disdel"}, line...), strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

// allCommands is every command of the tree with the words that lead to it.
func allCommands() map[string]*cli.Command {
	out := map[string]*cli.Command{}
	eachCommand("disdel", newApp(terminal.New(nil, nil, nil)).Commands,
		func(c *cli.Command) { out[strings.TrimPrefix(c.HelpName, "disdel ")] = c })
	return out
}

// Help is that of the command it was asked of, with its flags and examples, wherever --help stands.
func TestHelpIsThatOfTheCommandItIsAskedOf(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	for path, c := range allCommands() {
		words := strings.Fields(path)
		ways := [][]string{
			append(words, "--help"), append(words, "-h"), append([]string{"--help"}, words...),
			append([]string{"help"}, words...),
		}
		if len(c.Subcommands) == 0 {
			ways = append(ways, append(words, "operand", "--help"), append(words, "operand", "--quiet", "--help"))
		}
		for _, way := range ways {
			out, errs, code := typed(t, way...)
			if code != 0 || errs != "" || !strings.Contains(out, "   disdel "+path+" - "+c.Usage) ||
				!strings.Contains(out, strings.TrimSpace(c.Description)) {
				t.Errorf("%v: exit %d\n%s%s", way, code, out, errs)
			}
			for _, f := range c.Flags {
				if visible, ok := f.(cli.VisibleFlag); ok && !visible.IsVisible() {
					continue
				}
				if name := dashed(f.Names()[0]); !strings.Contains(out, name) {
					t.Errorf("%v: no word of %s", way, name)
				}
			}
		}
	}
}

// What leads to no command says so, with the command that is probably meant or where to look, and never nothing.
func TestWhatIsNoCommandSaysWhatIs(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	for line, hint := range map[string]string{
		"help nope": "disdel --help", "nope --help": "disdel --help", "frobnicate": "disdel --help",
		"help dataset frob": "disdel dataset --help",
		"help sumbit":       "disdel submit", "sumbit x": "disdel submit", "val": "disdel validate",
		"modle list":  "disdel model",
		"dataset lst": "disdel dataset list", "dataset rm x": "disdel dataset remove",
		"dataset delete x": "disdel dataset remove", "model ls": "disdel model list",
		"history shwo x": "disdel jobs show", "platform stop": "disdel platform down",
		"dataset frob --help": "disdel dataset --help",
		"jobs frob":           "disdel jobs show frob shows a job; disdel jobs --help lists the commands",
	} {
		out, errs, code := typed(t, strings.Fields(line)...)
		if code != 2 || out != "" || !strings.HasSuffix(strings.TrimSpace(errs), " hint: "+hint) {
			t.Errorf("%s: exit %d, hint %q wanted\n%s%s", line, code, hint, out, errs)
		}
	}
}

// A flag that is not there, or not given as it should be, exits with 2 and says what to write.
func TestWrongFlagsSayWhatToWrite(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	for line, hint := range map[string]string{
		"submit job.yaml -workers 3":         "--set distribution.workers=3",
		"submit job.yaml -workers=3":         "--set distribution.workers=3",
		"submit job.yaml --batch-size 32":    "--set training.batchSize=32",
		"submit --learningRate 0.1 job.yaml": "--set training.optimizer.adam.learningRate=0.1",
		"submit job.yaml --epochs":           "write a whole number",
		"history --modle x":                  "did you mean --model?",
		"history --quite":                    "did you mean --quiet?",
		"history --epochs 3":                 "disdel jobs --help",
		"history --frob":                     "disdel jobs --help",
		"history --limit x":                  "write a whole number",
		"history --action-timeout 5":         "write a time such as 30s, 5m or 2h",
		"history --since 7q":                 "write a time such as 90m, 12h, 7d or 2w",
		"history --since -7d":                "write a time such as 90m, 12h, 7d or 2w",
		"model export x":                     "disdel model export NAME --file FILE",
		"infer x":                            "disdel infer x FILE",
		"history --frob -o json":             "disdel jobs --help",
	} {
		out, errs, code := typed(t, strings.Fields(line)...)
		if code != 2 || out != "" || !strings.Contains(errs, hint) {
			t.Errorf("%s: exit %d, hint %q wanted\n%s%s", line, code, hint, out, errs)
		}
	}
	for path, c := range allCommands() {
		for _, f := range c.Flags {
			if r, ok := f.(cli.RequiredFlag); ok && r.IsRequired() {
				t.Errorf("%s: the parser itself refuses a missing %v, with exit code 1 and without a hint", path, f.Names())
			}
		}
	}
}

// Letters that stand together are taken apart, also where the last one has a value.
func TestShortFlagsMayStandTogether(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	out, errs, code := typed(t, "dataset", "list", "-qo", "json")
	if code != 0 || errs != "" || !json.Valid([]byte(out)) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if _, errs, code := typed(t, "dataset", "list", "-vv"); code != 0 {
		t.Errorf("-vv: exit %d\n%s", code, errs)
	}
}

// The program tells what it is, in every way that people ask.
func TestTheVersionIsTold(t *testing.T) {
	for _, line := range []string{"version", "--version", "version -o json", "--version -o json", "submit --version"} {
		out, errs, code := typed(t, strings.Fields(line)...)
		if code != 0 || errs != "" || !strings.Contains(out, self().Go) || !strings.Contains(out, self().Kernels) {
			t.Errorf("%s: exit %d\n%s%s", line, code, out, errs)
		}
	}
	var d versionDocument
	if out, _, _ := typed(t, "version", "-o", "json"); json.Unmarshal([]byte(out), &d) != nil || d != self() {
		t.Errorf("%+v", d)
	}
}
