package commandline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/terminal"
)

// ModelExportCommand writes a model's weights.
func ModelExportCommand(u *terminal.UI, from Reading) *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write a trained model's weights as safetensors", ArgsUsage: "NAME",
		Description: "NAME is a trained model: NAME for its newest version, NAME:vN for one. Names and layouts are " +
			"PyTorch's\n" +
			"   (docs/interchange.md).\n\n   disdel model export digits-cnn --output digits.safetensors",
		Flags: []cli.Flag{&cli.StringFlag{Name: "output", Usage: "`FILE` to write, which must not exist"}},
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			if c.String("output") == "" {
				return NeedsFlag(c, "--output FILE")
			}
			return from(c, func(ctx context.Context, at client.Client) error {
				return exportModel(ctx, u, at.Models, c.Args().First(), c.String("output"))
			})
		},
	}
}

// exportDocument is what `model export` says with -o json.
type exportDocument struct {
	Model    string       `json:"model"`
	File     string       `json:"file"`
	Size     disdel.Bytes `json:"sizeBytes"`
	Checksum string       `json:"checksum"`
}

func exportModel(ctx context.Context, u *terminal.UI, models client.Models, name, output string) error {
	m, err := models.Get(ctx, name)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export model", Msg: output, Err: err,
			Hint: "name a file that does not exist yet, in a folder that does",
		}
	}
	err = models.CopyWeights(ctx, f, &m)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(output))
	}
	doc := exportDocument{Model: m.Ref(), File: output, Size: m.Size, Checksum: m.Checksum}
	return u.Show(doc, func(w io.Writer) { fmt.Fprintf(w, "%s: %v in %s\n", doc.Model, doc.Size, doc.File) })
}
