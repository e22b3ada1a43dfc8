package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/service"
)

func datasetCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "dataset", Usage: "add, list, show, sample and remove data sets",
		Subcommands: []*cli.Command{datasetAdd(u), datasetList(u), datasetShow(u), datasetSample(u), datasetRemove(u)},
		Action:      commandline.NeedSubcommand,
	}
}

// setDocument is a data set as -o json shows it.
type setDocument struct {
	dataset.Manifest
	Checksum string   `json:"checksum"`
	Warnings []string `json:"warnings,omitempty"` // of dataset add
}

func describeSet(m dataset.Manifest) setDocument {
	return setDocument{Manifest: m, Checksum: m.Checksum()}
}

func printSets(w io.Writer, list []dataset.Manifest) {
	rows := [][]string{{"NAME", "TRAIN", "HELD OUT", "SAMPLE", "CLASSES", "SIZE", "TITLE"}}
	for _, m := range list {
		held := "by split"
		if m.Test.Rows > 0 {
			held = fmt.Sprint(m.Test.Rows)
		}
		rows = append(rows, []string{
			m.Name, fmt.Sprint(m.Train.Rows), held, model.Shape(m.Sample).Text(), fmt.Sprint(m.Classes),
			(disdel.Bytes(m.Train.Rows+m.Test.Rows) * m.SampleSize()).String(), m.Title,
		})
	}
	terminal.Table(w, rows...)
}

func datasetList(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the data sets there are",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 0, 0); err != nil {
				return err
			}
			return withSets(c, u, func(ctx context.Context, store *dataset.Store) error {
				list, faults := store.List(ctx)
				if faults != nil && len(list) == 0 {
					return faults
				}
				docs := make([]setDocument, len(list))
				for i, m := range list {
					docs[i] = describeSet(m)
				}
				return errors.Join(u.Show(docs, func(w io.Writer) { printSets(w, list) }), faults)
			})
		},
	}
}

func withSets(c *cli.Context, u *ui, f func(context.Context, *dataset.Store) error) error {
	return withService(c, u, storage, func(ctx context.Context, s *service.Service) error {
		store, err := s.Datasets(ctx)
		if err != nil {
			return err
		}
		return f(ctx, store)
	})
}

func datasetShow(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show one data set", ArgsUsage: "NAME",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			return withSets(c, u, func(ctx context.Context, store *dataset.Store) error {
				m, err := store.Manifest(ctx, c.Args().First())
				if err != nil {
					return err
				}
				return u.Show(describeSet(m), func(w io.Writer) {
					printSets(w, []dataset.Manifest{m})
					fmt.Fprintf(w, "\nlicence   %s\nchecksum  %s\nclasses   %s\n", terminal.OneLine(m.License), m.Checksum(),
						terminal.OneLine(strings.Join(m.ClassNames, ", ")))
				})
			})
		},
	}
}

// sampleDocument is rows as `infer --input` reads them, with the labels for who wants to compare.
type sampleDocument struct {
	Shape  []int       `json:"shape"`
	Inputs [][]float32 `json:"inputs"`
	Labels []int32     `json:"labels"`
}

func datasetSample(u *ui) *cli.Command {
	return &cli.Command{
		Name: "sample", Usage: "print held-out rows as input for infer", ArgsUsage: "NAME",
		Description: "   disdel dataset sample digits --row 7 > digit.json\n   disdel infer digits-cnn --input digit.json",
		Flags: []cli.Flag{
			&cli.IntSliceFlag{Name: "row", Usage: "`NUMBER` of a held-out row (repeatable)", Value: cli.NewIntSlice(0)},
			&cli.Int64Flag{Name: "seed", Usage: "`SEED` of the split of a data set without held-out rows of its own", Value: 1},
		},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			return withSets(c, u, func(ctx context.Context, store *dataset.Store) error {
				doc, err := sample(ctx, store, c.Args().First(), c.IntSlice("row"), c.Int64("seed"))
				if err != nil {
					return err
				}
				return json.NewEncoder(u.Out).Encode(doc)
			})
		},
	}
}

func sample(ctx context.Context, store *dataset.Store, name string, rows []int, seed int64) (doc sampleDocument,
	err error,
) {
	m, err := store.Manifest(ctx, name)
	if err != nil {
		return doc, err
	}
	split := disdel.Split{Train: 0.8, Validation: 0.2, Seed: seed}
	info := m.Info(split)
	if info.HeldOut == 0 {
		return doc, &disdel.Error{
			Kind: disdel.Invalid, Op: "sample " + name, Msg: "no row of it is held out",
			Hint: "a data set without held-out rows of its own needs at least 3 rows",
		}
	}
	if slices.Min(rows) < 0 || slices.Max(rows) >= info.HeldOut {
		return doc, &disdel.Error{
			Kind: disdel.Invalid, Op: "sample " + name,
			Msg: fmt.Sprintf("rows go from 0 to %d", info.HeldOut-1),
		}
	}
	shard, err := store.ReadHeldOut(ctx, disdel.DataRef{Name: name, Checksum: info.Checksum, Split: split},
		disdel.RowRange{End: info.HeldOut})
	if err != nil {
		return doc, err
	}
	doc = sampleDocument{Shape: m.Sample, Labels: make([]int32, len(rows))}
	x := make([]float32, len(rows)*shard.SampleLen())
	places := make([]int32, len(rows))
	for i, r := range rows {
		places[i] = int32(r)
	}
	shard.Batch(places, x, doc.Labels)
	for i := range rows {
		doc.Inputs = append(doc.Inputs, x[i*shard.SampleLen():(i+1)*shard.SampleLen()])
	}
	return doc, nil
}
