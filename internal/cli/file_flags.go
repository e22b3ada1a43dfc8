package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// standardOutput is the file name that means standard output.
const standardOutput = "-"

// fileFlags are --file, and its old name --output. -o is the format of what a command prints.
func fileFlags(usage string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "file", Usage: usage},
		&cli.StringFlag{Name: "output", Hidden: true, Usage: "old name of --file"},
	}
}

// fileOf is the value of --file.
func fileOf(c *cli.Context) string { return cmp.Or(c.String("file"), c.String("output")) }

// formatOf is the value of --to. If that is not given, the extension of the file chooses among formats that are named
// as their extensions. It returns Invalid if the two are different formats.
func formatOf(c *cli.Context, op string, formats ...string) (string, error) {
	to, extension := c.String("to"), strings.ToLower(strings.TrimPrefix(filepath.Ext(fileOf(c)), "."))
	for _, format := range formats {
		switch {
		case extension != format || to == format:
		case !c.IsSet("to"):
			return format, nil
		default:
			return "", &disdel.Error{
				Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("--to %s and the file %s are two formats", to, fileOf(c)),
				Hint: "leave --to out, or give the file another name",
			}
		}
	}
	return to, nil
}

// twoFormats returns Invalid if data go to standard output in a format of their own and -o asks for another one.
func twoFormats(u *ui, op, flag string) error {
	if u.Format == "table" {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("%s and -o %s are two formats for one output", flag, u.Format),
		Hint: "leave -o out, or name a file with --file",
	}
}

// newFile writes to standard output, or to a file that must not exist. A file that cannot be completed is deleted.
func newFile(u *ui, op, name string, write func(io.Writer) error) error {
	if name == standardOutput {
		return terminal.Unwritten(write(u.Out))
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: op, Msg: name, Err: err,
			Hint: "name a file that does not exist yet, in a folder that does",
		}
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
