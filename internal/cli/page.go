package cli

import (
	"context"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/api"
)

func pageCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "ui", Usage: "show jobs, models and data sets of this home in a browser", ArgsUsage: " ",
		Description: "Serves the page of disdel serve, only for this machine, until Ctrl-C. The printed address signs\n" +
			"you in once.",
		Flags: []cli.Flag{&cli.StringFlag{Name: "listen", Value: "127.0.0.1:0", Usage: "`ADDRESS` to listen on"}},
		Action: func(c *cli.Context) error {
			if err := Operands(c, 0, 0); err != nil {
				return err
			}
			l, err := api.Listen(c.String("listen"), "", "", false)
			if err != nil {
				return err
			}
			defer l.Close()
			return withService(c, u, wholeJob, func(ctx context.Context, s *service.Service) error {
				cfg := api.Config{Service: s, Operator: api.Key(), Enter: api.Key(), Log: newLog(c, u)}
				at := serving{URL: l.URL() + "/ui/enter?key=" + cfg.Enter}
				u.Say("open %s", at.URL)
				if err := u.Show(at, func(io.Writer) {}); err != nil {
					return err
				}
				return api.Serve(ctx, l, cfg, time.Second)
			})
		},
	}
}
