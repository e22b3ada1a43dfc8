package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

func datasetCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "dataset", Usage: "add, generate, list, show, sample, share and remove data sets",
		Subcommands: append([]*cli.Command{
			datasetAdd(u), datasetGenerate(u), datasetList(u), datasetShow(u), datasetSample(u), datasetRemove(u),
		}, shareCommands(u, tenant.ItemDataset, "data set")...),
		Action: needSubcommand,
	}
}

func datasetList(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list data sets",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
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
				return errors.Join(u.Show(append([]render.Dataset{}, list...), func(w io.Writer) {
					render.PrintDatasets(w, plain...)
				}), faults)
			})
		},
	}
}

func datasetShow(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show a data set", ArgsUsage: "NAME",
		Description: "   disdel dataset show digits --stats",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stats", Usage: "read all training rows, and show ranges, deviations and histograms"},
		},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				set, err := at.Data.Get(ctx, c.Args().First())
				if err != nil {
					return err
				}
				if c.Bool("stats") {
					stats, err := at.Data.Statistics(ctx, c.Args().First())
					if err != nil {
						return err
					}
					set.Statistics = &stats
				}
				return u.Show(set, func(w io.Writer) { render.PrintDataset(w, set) })
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
			&cli.Int64Flag{
				Name: "seed", Usage: "`SEED` of the split, for a data set without held-out rows", Value: disdel.DefaultSeed,
			},
		},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
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

func datasetAdd(u *ui) *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "add a data set by name, or from files", ArgsUsage: "NAME",
		Description: datasetAddDescription(), Flags: datasetAddFlags(),
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, storage,
				func(ctx context.Context, at client.Client) error { return addDataset(ctx, c, u, at.Data) })
		},
	}
}

func addDataset(ctx context.Context, c *cli.Context, u *ui, data client.Data) error {
	shown := false // before the rows were written; sparse rows and IDX files are shown afterwards
	doc, err := addFromFlags(ctx, c, u, data, c.Args().First(), func(u *ui, in *dataset.DenseInput) error {
		shown = true
		return showUnderstood(u, in)
	})
	if err != nil {
		return err
	}
	for _, w := range doc.Warnings {
		u.Say("warning: %s", w)
	}
	return u.Show(doc, func(w io.Writer) {
		if shown {
			render.PrintDatasets(w, doc.Manifest)
			return
		}
		render.PrintAddedDataset(w, doc)
	})
}

// beforeAdding is called with rows that were understood, before anything is written. Its error ends the command.
type beforeAdding func(u *ui, in *dataset.DenseInput) error

// addFromFlags adds the data set that the command line describes. It fetches a file of a hub first.
func addFromFlags(ctx context.Context, c *cli.Context, u *ui, data client.Data, name string, before beforeAdding) (
	set render.Dataset, err error,
) {
	from, err := fetchFromHub(ctx, c, u, c.String("csv"))
	if err == nil && from.folder != "" {
		err = c.Set("csv", from.path)
	}
	if err == nil {
		set, err = addResized(ctx, c, u, data, name, before)
	}
	if err != nil {
		return set, err
	}
	return set, from.done()
}

// addResized adds the data set. It resizes pictures of different sizes.
func addResized(ctx context.Context, c *cli.Context, u *ui, data client.Data, name string, before beforeAdding) (
	render.Dataset, error,
) {
	set, err := addAsGiven(ctx, c, u, data, name, before)
	var faults *disdel.Faults
	if !errors.As(err, &faults) || arrayKind(c) != "pictures" || c.IsSet("size") {
		return set, err
	}
	if err := c.Set("size", usualSize); err != nil {
		return set, err
	}
	resized, again := addAsGiven(ctx, c, u, data, name, before)
	if again != nil { // they have other faults, too
		return set, again
	}
	u.Say("the pictures have different sizes: disdel resizes them to %s; --size chooses another size", usualSize)
	return resized, nil
}

// usualSize is what pictures of different sizes are brought to.
const usualSize = "32x32"

