package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

func datasetRemove(u *ui) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "remove a data set", ArgsUsage: "NAME",
		Description: "A data set that a job of this home is reading is not removed.\n\n   disdel dataset remove letters",
		Action: func(c *cli.Context) error {
			if err := operands(c, 1, 1); err != nil {
				return err
			}
			return withStack(c, u, func(ctx context.Context, s *stack) error {
				name := c.Args().First()
				if id := s.reader(ctx, name); id != "" {
					return &disdel.Error{
						Kind: disdel.Conflict, Op: "remove data set", Msg: fmt.Sprintf("%s is reading %s", id, name),
						Hint: "wait for the job, or stop it with Ctrl-C first",
					}
				}
				store, err := s.datasets(ctx)
				if err != nil {
					return err
				}
				removed, err := store.Remove(ctx, name)
				if err != nil {
					return err
				}
				return u.show(removed, func(w io.Writer) { printRemoved(w, removed) })
			})
		},
	}
}

func printRemoved(w io.Writer, r dataset.Removed) {
	fmt.Fprintf(w, "removed data set %s: %s, %v\n", oneLine(r.Name), files(r.Files), r.Size)
}

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// reader is a running job of this home that reads a data set, as far as that can be known: a job elsewhere is not seen.
func (s *stack) reader(ctx context.Context, name string) disdel.JobID {
	marks, err := os.ReadDir(filepath.Join(s.home, "running"))
	if err != nil {
		return ""
	}
	var running []disdel.JobID
	for _, f := range marks {
		id, err := url.PathUnescape(f.Name())
		if err != nil {
			continue
		}
		if _, runs := runner(s.home, disdel.JobID(id)); runs {
			running = append(running, disdel.JobID(id))
		}
	}
	if len(running) == 0 {
		return ""
	}
	h, err := s.history(ctx)
	if err != nil {
		return ""
	}
	for _, id := range running {
		if r, err := h.Get(ctx, id); err == nil && r.Data.Name == name {
			return id
		}
	}
	return ""
}
