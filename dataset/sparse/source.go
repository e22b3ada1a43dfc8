package sparse

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// Source opens the text of a data set, from its beginning, as often as it is asked.
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

func open(name string) (io.ReadCloser, error) {
	fail := func(hint string, err error) (io.ReadCloser, error) {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Hint: hint, Err: err}
	}
	f, err := os.Open(name)
	if err != nil {
		return fail("check the file's name", files.Plain(err))
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
		return fail("", err)
	}
	return reading{z, f}, nil
}

const bufferBytes = 256 << 10

// reading is a file that is read through something.
type reading struct {
	io.Reader
	file *os.File
}

func (r reading) Close() error { return r.file.Close() }

// longestLine is the longest line of a file of rows.
const longestLine = 16 << 20

// lines calls f with every line of the source that is not empty, and its number from 1. The line is good during the
// call alone.
func (s Source) lines(f func(number int, line []byte) error) error {
	in, err := s.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, bufferBytes), longestLine)
	number := 0
	for scan.Scan() {
		number++
		line := bytes.TrimRight(scan.Bytes(), "\r")
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := f(number, line); err != nil {
			return err
		}
	}
	if err := scan.Err(); err != nil {
		return &disdel.Error{
			Kind: disdel.Corrupt, Op: "read " + s.Name, Msg: fmt.Sprintf("after line %d", number), Err: err,
		}
	}
	return nil
}

// bad is the error of a line that cannot be read.
func (s Source) bad(line int, format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + s.Name, Msg: fmt.Sprintf("line %d: %s", line, fmt.Sprintf(format, args...)),
	}
}
