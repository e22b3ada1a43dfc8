package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// Source opens the bytes of a file, from its beginning, as often as it is asked: who adds rows as a stream reads them
// once to learn what they are, and once more to store them.
type Source struct {
	Name string // for messages
	Open func() (io.ReadCloser, error)
}

// FileSource is a file, plain or gzip. Open returns Invalid for one that is not there or is none.
func FileSource(name string) Source {
	return Source{Name: name, Open: func() (io.ReadCloser, error) { return openFile(name) }}
}

// TextSource is a text in memory.
func TextSource(name, text string) Source {
	return Source{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

func openFile(name string) (io.ReadCloser, error) {
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
	in := bufio.NewReaderSize(f, 256<<10)
	if head, _ := in.Peek(2); !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return through{in, f}, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Err: err}
	}
	return through{z, f}, nil
}

// through is a file that is read through something.
type through struct {
	io.Reader
	io.Closer
}
