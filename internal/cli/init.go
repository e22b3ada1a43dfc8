package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/text"
	"github.com/disdel/disdel/examples"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

// initSources are the flags that name the data of `init`.
var initSources = []string{"csv", "images", "npz", "safetensors", "libsvm", "ratings", "text-files", "dataset"}

// notOfInit are the flags of `dataset add` that `init` does not have, or has with another meaning.
var notOfInit = []string{"overwrite", "program", "python"}

func initCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "write a job file for your own data", ArgsUsage: "[NAME]",
		Description: "Adds the data set NAME, and writes NAME.yaml: a job file with a network, a batch size and a\n" +
			"learning rate that suit the data. A comment above each line says what it means.\n" +
			"NAME comes from the file if you leave it out.\n\n" +
			"   disdel init --csv iris.csv --label species\n" +
			"   disdel init --images pictures               # a folder of pictures for each class\n" +
			"   disdel init digits --arrays x.npy --labels y.npy\n" +
			"   disdel init novel --text-files a.txt,b.txt  # a language model; a folder of folders: classes of texts\n" +
			"   disdel init --keras my.json --dataset digits\n" +
			"   disdel init --python --dataset digits       # with a small PyTorch program, net.py",
		Flags: initFlags(),
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 1); err != nil {
				return err
			}
			name, err := initName(c)
			if err != nil {
				return err
			}
			file := cmp.Or(c.String("file"), name+".yaml")
			if file == standardOutput {
				if err := twoFormats(u, "write job file", "--file -"); err != nil {
					return err
				}
			} else if _, err := os.Lstat(file); err == nil && !c.Bool("force") {
				return &disdel.Error{
					Kind: disdel.Conflict, Op: "write " + file, Msg: "the file exists already",
					Hint: "name another one with --file, or replace it and the data set with --force",
				}
			}
			return withClient(c, u, storage|records, func(ctx context.Context, at client.Client) error {
				return initialize(ctx, c, u, at, name, file)
			})
		},
	}
}

func initFlags() []cli.Flag {
	own := []cli.Flag{
		&cli.StringFlag{Name: "dataset", Usage: "`NAME` of a data set that is there already"},
		&cli.StringFlag{Name: "keras", TakesFile: true, Usage: "`FILE` of a network that Keras wrote (model.to_json())"},
		&cli.BoolFlag{Name: "python", Usage: "write a small PyTorch program too: net.py beside the job file"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the data set and the job, like the operand"},
		&cli.StringFlag{Name: "file", Usage: "job `FILE` to write (default: NAME.yaml)"},
		&cli.BoolFlag{
			Name: "force", Aliases: []string{"overwrite"}, Usage: "replace the job file, and other data of the same name",
		},
	}
	for _, f := range datasetAddFlags() {
		if !slices.Contains(notOfInit, f.Names()[0]) {
			own = append(own, f)
		}
	}
	return own
}

// notInNames is what a name of a data set does not have.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// initName is the name of the data set and of the job. It returns Invalid unless the flags name one source of data.
func initName(c *cli.Context) (string, error) {
	flags := slices.DeleteFunc(slices.Clone(initSources), func(f string) bool { return !c.IsSet(f) })
	bad := func(msg string) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "write job file", Msg: msg,
			Hint: "give one of --csv FILE, --images FOLDER, --arrays FILE --labels FILE, --npz FILE, --safetensors FILE, " +
				"--libsvm FILE, --ratings FILE, --text-files FILES and --dataset NAME",
		}
	}
	switch {
	case len(flags) == 0 && (c.IsSet("keras") || c.Bool("python")):
		return "", bad("a network needs data to learn from")
	case len(flags) == 0 && c.NArg() == 1:
		return "", bad("there is no data to write a job file for; " + c.Args().First() + " is only the name of the job")
	case len(flags) == 0:
		return "", bad("there is no data to write a job file for")
	case c.IsSet("keras") && c.Bool("python"):
		return "", bad("--keras and --python are two networks")
	case len(flags) > 1:
		return "", bad("--" + flags[0] + " and --" + flags[1] + " are two sources of data")
	case c.NArg() == 1 && c.IsSet("name"):
		return "", bad("--name and the operand are two names")
	case c.NArg() == 1 || c.IsSet("name"):
		return cmp.Or(c.Args().First(), c.String("name")), nil
	}
	name := filepath.Base(c.String(flags[0]))
	if extension := filepath.Ext(name); len(extension) > 1 && flags[0] != "dataset" {
		name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), filepath.Ext(strings.TrimSuffix(name, ".gz")))
	}
	return cmp.Or(jobName(name), "data"), nil
}

