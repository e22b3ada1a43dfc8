package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
)

// mostJobs is how many jobs a command takes.
const mostJobs = 1000

// withJobs calls act with the records of the named jobs.
func withJobs(c *cli.Context, u *ui, least int, act func(list []disdel.Record) error) error {
	if err := checkOperands(c, least, mostJobs); err != nil {
		return err
	}
	return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
		list, err := recordsOf(ctx, at.Records, c.Args().Slice())
		if err != nil {
			return err
		}
		return act(list)
	})
}

// recordsOf are the records of jobs, in the order of their names.
func recordsOf(ctx context.Context, from client.Records, names []string) ([]disdel.Record, error) {
	var out []disdel.Record
	for _, name := range names {
		r, err := from.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// compareCommand compares jobs side by side.
func compareCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "compare", Usage: "compare jobs side by side, and show their differences", ArgsUsage: "JOB JOB...",
		Description: "JOB is an id, the start of an id, a name or @last.\n\n   disdel compare small large",
		Action: func(c *cli.Context) error {
			return withJobs(c, u, 2, func(list []disdel.Record) error {
				compared := report.Compare(list)
				return u.Show(compared, compared.Print)
			})
		},
	}
}

// exportCommand writes jobs as other programs read them.
func exportCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "export jobs to CSV, Parquet, TensorBoard or MLflow", ArgsUsage: "JOB...",
		Description: "csv and parquet have a row for each round, jsonl a line for each job. " +
			"tensorboard and mlflow write\n" +
			"folders, for tensorboard --logdir FOLDER and mlflow ui --backend-store-uri FOLDER.\n\n" +
			"   disdel export small large --to csv > rounds.csv\n   disdel export @last --to tensorboard --file runs",
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name: "to", Usage: "`FORMAT`: csv, jsonl, parquet, tensorboard, mlflow or mlless", Value: string(export.CSV),
			},
		}, fileFlags("new `FOLDER` for tensorboard and mlflow, start of the names for mlless, else the file "+
			"(default: standard output)")...),
		Action: func(c *cli.Context) error {
			return withJobs(c, u, 1, func(list []disdel.Record) error { return exportJobs(c, u, list) })
		},
	}
}

// exported is what `export` prints with -o json if it writes files.
type exported struct {
	Jobs   int           `json:"jobs"`
	Format export.Format `json:"format"`
	Output string        `json:"output"`
}

// exportJobs writes jobs in the format that the flags choose.
func exportJobs(c *cli.Context, u *ui, list []disdel.Record) error {
	format, output := export.Format(c.String("to")), fileOf(c)
	switch {
	case format == toMLLess:
		return exportMLLess(c, u, output, list)
	case !format.Known():
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export jobs", Msg: fmt.Sprintf("there is no format %q", format),
			Hint: cmp.Or(foreignFormats[string(format)], "use csv, jsonl, parquet, tensorboard, mlflow or mlless"),
		}
	case format.Folder() && output == "":
		return missingFlag(c, "--file FOLDER")
	case output == "" && u.Format != "table":
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export jobs",
			Msg:  fmt.Sprintf("--to %s and -o %s are two formats for one output", format, u.Format),
			Hint: "leave -o out, or name a file with --file",
		}
	case output == "":
		return terminal.Unwritten(export.Text(u.Out, format, list))
	}
	write := export.Write
	if !format.Folder() {
		write = exportFile
	}
	if err := write(output, format, list); err != nil {
		return err
	}
	return u.Show(exported{len(list), format, output}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s\n", terminal.OneLine(output), terminal.Counted(len(list), "job"))
	})
}

// toMLLess is the format of MLLess, which has one job in three files.
const toMLLess = "mlless"

// foreignFormats are hints for formats of `export` that disdel does not write.
var foreignFormats = map[string]string{
	"json": "use --to jsonl; disdel jobs show JOB -o json prints one job",
	"yaml": "disdel jobs show JOB -o yaml prints one job",
	"xlsx": "use --to csv", "excel": "use --to csv, which Excel opens",
	"wandb": "disdel does not write to Weights & Biases; use --to csv, tensorboard or mlflow",
}

// exportMLLess writes one job as MLLess does. prefix is the start of the names of its files.
func exportMLLess(c *cli.Context, u *ui, prefix string, list []disdel.Record) error {
	switch {
	case prefix == "":
		return missingFlag(c, "--file PREFIX")
	case len(list) != 1:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export jobs", Msg: fmt.Sprintf("--to mlless writes one job, not %d", len(list)),
			Hint: "name one job",
		}
	}
	return writeMLLess(u, prefix, &list[0])
}

func writeMLLess(u *ui, prefix string, r *disdel.Record) error {
	doc, err := export.WriteMLLess(prefix, r)
	if err != nil {
		return err
	}
	return u.Show(doc, func(w io.Writer) { fmt.Fprintln(w, strings.Join(doc.Files, "\n")) })
}

// fileFlags are --file, and its old name --output. -o is the format of what a command prints.
func fileFlags(usage string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "file", Usage: usage},
		&cli.StringFlag{Name: "output", Hidden: true, Usage: "old name of --file"},
	}
}

// fileOf is the value of --file.
func fileOf(c *cli.Context) string { return cmp.Or(c.String("file"), c.String("output")) }

// exportFile writes jobs into a file that must not exist.
func exportFile(name string, format export.Format, list []disdel.Record) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export jobs", Msg: name, Err: err, Hint: "name a file that does not exist yet",
		}
	}
	if err := errors.Join(export.Text(f, format, list), f.Close()); err != nil {
		return errors.Join(terminal.Unwritten(err), os.Remove(name))
	}
	return nil
}
