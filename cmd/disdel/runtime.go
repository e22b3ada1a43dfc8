package main

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/actions"
	owruntime "github.com/disdel/disdel/runtime"
)

// collectEvery is the collector's target for actions: memory is what they are billed and killed for.
const collectEvery = 40

func runtimeCommand(*ui) *cli.Command {
	return &cli.Command{
		Name: "runtime", Usage: "serve actions inside a container (the image's entry point)", Hidden: true,
		Flags: []cli.Flag{&cli.StringFlag{Name: "listen", Value: ":8080", Usage: "`ADDRESS`: :PORT, tcp:HOST:PORT or unix:/PATH"}},
		Action: func(c *cli.Context) error {
			if err := operands(c, 0, 0); err != nil {
				return err
			}
			debug.SetGCPercent(collectEvery)
			host := actions.NewHost(owruntime.Memory)
			handlers := map[disdel.Task]owruntime.Handler{}
			for task, h := range host.Handlers() {
				handlers[task] = func(ctx context.Context, p json.RawMessage) (any, error) { return h(ctx, p) }
			}
			l, err := owruntime.Listen(c.String("listen"))
			if err != nil {
				return err
			}
			err = owruntime.New(handlers, owruntime.Config{Limit: owruntime.ContainerLimit()}).Serve(c.Context, l)
			return errors.Join(err, host.Close())
		},
	}
}

func helpCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "show help, or the list of exit codes", ArgsUsage: "[exit-codes | COMMAND]",
		Action: func(c *cli.Context) error {
			switch name := c.Args().First(); name {
			case "":
				return cli.ShowAppHelp(c)
			case "exit-codes":
				_, err := u.out.Write([]byte(exitCodes))
				return err
			default:
				return cli.ShowCommandHelp(c, name)
			}
		},
	}
}
