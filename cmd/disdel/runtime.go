package main

import (
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/actions/custom"
)

func runtimeCommand(*ui) *cli.Command {
	return &cli.Command{
		Name: "runtime", Usage: "serve actions inside a container (the image's entry point)", Hidden: true,
		Flags: []cli.Flag{&cli.StringFlag{Name: "listen", Value: custom.DefaultAddress, Usage: "`ADDRESS`: :PORT, tcp:HOST:PORT or unix:/PATH"}},
		Action: func(c *cli.Context) error {
			if err := operands(c, 0, 0); err != nil {
				return err
			}
			return custom.Serve(c.Context, c.String("listen"), custom.NewHost())
		},
	}
}
