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
			}},
			{Name: "report", Usage: "reports", ArgsUsage: "JOB"},
			{Name: "hidden", Hidden: true},
		},
	}
	app.Setup()
	eachCommand("disdel", app.Commands, func(c *cli.Command) { c.HideHelpCommand = true })
	return app
}

// Words become commands, flags or jobs, wherever the word stands; a flag's value is left to the shell.
func TestCandidates(t *testing.T) {
	for line, want := range map[string]string{
		"":                             "dataset help report",
		"da":                           "dataset",
		"dataset ":                     "add list",
		"--home x dataset l":           "list",
		"--home=x -q dataset ":         "add list",
		"dataset add --i":              "--images",
		"dataset add --gray --images ": "",
		"dataset add --q":              "--quiet",
		"report ":                      "@last",
		"report --ho":                  "--home",
		"nothing":                      "",
		"--home ":                      "",
	} {
		var got []string
		for _, c := range candidatesFor(someApp(), strings.Split(line, " ")) {
			got = append(got, c.Word)
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%q: %q, not %q", line, got, want)
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
	for _, c := range candidatesFor(someApp(), []string{"dataset", "a"}) {
		fmt.Println(c.Word, c.Meaning)
	}
	// Output: add adds
}
