package main

import (
	"context"
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
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/service"
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
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "`FORMAT` of --images and --labels: idx", Value: "idx"},
			&cli.StringFlag{Name: "images", Usage: "`FILE` of training images or features, plain or gzip"},
			&cli.StringFlag{Name: "labels", Usage: "`FILE` of training labels"},
			&cli.StringFlag{Name: "test-images", Usage: "`FILE` of held-out images"},
			&cli.StringFlag{Name: "test-labels", Usage: "`FILE` of held-out labels"},
			&cli.StringFlag{
				Name: "layout", Usage: "`LAYOUT` of images with several channels: chw or hwc",
				Value: string(dataset.CHW),
			},
			&cli.StringFlag{Name: "classes", Usage: "`NAMES` of the classes, in the order of their labels: cat,dog"},
			&cli.BoolFlag{Name: "overwrite", Usage: "replace a data set of this name"},
		},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			return withService(c, u, storage,
				func(ctx context.Context, s *service.Service) error { return addDataset(ctx, c, u, s) })
		},
	}
}

func addDataset(ctx context.Context, c *cli.Context, u *ui, s *service.Service) error {
	in, err := datasetInput(ctx, c, u)
	if err != nil {
		return err
	}
	store, err := s.Datasets(ctx)
	if err != nil {
		return err
	}
	m, err := store.Add(ctx, in, c.Bool("overwrite"))
	if err != nil {
		return err
	}
	doc := describeSet(m)
	if fromFiles(c) {
		doc.Warnings = dataset.Doubts(&in, &m, c.IsSet("layout"))
	}
	for _, w := range doc.Warnings {
		u.Say("warning: %s", w)
	}
	return u.Show(doc, func(w io.Writer) { printSets(w, []dataset.Manifest{m}) })
}

// downloadTimeout bounds one file of a public data set.
const downloadTimeout = 10 * time.Minute

// fromFiles says whether the user names files, not one of the known data sets.
func fromFiles(c *cli.Context) bool {
	return slices.ContainsFunc([]string{"format", "images", "labels", "test-images", "test-labels", "layout", "classes"},
		c.IsSet)
}

func datasetInput(ctx context.Context, c *cli.Context, u *ui) (dataset.Input, error) {
	name := c.Args().First()
	if fromFiles(c) {
		return inputFromFiles(c, name)
	}
	if name == quickstartName {
		return dataset.Digits()
	}
	r, ok := dataset.FindRecipe(name)
	if !ok {
		return dataset.Input{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "add data set", Msg: fmt.Sprintf("no data set is known as %q", name),
			Hint: "known: " + strings.Join(dataset.Known(), ", ") + "; or name files: --images FILE --labels FILE",
		}
	}
	u.Say("reading %s", r.Title)
	return r.Fetch(ctx, &http.Client{Timeout: downloadTimeout})
}

func inputFromFiles(c *cli.Context, name string) (dataset.Input, error) {
	bad := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "add data set", Msg: msg, Hint: hint}
	}
	layout := dataset.Layout(strings.ToLower(c.String("layout")))
	in := dataset.Input{Name: name}
	if names := c.String("classes"); names != "" {
		in.ClassNames = strings.Split(names, ",")
		in.Classes = len(in.ClassNames)
	}
	switch f := c.String("format"); {
	case !strings.EqualFold(f, "idx"):
		return in, bad(fmt.Sprintf("format %q is not supported", f), "the one format is idx, and --format may be left out")
	case layout != dataset.CHW && layout != dataset.HWC:
		return in, bad(fmt.Sprintf("there is no layout %q", layout), "--layout chw or --layout hwc")
	case c.String("images") == "" || c.String("labels") == "":
		return in, bad("it needs both --images and --labels", "--images FILE --labels FILE")
	case c.IsSet("test-images") != c.IsSet("test-labels"):
		return in, bad("--test-images and --test-labels go together", "give both, or neither")
	}
	var err error
	if in.Train, err = readPair(c.String("images"), c.String("labels"), layout); err != nil {
		return in, err
	}
	if in.Train.U8 != nil { // floats are as their owner scaled them
		in.Scale = 1.0 / 255
	}
	if !c.IsSet("test-images") {
		return in, nil
	}
	test, err := readPair(c.String("test-images"), c.String("test-labels"), layout)
	in.Test = &test
	return in, err
}

func readPair(images, labels string, layout dataset.Layout) (dataset.Samples, error) {
	x, err := readIDX(images)
	if err != nil {
		return dataset.Samples{}, err
	}
	y, err := readIDX(labels)
	if err != nil {
		return dataset.Samples{}, err
	}
	return dataset.FromIDX(x, y, layout)
}

func readIDX(name string) (dataset.IDX, error) {
	fail := func(kind disdel.Kind, msg, hint string, err error) (dataset.IDX, error) {
		return dataset.IDX{}, &disdel.Error{Kind: kind, Op: "read " + name, Msg: msg, Hint: hint, Err: err}
	}
	f, err := os.Open(name)
	if err != nil {
		return fail(disdel.Invalid, "", "check the file's name", files.Plain(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return fail(disdel.Invalid, "it is a folder", "name one IDX file; folders of pictures are not read", nil)
	}
	x, err := dataset.ReadIDX(f)
	if err != nil {
		e := disdel.AsError(err)
		return fail(e.Kind, e.Msg, e.Hint, nil)
	}
	return x, nil
}
