package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/export"
)

func historyExport(u *ui) *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write the steps of a job in another program's format", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of an id, a name or @last.\n\n" +
			"   disdel history export @last --mlless films",
		Flags: []cli.Flag{&cli.StringFlag{Name: "mlless", Usage: "write MLLess files, with this file name `PREFIX`"}},
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			if c.String("mlless") == "" {
				return NeedsFlag(c, "--mlless PREFIX")
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				r, err := at.Records.Get(ctx, c.Args().First())
				if err != nil {
					return err
				}
				doc, err := export.WriteMLLess(c.String("mlless"), &r)
				if err != nil {
					return err
				}
				return u.Show(doc, func(w io.Writer) { fmt.Fprintln(w, strings.Join(doc.Files, "\n")) })
			})
		},
	}
}
