package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/terminal"
)

// The formats of `model export`.
const (
	toSafetensors = "safetensors"
	toONNX        = "onnx"
)

// ModelExportCommand writes a model for other programs.
func ModelExportCommand(u *terminal.UI, from Reading) *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write a trained model as safetensors (weights) or ONNX", ArgsUsage: "NAME",
		Description: "NAME is the newest version of a trained model that learned, NAME:vN one version. The names and\n" +
			"layouts of the weights are PyTorch's (docs/reference/weights.md).\n\n" +
			"   disdel model export digits-cnn --output digits.safetensors\n" +
			"   disdel model export digits-cnn --to onnx --output digits.onnx",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Value: toSafetensors, Usage: "`FORMAT` of the file: safetensors or onnx"},
			&cli.StringFlag{Name: "output", Usage: "`FILE` to write, which must not exist"},
		},
		Action: func(c *cli.Context) error {
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			doc := exportDocument{Format: c.String("to"), File: c.String("output")}
			switch {
			case doc.Format != toSafetensors && doc.Format != toONNX:
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "export model", Msg: fmt.Sprintf("there is no format %q", doc.Format),
					Hint: "use safetensors or onnx",
				}
			case doc.File == "":
				return NeedsFlag(c, "--output FILE")
			}
			return from(c, func(ctx context.Context, at client.Client) error {
				m, err := at.Models.Get(ctx, c.Args().First())
				if err == nil {
					err = doc.export(ctx, at.Models, &m)
				}
				if err != nil {
					return err
				}
				return u.Show(doc, func(w io.Writer) { fmt.Fprintf(w, "%s: %v in %s\n", doc.Model, doc.Size, doc.File) })
			})
		},
	}
}

// exportDocument is what `model export` says with -o json.
type exportDocument struct {
	Model    string       `json:"model"`
	Format   string       `json:"format"`
	File     string       `json:"file"`
	Size     disdel.Bytes `json:"sizeBytes"`
	Checksum string       `json:"checksum"`
}

// export writes the file, or nothing.
func (d *exportDocument) export(ctx context.Context, models client.Models, m *modelstore.Model) error {
	f, err := os.OpenFile(d.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export model", Msg: d.File, Err: err,
			Hint: "name a file that does not exist yet, in a folder that does",
		}
	}
	out := &measured{to: f, sum: sha256.New()}
	if d.Format == toONNX {
		err = writeONNX(ctx, out, models, m)
	} else {
		err = models.CopyWeights(ctx, out, m)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(d.File))
	}
	d.Model, d.Size, d.Checksum = m.Ref(), out.size, "sha256:"+hex.EncodeToString(out.sum.Sum(nil))
	return nil
}

// measured counts what is written, and sums it up.
type measured struct {
	to   io.Writer
	sum  hash.Hash
	size disdel.Bytes
}

func (m *measured) Write(p []byte) (int, error) {
	n, err := m.to.Write(p)
	m.sum.Write(p[:n])
	m.size += disdel.Bytes(n)
	return n, err
}

// writeONNX writes the network and its weights, with what an answer needs to be understood.
func writeONNX(ctx context.Context, w io.Writer, models client.Models, m *modelstore.Model) error {
	var weights bytes.Buffer
	if err := models.CopyWeights(ctx, &weights, m); err != nil {
		return err
	}
	notes := map[string]string{"model": m.Ref(), "data": m.Data.Name, "checksum": m.Checksum}
	if len(m.Labels) > 0 {
		labels, err := json.Marshal(m.Labels)
		if err != nil {
			return err
		}
		notes["classes"] = string(labels)
	}
	return export.ConvertONNX(w, m.Network, weights.Bytes(), notes)
}
