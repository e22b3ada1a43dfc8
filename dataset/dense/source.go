package dense

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// Source opens the bytes of a file, from its beginning, as often as it is asked.
type Source struct {
	Name string // for messages
	Open func() (io.ReadCloser, error)
}

// File is a file, plain or gzip.
func File(name string) Source {
	return Source{Name: name, Open: func() (io.ReadCloser, error) { return open(name) }}
}

// Text is a text in memory.
func Text(name, text string) Source {
	return Source{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader([]byte(text))), nil
	}}
}

const bufferBytes = 256 << 10

func open(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + name, Err: files.Plain(err), Hint: "check the file's name",
		}
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close() //nolint:errcheck // nothing was written
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Msg: "it is a folder", Hint: "name one file"}
	}
	in := bufio.NewReaderSize(f, bufferBytes)
	if head, _ := in.Peek(2); !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return reading{in, f}, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Err: err}
	}
	return reading{z, f}, nil
}

// reading is a file that is read through something.
type reading struct {
	io.Reader
	file io.Closer
}

func (r reading) Close() error { return r.file.Close() }

// base is the last part of a file's name, for titles.
func base(name string) string { return filepath.Base(name) }

// faults is everything that is wrong with a file, as far as anybody reads it.
type faults struct {
	file string
	list []disdel.Fault
	more int
}

// mostFaults is how many are told: who has more has one cause for them.
const mostFaults = 20

func (f *faults) add(fault disdel.Fault) {
	if len(f.list) >= mostFaults {
		f.more++
		return
	}
	f.list = append(f.list, fault)
}

// at adds a fault of a line; 0: of the file.
func (f *faults) at(line, column int, path, format string, args ...any) {
	f.add(disdel.Fault{Line: line, Column: column, Path: path, Msg: fmt.Sprintf(format, args...)})
}

// full says whether nothing more would be told.
func (f *faults) full() bool { return f.more > 0 }

// err is nil where nothing is wrong.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := f.list
	if f.more > 0 {
		list = append(list, disdel.Fault{Path: "more", Msg: fmt.Sprintf("%d faults or more besides", f.more)})
	}
	return &disdel.Faults{File: f.file, Faults: list}
}

// plain drops the path that a message names already.
func plain(err error) error { return files.Plain(err) }
