package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func someApp() *cli.App {
	app := &cli.App{
		Name: "disdel", Usage: "trains",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "home", Usage: "folder"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}},
		},
		Commands: []*cli.Command{
			{Name: "dataset", Usage: "data sets", Subcommands: []*cli.Command{
				{Name: "add", Usage: "adds", Flags: []cli.Flag{&cli.StringFlag{Name: "images"}, &cli.BoolFlag{Name: "gray"}}},
				{Name: "list", Usage: "lists"},
				{Name: "show", Usage: "shows", ArgsUsage: "NAME"},
			}},
			{Name: "report", Usage: "reports", ArgsUsage: "JOB...", Flags: []cli.Flag{
				&cli.StringFlag{Name: "set"}, &cli.StringFlag{Name: "dataset"},
			}},
			{Name: "hidden", Hidden: true},
		},
	}
	app.Setup()
	eachCommand("disdel", app.Commands, func(c *cli.Command) { c.HideHelpCommand = true })
	return app
}

// someValues are values by their kind.
func someValues(kind valueKind) []candidate {
	return map[valueKind][]candidate{
		jobValue: {{"@last", ""}, {"pets", ""}}, datasetValue: {{"digits", ""}}, settingValue: {{"training.epochs=", ""}},
	}[kind]
}

// Words become commands, flags, jobs or data sets, wherever the word stands; other values are left to the shell.
func TestCandidates(t *testing.T) {
	for line, want := range map[string]string{
		"":                                 "dataset help report",
		"da":                               "dataset",
		"dataset ":                         "add list show",
		"--home x dataset l":               "list",
		"--home=x -q dataset ":             "add list show",
		"dataset add --i":                  "--images",
		"dataset add --gray --images ":     "",
		"dataset add --q":                  "--quiet",
		"dataset show ":                    "digits",
		"dataset show digits ":             "",
		"report ":                          "@last pets",
		"report p":                         "pets",
		"report pets ":                     "@last pets",
		"report --set t":                   "training.epochs=",
		"report --set training.epochs=3 p": "pets",
		"report --dataset ":                "digits",
		"report --ho":                      "--home",
		"nothing":                          "",
		"--home ":                          "",
	} {
		var got []string
		for _, c := range candidatesFor(someApp(), strings.Split(line, " "), someValues) {
			got = append(got, c.Word)
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%q: %q, not %q", line, got, want)
		}
	}
}

// Every kind of value that a command or a flag names has values.
func TestEveryKindHasItsValues(t *testing.T) {
	t.Setenv("DISDEL_HOME", t.TempDir())
	if _, errs, code := typed(t, "dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	if _, errs, code := typed(t, "context", "add", "lab", "--server", "http://127.0.0.1:1"); code != 0 {
		t.Fatal(errs)
	}
	for line, want := range map[string]string{
		"dataset show ":            "digits",
		"dataset add fash":         "fashion-mnist",
		"jobs --dataset d":         "digits",
		"submit --set training.ep": "training.epochs=",
		"explain training.ep":      "training.epochs",
		"jobs --sort acc":          "accuracy",
		"ps --status r":            "running",
		"context use la":           "lab",
		"--context l":              "lab local",
		"logs ":                    "@last",
		"job logs ":                "@last",
		"model show lenet5":        "lenet5",
		"completion z":             "zsh",
		"prune che":                "checkpoints",
		"jobs -o js":               "json jsonl",
	} {
		out, errs, code := typed(t, append([]string{completeName, "--"}, strings.Split(line, " ")...)...)
		var got []string
		for text := range strings.Lines(out) {
			word, _, _ := strings.Cut(text, "\t")
			got = append(got, word)
		}
		if code != 0 || strings.Join(got, " ") != want {
			t.Errorf("%q: exit %d, %q, not %q\n%s", line, code, got, want, errs)
		}
	}
}

// Every shell has a script that asks the program; others are refused.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range shells {
		if text, err := completionScript(shell); err != nil || !strings.Contains(text, "disdel "+completeName) {
			t.Errorf("%s: %v", shell, err)
		}
	}
	if _, err := completionScript("csh"); err == nil {
		t.Error("csh has a script")
	}
}

// The page of man has every command with its flags.
func TestTheManual(t *testing.T) {
	text := string(manualPage(someApp()))
	for _, want := range []string{".TH", "disdel", "dataset add", "images"} {
		if !strings.Contains(strings.ReplaceAll(text, "\\-", "-"), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func Example_candidatesFor() {
	for _, c := range candidatesFor(someApp(), []string{"dataset", "a"}, someValues) {
		fmt.Println(c.Word, c.Meaning)
	}
	// Output: add adds
}
