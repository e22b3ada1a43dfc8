package program

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/disdel/disdel"
)

// exportWeights is the hint for a model that is not written as ONNX.
const exportWeights = "export its weights: --to safetensors"

// ExportONNX has a Python program write its network with trained weights as ONNX, by torch.onnx.export. The graph gives
// the answers of infer. archive has the program's files, and weights is a safetensors file of all its arrays. The
// program runs as Describe runs it, by o.Interpreter or the one that described it; o needs nothing else. ExportONNX
// returns the errors of Describe, and Invalid for a model that is none of PyTorch and for operators that PyTorch does
// not write.
func ExportONNX(ctx context.Context, w io.Writer, o Options, n disdel.CustomNetwork, archive, weights []byte) error {
	files, err := os.MkdirTemp("", "disdel-export-")
	if err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "write ONNX", Err: err}
	}
	defer os.RemoveAll(files) //nolint:errcheck // what stays is in the temp folder
	p, code := n.Python, filepath.Join(files, "code")
	if err := unpack(archive, code); err != nil {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "unpack program", Err: err}
	}
	o.Python, o.Dir = disdel.Python{File: p.File, Entry: p.Entry, Arguments: p.Arguments}, code
	o.Interpreter = cmp.Or(o.Interpreter, p.Interpreter)
	d := description{Options: o}
	if err := d.prepare(); err != nil {
		return err
	}
	defer os.RemoveAll(d.temp) //nolint:errcheck // the same
	i, err := d.find(ctx)
	if err != nil {
		return err
	}
	from, to := filepath.Join(files, "weights"), filepath.Join(files, "network.onnx")
	if err := os.WriteFile(from, weights, 0o600); err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "write ONNX", Err: err}
	}
	_, err = d.ask(ctx, i, map[string]any{
		"folder": code, "file": p.File, "entry": p.Entry, "arguments": p.Arguments, "input": n.Input,
		"classes": n.Classes, "loss": p.Loss, "threads": 1, "timeoutS": d.Timeout.Seconds(), "weights": from, "onnx": to,
	})
	if err != nil {
		return err
	}
	f, err := os.Open(to)
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: d.op(), Msg: "PyTorch wrote no file of ONNX", Err: err}
	}
	defer f.Close() //nolint:errcheck // it was only read
	_, err = io.Copy(w, f)
	return err
}
