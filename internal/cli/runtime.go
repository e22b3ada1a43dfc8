package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/actions/serve"
	"github.com/disdel/disdel/service"
)

func runtimeCommand(*ui) *cli.Command {
	return &cli.Command{
		Name: "runtime", Usage: "serve actions inside a container (the image's entry point)", Hidden: true,
		Flags: []cli.Flag{&cli.StringFlag{
			Name: "listen", Value: serve.DefaultAddress,
			Usage: "`ADDRESS`: :PORT, tcp:HOST:PORT or unix:/PATH",
		}},
		Action: Alone(func(c *cli.Context) error {
			return service.ServeAt(c.Context, c.String("listen"))
		}),
	}
}