// addAsGiven adds the data set as the flags say.
func addAsGiven(ctx context.Context, c *cli.Context, u *ui, data client.Data, name string, before beforeAdding) (
	set render.Dataset, err error,
) {
	if c.IsSet("program") {
		return addProgramRows(ctx, c, u, data, name, before)
	}
	if in, named, err := denseRows(c, name); named {
		if err != nil {
			return set, err
		}
		if err := before(u, &in); err != nil {
			return set, err
		}
		return data.AddDense(ctx, in, c.Bool("overwrite"))
	}
	if in, named, err := sparseRows(c, name); named {
		if err != nil {
			return set, err
		}
		return data.AddSparse(ctx, in, c.Bool("overwrite"))
	}
	if !namesArrayFiles(c) {
		if r, ok := dataset.FindRecipe(name); ok {
			u.Say("reading %s", r.Title)
		}
		return data.AddKnown(ctx, name, c.Bool("overwrite"))
	}
	files, err := arrayFiles(c)
	if err != nil {
		return set, err
	}
	return data.AddFiles(ctx, name, files, c.Bool("overwrite"))
}

// showUnderstood prints what the files were taken for before anything is written. Formats other than the table have it
// in the document of the data set.
func showUnderstood(u *ui, in *dataset.DenseInput) error {
	if u.Format != "table" || in.Understood.Kind == "" {
		return nil
	}
	set := render.Dataset{Understood: &in.Understood}
	set.Targets, set.NextToken = in.Targets, in.NextToken
	return u.Show(set, func(w io.Writer) {
		render.PrintUnderstood(w, set)
		fmt.Fprintln(w)
	})
}

// addProgramRows adds the data set that a Python program reads itself.
func addProgramRows(ctx context.Context, c *cli.Context, u *ui, data client.Data, name string, before beforeAdding) (
	set render.Dataset, err error,
) {
	if err := rejectFlags(c, "--program", "images", "labels", "test-images", "test-labels", "csv", "npz", "safetensors",
		"libsvm", "ratings", "format", "size", "gray", "stratify", "group", "held-out"); err != nil {
		return set, err
	}
	file, entry, ok := programOperand(c.String("program"))
	if !ok {
		return set, badFlags(fmt.Sprintf("%q is no Python program", c.String("program")),
			"--program net.py, or --program net.py:NAME")
	}
	folder, err := os.MkdirTemp("", "disdel-rows-")
	if err != nil {
		return set, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // the rows are in the storage
	rows, err := programs(c).Rows(ctx, disdel.Python{File: file, Entry: entry}, folder)
	if err != nil {
		return set, err
	}
	from := dense.Arrays{Images: dataset.FileSource(rows.Images), Labels: dataset.FileSource(rows.Labels)}
	if rows.TestImages != "" {
		from.TestImages, from.TestLabels = dataset.FileSource(rows.TestImages), dataset.FileSource(rows.TestLabels)
	}
	in, err := arrays(c, from, name)
	if err == nil {
		err = before(u, &in)
	}
	if err != nil {
		return set, err
	}
	return data.AddDense(ctx, in, c.Bool("overwrite"))
}

func datasetGenerate(u *ui) *cli.Command {
	return &cli.Command{
		Name: "generate", Usage: "generate ratings or clicks from a seed, as sparse rows", ArgsUsage: "ratings|clicks NAME",
		Description: "   disdel dataset generate ratings films --like ml-1m\n" +
			"   disdel dataset generate clicks ads --rows 200000",
		Flags: generateFlags(),
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 2, 2); err != nil {
				return err
			}
			in, err := generatedRows(c)
			if err != nil {
				return err
			}
			return withClient(c, u, storage, func(ctx context.Context, at client.Client) error {
				set, err := at.Data.AddSparse(ctx, in, c.Bool("overwrite"))
				if err != nil {
					return err
				}
				return u.Show(set, func(w io.Writer) { render.PrintDataset(w, set) })
			})
		},
	}
}

func datasetRemove(u *ui) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "remove a data set", ArgsUsage: "NAME",
		Description: "A data set that a running job reads is not removed. On a terminal disdel asks first. " +
			"Off a terminal it removes\na data set that a queued or paused job needs only with --yes.\n\n" +
			"   disdel dataset remove letters",
		Flags: []cli.Flag{yesFlag},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, storage|records, func(ctx context.Context, at client.Client) error {
				if err := confirmDataset(ctx, u, at, c.Args().First(), c.Bool("yes")); err != nil {
					return err
				}
				removed, err := at.Data.Remove(ctx, c.Args().First())
				if err != nil {
					return err
				}
				return u.Show(removed, func(w io.Writer) { render.PrintRemovedDataset(w, removed) })
			})
		},
	}
}