// jobName makes a name of a job out of a file's name.
func jobName(file string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(file), "-"), "-")
	return strings.Trim(name[:min(len(name), 40)], "-")
}

// initialized is a job file that was written.
type initialized struct {
	File    string         `json:"file"`
	Dataset render.Dataset `json:"dataset"`
}

// initialize adds the data set, writes a job file that passes its check, and says how to go on.
func initialize(ctx context.Context, c *cli.Context, u *ui, at client.Client, name, file string) error {
	set, tokens, err := initData(ctx, c, u, at.Data, name)
	if err != nil {
		return err
	}
	d, err := draft(ctx, c, at.Data, name, file, &set, tokens)
	if err != nil {
		return err
	}
	remove, err := writeProgram(c, file, d)
	if err != nil {
		return err
	}
	page := d.Text()
	if err := checkDraft(ctx, c, u, at.Jobs, file, page); err != nil {
		remove()
		return err
	}
	if file == standardOutput {
		for _, w := range set.Warnings {
			u.Say("warning: %s", w)
		}
		_, err := u.Out.Write(page)
		return terminal.Unwritten(err)
	}
	if err := os.WriteFile(file, page, 0o666); err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "write " + file, Err: files.Plain(err), Hint: "choose another --file"}
	}
	for _, w := range set.Warnings {
		u.Say("warning: %s", w)
	}
	if err := u.Show(initialized{file, set}, func(w io.Writer) {
		render.PrintAddedDataset(w, set)
		fmt.Fprintf(w, "\nwrote     %s\n", terminal.OneLine(file))
		if d.Python != "" {
			fmt.Fprintf(w, "          %s\n", terminal.OneLine(programBeside(file)))
		}
	}); err != nil {
		return err
	}
	u.Say("next:  %s", strings.Join([]string{u.Command("estimate", file), u.Command("submit", file)}, "\n       "))
	return nil
}

// initData is the data set of the job: one that is there, or one that is added. tokens is how many the tokenizer of
// added texts with classes knows, 0 for other rows.
func initData(ctx context.Context, c *cli.Context, u *ui, data client.Data, name string) (
	set render.Dataset, tokens int, err error,
) {
	if known := c.String("dataset"); known != "" {
		set, err := data.Get(ctx, known)
		if disdel.KindOf(err) == disdel.NotFound && slices.Contains(dataset.Known(), known) {
			set, err = data.AddKnown(ctx, known, false)
		}
		return set, 0, err
	}
	set, err = addFromFlags(ctx, c, u, data, name, func(_ *ui, in *dataset.DenseInput) error {
		if in.Tokenizer == nil || in.NextToken {
			return nil
		}
		made, err := text.Read(bytes.NewReader(in.Tokenizer))
		if err == nil {
			tokens = made.Size()
		}
		return err
	})
	return set, tokens, err
}

// programFile is the program that init --python writes.
const programFile = "net.py"

func programBeside(job string) string { return filepath.Join(filepath.Dir(job), programFile) }

// writeProgram writes the program of init --python beside the job file. remove removes it again. It returns Conflict if
// there is such a file.
func writeProgram(c *cli.Context, job string, d jobfile.Draft) (remove func(), err error) {
	if d.Python == "" {
		return func() {}, nil
	}
	if d.Sparse != nil || len(d.Targets) > 0 || d.NextToken {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "write program",
			Msg:  "programs take dense rows with classes, and " + d.Dataset + " has other rows",
			Hint: "leave out --python",
		}
	}
	example := examples.PythonImages
	if d.Table() {
		example = examples.PythonTable
	}
	text, err := examples.Python(example)
	if err != nil {
		return nil, err
	}
	file := programBeside(job)
	if _, err := os.Lstat(file); err == nil && !c.Bool("force") {
		return nil, &disdel.Error{
			Kind: disdel.Conflict, Op: "write " + file, Msg: "the file exists already",
			Hint: "write the job file into another folder with --file, or replace the files with --force",
		}
	}
	if err := os.WriteFile(file, text, 0o666); err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "write " + file, Err: files.Plain(err), Hint: "choose another --file"}
	}
	return func() { os.Remove(file) }, nil
}

