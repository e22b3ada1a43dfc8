package cli

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
)

func datasetAdd(u *ui) *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "add a data set by name, or from files", ArgsUsage: "NAME",
		Description: AddDescription(), Flags: AddFlags(),
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, storage,
				func(ctx context.Context, at client.Client) error { return addDataset(ctx, c, u, at.Data) })
		},
	}
}

func addDataset(ctx context.Context, c *cli.Context, u *ui, data client.Data) error {
	doc, err := added(ctx, c, u, data)
	if err != nil {
		return err
	}
	for _, w := range doc.Warnings {
		u.Say("warning: %s", w)
	}
	return u.Show(doc, func(w io.Writer) { render.PrintAdded(w, doc) })
}

// added adds the data set that the command line names.
func added(ctx context.Context, c *cli.Context, u *ui, data client.Data) (set render.Set, err error) {
	name := c.Args().First()
	if in, named, err := DenseRows(c, name); named {
		if err != nil {
			return set, err
		}
		return data.AddDense(ctx, in, c.Bool("overwrite"))
	}
	if in, named, err := SparseRows(c, name); named {
		if err != nil {
			return set, err
		}
		return data.AddSparse(ctx, in, c.Bool("overwrite"))
	}
	if !NamesDataFiles(c) {
		if r, ok := dataset.FindRecipe(name); ok {
			u.Say("reading %s", r.Title)
		}
		return data.AddKnown(ctx, name, c.Bool("overwrite"))
	}
	files, err := DataFiles(c)
	if err != nil {
		return set, err
	}
	return data.AddFiles(ctx, name, files, c.Bool("overwrite"))
}
