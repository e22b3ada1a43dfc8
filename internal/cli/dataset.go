package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
)

func datasetCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "dataset", Usage: "add, generate, list, show, sample and remove data sets",
		Subcommands: []*cli.Command{
			datasetAdd(u), datasetGenerate(u), datasetList(u), datasetShow(u), datasetSample(u), datasetRemove(u),
		},
		Action: NeedSubcommand,
	}
}

func datasetList(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list data sets",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 0, 0); err != nil {
				return err
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				list, faults := at.Data.List(ctx)
				if faults != nil && len(list) == 0 {
					return faults
				}
				plain := make([]dataset.Manifest, len(list))
				for i := range list {
					plain[i] = list[i].Manifest
				}
				return errors.Join(u.Show(append([]render.Set{}, list...), func(w io.Writer) {
					render.PrintSets(w, plain...)
				}), faults)
			})
		},
	}
}

func datasetShow(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show a data set", ArgsUsage: "NAME",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				set, err := at.Data.Get(ctx, c.Args().First())
				if err != nil {
					return err
				}
				return u.Show(set, func(w io.Writer) { render.PrintSet(w, set.Manifest) })
			})
		},
	}
}

func datasetSample(u *ui) *cli.Command {
	return &cli.Command{
		Name: "sample", Usage: "print held-out rows, as input for infer", ArgsUsage: "NAME",
		Description: "   disdel dataset sample digits --row 7 > digit.json\n   disdel infer digits-cnn --input digit.json",
		Flags: []cli.Flag{
			&cli.IntSliceFlag{Name: "row", Usage: "`NUMBER` of a held-out row (repeatable)", Value: cli.NewIntSlice(0)},
			&cli.Int64Flag{Name: "seed", Usage: "`SEED` of the split, for a data set without held-out rows", Value: 1},
		},
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				doc, err := at.Data.Sample(ctx, c.Args().First(), c.IntSlice("row"), c.Int64("seed"))
				if err != nil {
					return err
				}
				return json.NewEncoder(u.Out).Encode(doc)
			})
		},
	}
}
