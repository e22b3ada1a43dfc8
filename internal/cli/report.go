package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
)

func reportCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "report", Usage: "explain how a job went, and how a failed job will pass", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of an id, a name or @last. --html writes one file with " +
			"plots.\n\n" +
			"   disdel report @last\n" +
			"   disdel report @last --html report.html\n" +
			"   disdel report @last --spec > job.yaml && disdel submit job.yaml",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT` of the output: text, md or html"},
			&cli.StringFlag{Name: "html", Usage: "write an HTML page with plots to `FILE`"},
			&cli.BoolFlag{Name: "spec", Usage: "print the job file, changed so that a failed job passes"},
		},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			if err := reportFlags(c, u); err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				rec, err := at.Records.Get(ctx, c.Args().First())
				if err != nil {
					return err
				}
				shortenFile(&rec)
				return showReport(u, c, report.New(&rec, time.Now(), placeOfJob(c, &rec)...))
			})
		},
	}
}

func reportFlags(c *cli.Context, u *ui) error {
	switch f := c.String("format"); f {
	case "text", "md", "html":
	default:
		return &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("there is no report format %q", f),
			Hint: "use --format text, --format md or --format html",
		}
	}
	if u.Format != "table" && c.IsSet("format") {
		return &disdel.Error{
			Kind: disdel.Invalid, Msg: "--format and -o " + u.Format + " are two formats for one output",
			Hint: "leave one of them out",
		}
	}
	if c.Bool("spec") && (c.IsSet("format") || c.IsSet("html")) {
		return &disdel.Error{
			Kind: disdel.Invalid, Msg: "--spec prints the job's file and nothing else",
			Hint: "leave out --format and --html",
		}
	}
	return nil
}

// showReport prints a report in the chosen format.
func showReport(u *ui, c *cli.Context, r *report.Report) error {
	if c.Bool("spec") {
		return changedSpec(u, r)
	}
	spec, err := jobfile.Print(r.Job)
	if err != nil {
		spec = nil // a record of another version may hold what no job file can; the rest of it can be told
	}
	if name := c.String("html"); name != "" {
		return writePage(u, name, r, spec)
	}
	switch c.String("format") {
	case "html":
		return terminal.Unwritten(r.HTML(u.Out, spec))
	case "md":
		return terminal.Unwritten(r.Markdown(u.Out, spec))
	default:
		var failed error
		err := u.Show(r, func(w io.Writer) { failed = r.Text(w) })
		if err == nil {
			err = failed
		}
		return err
	}
}

// writePage writes a report's page.
func writePage(u *ui, name string, r *report.Report, spec []byte) error {
	if name == standardOutput {
		return terminal.Unwritten(r.HTML(u.Out, spec))
	}
	if err := replaceFile(name, func(w io.Writer) error { return r.HTML(w, spec) }); err != nil {
		return err
	}
	u.Say("report of %s in %s", r.ID, terminal.Clean(name))
	return u.Show(pageDocument{r.ID, name}, func(io.Writer) {})
}

// pageDocument is what --html says with -o json.
type pageDocument struct {
	Job  disdel.JobID `json:"job"`
	File string       `json:"file"`
}

// changedSpec prints the job file with the changes that the report advises. Comments name the changes.
func changedSpec(u *ui, r *report.Report) error {
	text, err := jobfile.Print(r.Job)
	if err != nil {
		return err
	}
	var sets []string
	if r.Advice != nil {
		sets = r.Advice.Sets
		if len(r.Advice.Commands) == 0 {
			u.Say("disdel: no change is known that lets it pass: %s", terminal.Clean(r.Advice.Why))
		}
	}
	if len(sets) > 0 {
		file, err := jobfile.Parse("the job of "+string(r.ID), text, sets)
		if err != nil {
			return err
		}
		if text, err = jobfile.Print(file.Job); err != nil {
			return err
		}
	}
	var tree any // a job file in JSON is one that submit reads too
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return err
	}
	return u.ShowFile(tree, func(w io.Writer) {
		fmt.Fprintf(w, "# %s\n", strings.Join(strings.Fields(terminal.Clean(string(r.ID))), " "))
		for _, s := range sets {
			fmt.Fprintf(w, "# changed: %s\n", terminal.Clean(s))
		}
		w.Write(text) //nolint:errcheck // the page remembers
	})
}

// replaceFile writes a file, also over an existing one.
func replaceFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err == nil {
		if err = write(f); err == nil {
			err = f.Close()
		} else {
			f.Close() // the first error counts
		}
	}
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "write report", Msg: name, Err: files.Plain(err),
			Hint: "name a file in a folder that is there",
		}
	}
	return nil
}
