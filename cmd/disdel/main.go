// Command disdel trains deep-learning models as serverless actions on Apache OpenWhisk.
//
// It reads flags and prints; what is done is package service's. The action runtime, an image's entry point, is the same
// binary started as `disdel runtime`.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/terminal"
)

// ui is how every command talks.
type ui = terminal.UI

func main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its surroundings as parameters; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	aggregator.SilenceRedis()
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
	asked := commandline.Deal(app, args)
	u.Args = args
	u.Expect(asked.Globals)
	switch {
	case asked.Help:
		return showHelp(u, app, asked.HelpWanted(app))
	case asked.Version:
		return showVersion(u)
	}
	err := app.RunContext(ctx, commandline.Normalize(app, args))
	if errors.Is(err, commandline.ErrWantsHelp) {
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
	shown, print, err := commandline.Help(app, names)
	if err != nil {
		return err
	}
	return u.Show(shown, print)
}
