package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/terminal"
)

// exported is what `export` says with -o json where it writes files.
type exported struct {
	Jobs   int           `json:"jobs"`
	Format export.Format `json:"format"`
	Output string        `json:"output"`
}

// exportJobs writes jobs as the flags of `export` say.
func exportJobs(c *cli.Context, u *terminal.UI, list []disdel.Record) error {
	format, output := export.Format(c.String("to")), c.String("output")
	switch {
	case !format.Known():
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export jobs", Msg: fmt.Sprintf("there is no format %q", format),
			Hint: "use csv, jsonl, parquet, tensorboard or mlflow",
		}
	case format.Folder() && output == "":
		return NeedsFlag(c, "--output FOLDER")
	case output == "" && u.Format != "table":
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export jobs",
			Msg:  fmt.Sprintf("--to %s and -o %s are two formats for one output", format, u.Format),
			Hint: "leave -o out, or name a file with --output",
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
