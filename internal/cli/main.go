// Package cli is the command line of disdel: commands, flags, help, shell completion, and mistakes in what was typed.
//
// It reads flags and prints; package service does the work. The action runtime, the entry point of an image, is the same
// program started as `disdel runtime`.
package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/internal/terminal"
)

// ui is how every command talks.
type ui = terminal.UI

// Main runs the program and ends the process.
func Main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is Main with its surroundings as parameters; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	aggregator.Quiet()
	ctx, stop := terminal.Interruptible()
	defer stop()
	u := terminal.New(stdin, stdout, stderr)
	u.Exit = func(err error) int { return terminal.ExitCode(ctx, err) }
	err := u.All(carryOut(ctx, u, args))
	u.Fail(err)
	return terminal.ExitCode(ctx, err)
}

// carryOut does what one command line says.
func carryOut(ctx context.Context, u *ui, args []string) error {
	app := newApp(u)
	asked := Deal(app, args)
	u.Args = args
	u.Expect(asked.Globals)
	switch {
	case asked.Help:
		return showHelp(u, app, asked.HelpWanted(app))
	case asked.Version:
		return showVersion(u)
	}
	err := app.RunContext(ctx, Normalize(app, args))
	if errors.Is(err, ErrWantsHelp) {
		return showHelp(u, app, asked.Path)
	}
	return err
}

func helpCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "show help, or the exit codes", ArgsUsage: "[exit-codes | COMMAND...]",
		Description: "   disdel help dataset add\n   disdel help exit-codes",
		Action: func(c *cli.Context) error {
			if c.NArg() == 1 && c.Args().First() == "exit-codes" {
				return u.Show(terminal.ExitCodes, terminal.PrintExitCodes)
			}
			return showHelp(u, c.App, c.Args().Slice())
		},
	}
}

func showHelp(u *ui, app *cli.App, names []string) error {
	shown, print, err := Help(app, names)
	if err != nil {
		return err
	}
	return u.Show(shown, print)
}