// confirmDataset asks whether a data set is to be removed, and says what needs it. Off a terminal it returns Conflict
// if an unfinished job needs the data set, unless yes is true.
func confirmDataset(ctx context.Context, u *ui, at client.Client, name string, yes bool) error {
	if yes {
		return nil
	}
	job, err := jobOnDataset(ctx, at.Records, name)
	if err != nil {
		return err
	}
	if job != "" && !u.Interactive() {
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "remove data set", Msg: fmt.Sprintf("the unfinished job %s needs %s", job, name),
			Hint: "cancel the job first, or add --yes",
		}
	}
	question := []string{"Delete the data set " + name + "?"}
	if job != "" {
		question = append(question, fmt.Sprintf("The unfinished job %s needs it.", job))
	}
	models, _ := at.Models.List(ctx)
	for i := range models {
		if m := &models[i]; m.Data.Name == name {
			question = append(question, "The model "+m.Ref()+" was trained on it.")
			break
		}
	}
	return u.Confirm(strings.Join(question, " "), false)
}

// jobOnDataset is an unfinished job that reads a data set, "" if there is none.
func jobOnDataset(ctx context.Context, from client.Records, name string) (disdel.JobID, error) {
	for _, status := range service.UnfinishedStatuses {
		for r, err := range eachRecord(ctx, from, history.Query{Status: status, Limit: recordsPage}) {
			if err != nil {
				return "", err
			}
			names := []string{name, cmp.Or(r.Tenant, tenant.HomeOwner) + "/" + name}
			source := strings.TrimPrefix(r.Job.Data.Source, "dataset://")
			if slices.Contains(names, r.Data.Name) || slices.Contains(names, source) {
				return r.ID, nil
			}
		}
	}
	return "", nil
}

// datasetAddDescription is the help of `dataset add`.
func datasetAddDescription() string {
	return "Known names: " + strings.Join(dataset.Known(), ", ") +
		". They come from a package or their public address, checked.\n\n" +
		"--csv is a table: disdel detects types, header, label and missing values, and prints them. --images is NumPy\n" +
		"or IDX arrays, or a folder with a folder of PNG and JPEG files for each class. Bytes 0..255 become 0..1.\n" +
		"Arrays are [rows features], [rows height width] or [rows channels height width] (see --layout).\n\n" +
		"   disdel dataset add flowers --csv iris.csv --label species\n" +
		"   disdel dataset add pets --images pictures --size 32x32"
}

// datasetAddFlags are the flags of `dataset add`.
func datasetAddFlags() []cli.Flag {
	return slices.Concat(sparseFlags(), []cli.Flag{
		&cli.StringFlag{
			Name: "format",
			Usage: "`FORMAT` of --images: idx, npy, pictures, cifar10 or cifar100 (default: " +
				"detect)", Value: "idx",
		},
		&cli.StringFlag{
			Name: "images", Aliases: []string{"arrays"},
			Usage: "`FILE` of training images or features, plain or gzip, or the folder of pictures, " +
				"cifar10 or cifar100",
		},
		&cli.StringFlag{Name: "labels", Usage: "`FILE` of training labels; of pictures, a table of files and classes"},
		&cli.StringFlag{Name: "test-images", Usage: "`FILE` of held-out images, or the folder of held-out pictures"},
		&cli.StringFlag{Name: "test-labels", Usage: "`FILE` of held-out labels"},
		&cli.StringFlag{
			Name: "layout", Usage: "channel `LAYOUT` of images: chw or hwc",
			Value: string(dataset.CHW),
		},
		&cli.StringFlag{Name: "classes", Usage: "`NAMES` of the classes, in label order: cat,dog"},
		&cli.BoolFlag{Name: "overwrite", Usage: "replace a data set of this name"}, hubFlag,
	}, denseFlags())
}
