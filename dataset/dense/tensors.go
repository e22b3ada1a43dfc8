package dense

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/safetensors"
)

// Tensors is the tensors of a safetensors file, by the names that arrays usually have. It returns Invalid as Archive
// does, and for what is no such file.
func Tensors(file string) (a Arrays, err error) {
	in, err := os.Open(file)
	if err != nil {
		return a, &disdel.Error{Kind: disdel.Invalid, Op: "read " + file, Err: plain(err), Hint: "check the file's name"}
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return a, &disdel.Error{Kind: disdel.Invalid, Op: "read " + file, Err: plain(err)}
	}
	index, from, err := safetensors.Index(in, info.Size())
	if err != nil {
		return a, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + file, Msg: disdel.AsError(err).Msg,
			Hint: "--safetensors takes what safetensors.numpy.save_file wrote, of float32, uint8, int32 and int64; " +
				"of PyTorch, x.float() makes the first of half precision, and x.byte() the second of truth values",
		}
	}
	there := map[string]dataset.Source{}
	for _, t := range index.Tensors {
		there[t.Name] = dataset.Source{
			Name: file + ": " + t.Name,
			Open: func() (io.ReadCloser, error) { return openTensor(file, &t, from[t.Name]) },
		}
	}
	return named(file, there, "safetensors.numpy.save_file({\"x\": x, \"y\": y}, FILE)")
}

// asNumPy are the types of values as NumPy calls them.
var asNumPy = map[safetensors.DType]string{
	safetensors.F32: "<f4", safetensors.U8: "|u1", safetensors.I32: "<i4", safetensors.I64: "<i8",
}

// openTensor opens a tensor as the array that NumPy would have written of it.
func openTensor(file string, t *safetensors.Tensor, from int64) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err == nil {
		_, err = f.Seek(from, io.SeekStart)
	}
	if err != nil {
		if f != nil {
			f.Close() //nolint:errcheck // nothing was written
		}
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + file, Err: plain(err)}
	}
	sides := strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Shape), " ", ", "), "[]")
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s,)}\n", asNumPy[t.DType], sides)
	magic := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	size := int64(t.DType.Size())
	for _, v := range t.Shape {
		size *= int64(v)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(append(magic, head...)), io.LimitReader(f, size)), f}, nil
}
