package main

import (
	"context"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/datasettext"
)

func datasetAdd(u *ui) *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "add a data set by name, or from files", ArgsUsage: "NAME",
		Description: "Known names: " + strings.Join(dataset.Known(), ", ") +
			". Their files come from an installed package, else from their public\n" +
			"address, and are checked against pinned checksums.\n\n" +
			"Files are IDX, plain or gzip, of unsigned bytes (kept as 0..1 from 0..255) or of 32-bit floats (kept as they " +
			"are):\n" +
			"[rows features], [rows height width] or [rows channels height width]; --layout hwc reads [rows height width " +
			"channels].\n\n" +
			"   disdel dataset add fashion-mnist\n" +
			"   disdel dataset add letters --images train-images.gz --labels train-labels.gz",
		Flags: append(commandline.SparseFlags(), []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "`FORMAT` of --images: idx, cifar10 or cifar100", Value: "idx"},
			&cli.StringFlag{Name: "images", Usage: "`FILE` of training images or features, plain or gzip; of cifar10 and " +
				"cifar100 the folder of all files"},
			&cli.StringFlag{Name: "labels", Usage: "`FILE` of training labels"},
			&cli.StringFlag{Name: "test-images", Usage: "`FILE` of held-out images"},
			&cli.StringFlag{Name: "test-labels", Usage: "`FILE` of held-out labels"},
			&cli.StringFlag{
				Name: "layout", Usage: "`LAYOUT` of images with several channels: chw or hwc",
				Value: string(dataset.CHW),
			},
			&cli.StringFlag{Name: "classes", Usage: "`NAMES` of the classes, in the order of their labels: cat,dog"},
			&cli.BoolFlag{Name: "overwrite", Usage: "replace a data set of this name"},
		}...),
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
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
	return u.Show(doc, func(w io.Writer) { datasettext.PrintSets(w, doc.Manifest) })
}

// added adds the data set that the command line names.
func added(ctx context.Context, c *cli.Context, u *ui, data client.Data) (set datasettext.Set, err error) {
	name := c.Args().First()
	if in, named, err := commandline.SparseRows(c, name); named {
		if err != nil {
			return set, err
		}
		return data.AddSparse(ctx, in, c.Bool("overwrite"))
	}
	if !commandline.NamesDataFiles(c) {
		if r, ok := dataset.FindRecipe(name); ok {
			u.Say("reading %s", r.Title)
		}
		return data.AddKnown(ctx, name, c.Bool("overwrite"))
	}
	files, err := commandline.DataFiles(c)
	if err != nil {
		return set, err
	}
	return data.AddFiles(ctx, name, files, c.Bool("overwrite"))
}
