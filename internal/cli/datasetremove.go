package cli

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
)

func datasetRemove(u *ui) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "remove a data set", ArgsUsage: "NAME",
		Description: "A data set that a job of this home reads is not removed.\n\n   disdel dataset remove letters",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, storage|records, func(ctx context.Context, at client.Client) error {
				removed, err := at.Data.Remove(ctx, c.Args().First())
				if err != nil {
					return err
				}
				return u.Show(removed, func(w io.Writer) { render.PrintRemoved(w, removed) })
			})
		},
	}
}