// draft is what the job file is written for.
func draft(ctx context.Context, c *cli.Context, data client.Data, name, file string, set *render.Dataset, tokens int) (
	jobfile.Draft, error,
) {
	d := jobfile.Draft{
		Name: name, Dataset: set.Name, Sample: set.Sample, Classes: set.Classes, Rows: set.Train.Rows,
		HeldOut: set.Test.Rows, NextToken: set.NextToken, Sparse: set.Sparse,
		Targets: set.Targets, Tokens: tokens,
	}
	if set.Tokenizer != "" && tokens == 0 && !set.NextToken && !c.IsSet("keras") {
		return d, &disdel.Error{
			Kind: disdel.Invalid, Op: "write job file",
			Msg:  "init knows the tokens only of texts that it adds itself, and " + set.Name + " is there already",
			Hint: "add them again under another name, or start from the example bert-classify",
		}
	}
	if network := c.String("keras"); network != "" {
		var err error
		if d.Keras, err = besideJob(file, network); err != nil {
			return d, err
		}
	}
	if c.Bool("python") {
		d.Python = programFile
	}
	if d.Sparse != nil && !d.Sparse.Ratings() {
		var err error
		if d.Length, err = rowLength(ctx, data, set); err != nil {
			return d, err
		}
	}
	return d, nil
}

// lookedAt is the number of rows that init measures.
const lookedAt = 64

// rowLength is the mean squared length of the first held-out rows of a data set of sparse rows. If no row is held out,
// it is that of rows whose values are 1.
func rowLength(ctx context.Context, data client.Data, set *render.Dataset) (float64, error) {
	heldOut := set.Info(disdel.Split{Train: 0.8, Validation: 0.2}).HeldOut
	if heldOut == 0 {
		return float64(set.Sparse.Entries) / float64(set.Train.Rows), nil
	}
	rows := make([]int, min(heldOut, lookedAt))
	for i := range rows {
		rows[i] = i
	}
	sample, err := data.Sample(ctx, set.Name, rows, disdel.DefaultSeed)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, row := range sample.Rows {
		for i := range row.Index {
			v := 1.0
			if row.Value != nil {
				v = float64(row.Value[i])
			}
			sum += v * v
		}
	}
	return sum / float64(len(rows)), nil
}

// besideJob is the name of a file as a job file in its folder, or elsewhere, would write it.
func besideJob(job, file string) (string, error) {
	if filepath.IsAbs(file) {
		return file, nil
	}
	if filepath.IsAbs(job) {
		return filepath.Abs(file)
	}
	return filepath.Rel(filepath.Dir(job), file)
}

// checkDraft checks a job file as `validate` does.
func checkDraft(ctx context.Context, c *cli.Context, u *ui, jobs client.Jobs, file string, text []byte) error {
	parsed, err := jobfile.ParseWith(file, text, nil, filesBeside(file))
	if err != nil {
		return err
	}
	src := source{text: text, file: parsed}
	return src.showFaults(u, jobs.Check(ctx, src.request(c)))
}

func exampleCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "example", Usage: "list example job files, or print one", ArgsUsage: "[NAME]",
		Description: "Each example names in its first lines the commands that run it.\n\n" +
			"   disdel example\n" +
			"   disdel example lenet-fashion > job.yaml\n   disdel submit job.yaml",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 1); err != nil {
				return err
			}
			if c.NArg() == 0 {
				return u.Show(examples.List(), printExamples)
			}
			e, err := examples.Get(c.Args().First())
			if err != nil {
				return err
			}
			return u.ShowFile(e, func(w io.Writer) { fmt.Fprint(w, e.File) })
		},
	}
}

func printExamples(w io.Writer) {
	rows := [][]string{{"NAME", "WHAT IT DOES"}}
	for _, e := range examples.List() {
		rows = append(rows, []string{e.Name, e.Title})
	}
	terminal.Table(w, rows...)
}
