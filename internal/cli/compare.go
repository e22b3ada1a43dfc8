package cli

import (
	"cmp"
	"context"
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
func withJobs(c *cli.Context, u *ui, minimum int, act func(list []disdel.Record) error) error {
	if err := checkOperands(c, minimum, mostJobs); err != nil {
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
		Description: "JOB is an id, the start of an id, a name or @last. Losses and accuracies are those of the model " +
			"that a job\nkeeps: the best round with training.earlyStop, else the last. jobs and batch show the same " +
			"figures.\n\n   disdel compare small large",
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
			"tensorboard writes\n" +
			"a folder for tensorboard --logdir FOLDER. mlflow sends jobs to a running mlflow server.\n" +
			"MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD and MLFLOW_TRACKING_TOKEN sign in there.\n" +
			"With --file, mlflow writes a folder for mlflow ui --backend-store-uri FOLDER, up to MLflow 3.12.\n\n" +
			"   disdel export small large --to csv > rounds.csv\n   disdel export @last --to tensorboard --file runs\n" +
			"   disdel export @last --to mlflow --url http://127.0.0.1:5000",
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name: "to", Usage: "`FORMAT`: csv, jsonl, parquet, tensorboard, mlflow or mlless", Value: string(export.CSV),
			},
			&cli.StringFlag{
				Name: "url", Usage: "`URL` of a running MLflow server, for --to mlflow", EnvVars: []string{"MLFLOW_TRACKING_URI"},
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
	to, err := formatOf(c, "export jobs", string(export.CSV), string(export.JSONL), string(export.Parquet))
	if err != nil {
		return err
	}
	format, output := export.Format(to), fileOf(c)
	switch {
	case output == standardOutput && (format.Folder() || format == toMLLess):
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export jobs", Msg: fmt.Sprintf("%s is several files", format),
			Hint: "name a folder with --file; --to csv, jsonl and parquet go to standard output",
		}
	case format == toMLLess:
		return exportMLLess(c, u, output, list)
	case !format.Known():
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export jobs", Msg: fmt.Sprintf("there is no format %q", format),
			Hint: cmp.Or(foreignFormats[string(format)], "use csv, jsonl, parquet, tensorboard, mlflow or mlless"),
		}
	case format == export.MLflow && output == "" && c.String("url") != "":
		return sendToMLflow(c, u, list)
	case format == export.MLflow && output == "":
		return missingFlag(c, "--url http://HOST:PORT, or --file FOLDER")
	case format.Folder() && output == "":
		return missingFlag(c, "--file FOLDER")
	case format.Folder():
		err = export.Write(output, format, list)
	default:
		err = exportText(u, cmp.Or(output, standardOutput), format, list)
	}
	if err != nil || cmp.Or(output, standardOutput) == standardOutput {
		return err
	}
	return u.Show(exported{len(list), format, output}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s\n", terminal.OneLine(output), disdel.Counted(len(list), "job"))
	})
}

// sendToMLflow sends jobs to a running MLflow server.
func sendToMLflow(c *cli.Context, u *ui, list []disdel.Record) error {
	server := export.MLflowServer{
		URL: c.String("url"), User: os.Getenv("MLFLOW_TRACKING_USERNAME"),
		Password: os.Getenv("MLFLOW_TRACKING_PASSWORD"), Token: os.Getenv("MLFLOW_TRACKING_TOKEN"),
	}
	if err := server.Send(c.Context, list); err != nil {
		return err
	}
	at := disdel.Redacted(server.URL)
	return u.Show(exported{len(list), export.MLflow, at}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s in the experiment disdel\n", at, disdel.Counted(len(list), "job"))
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

// exportText writes jobs into a new file or to standard output.
func exportText(u *ui, file string, format export.Format, list []disdel.Record) error {
	if file == standardOutput {
		if err := twoFormats(u, "export jobs", "--to "+string(format)); err != nil {
			return err
		}
	}
	return newFile(u, "export jobs", file, func(w io.Writer) error { return export.Text(w, format, list) })
}
