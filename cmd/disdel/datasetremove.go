package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

func datasetRemove(u *ui) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "remove a data set", ArgsUsage: "NAME",
		Description: "A data set that a job of this home is reading is not removed.\n\n   disdel dataset remove letters",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			return withService(c, u, storage|records, func(ctx context.Context, s *service.Service) error {
				name := c.Args().First()
				if id := s.Reader(ctx, name); id != "" {
					return &disdel.Error{
						Kind: disdel.Conflict, Op: "remove data set", Msg: fmt.Sprintf("%s is reading %s", id, name),
						Hint: "wait for the job, or stop it with Ctrl-C first",
					}
				}
				store, err := s.Datasets(ctx)
				if err != nil {
					return err
				}
				removed, err := store.Remove(ctx, name)
				if err != nil {
					return err
				}
				return u.Show(removed, func(w io.Writer) { printRemoved(w, removed) })
			})
		},
	}
}

func printRemoved(w io.Writer, r dataset.Removed) {
	fmt.Fprintf(w, "removed data set %s: %s, %v\n", terminal.OneLine(r.Name), filesText(r.Files), r.Size)
}

func filesText(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
