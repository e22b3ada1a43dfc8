package dataset

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/files"
)

// Source opens the bytes of a file from the start, as often as needed: rows are read once to learn what they are, and
// once more to store them.
type Source struct {
	Name string // for messages
	Open func() (io.ReadCloser, error)
	Path string // of a file on this machine, plain or gzip; "": what Open reads is none
}

// FileSource is a file, plain or gzip, or an object of a bucket: s3://BUCKET/KEY, with the bucket's options after a
// question mark. Open returns Invalid for a missing file or a folder, and a bucket's own errors.
func FileSource(name string) Source {
	if !strings.HasPrefix(name, objectScheme) {
		return Source{Name: name, Path: name, Open: func() (io.ReadCloser, error) { return openFile(name) }}
	}
	place, _, _ := strings.Cut(name, "?")
	return Source{Name: place, Open: func() (io.ReadCloser, error) { return openObject(name) }}
}

// objectScheme starts the names of objects.
const objectScheme = "s3://"

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
	return unpacked(name, f)
}

// openObject opens an object of a bucket. A key with slashes is used unchanged.
func openObject(name string) (io.ReadCloser, error) {
	u, err := url.Parse(name)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + disdel.Redacted(name), Msg: "it names no object",
			Hint: "write s3://BUCKET/KEY?region=REGION",
		}
	}
	key := strings.TrimPrefix(u.Path, "/")
	u.Path = ""
	ctx := context.Background() // closing ends the reading
	bucket, err := blobs.Open(ctx, u.String())
	if err != nil {
		return nil, err
	}
	in, err := bucket.NewReader(ctx, key)
	if err != nil {
		return nil, blobs.Wrap(err, "read", objectScheme+u.Host+"/"+key)
	}
	return unpacked(name, in)
}

// unpacked unpacks gzip files.
func unpacked(name string, f io.ReadCloser) (io.ReadCloser, error) {
	in := bufio.NewReaderSize(f, 32<<10) // larger reads bypass the buffer
	if head, _ := in.Peek(2); !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return through{in, f}, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, notPacked(name, err)
	}
	return through{&unpacking{z, name}, f}, nil
}

// unpacking is a gzip file; damage is Invalid, as for any other unreadable file.
type unpacking struct {
	*gzip.Reader
	name string
}

func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = notPacked(u.name, err)
	}
	return n, err
}

// notPacked is the error of a damaged or truncated gzip file; other errors are unchanged.
func notPacked(name string, err error) error {
	if odd := flate.CorruptInputError(0); !errors.As(err, &odd) && !errors.Is(err, gzip.ErrHeader) &&
		!errors.Is(err, gzip.ErrChecksum) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + disdel.Redacted(name), Msg: "what is packed in it is damaged, or ends early",
		Err: err, Hint: "gzip -t FILE tells; fetch it again",
	}
}

// through is a reader with its file's Close.
type through struct {
	io.Reader
	io.Closer
}

// Limits of unpacked files. Pictures and labels rarely shrink by more than 20 to 1; a file of 1000 to 1 was made to
// fill memory.
const (
	maxExpanded = 4 << 30  // of any file
	maxRatio    = 100      // of a packed one
	freely      = 16 << 20 // with any ratio: sorted labels shrink a lot
)

func damaged(what, format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read " + what, Msg: fmt.Sprintf(format, args...)}
}

// expanded is the content of a file that may be gzip.
type expanded struct {
	r        io.Reader
	packed   *counted // nil: not packed
	fileSize int64    // size of the file, -1 if unknown
	done     int64
}

// expand reads a file, unpacked if it is gzip. Reading fails as Corrupt beyond 4 GiB, and for a packed file beyond 100
// bytes for each of its own.
func expand(r io.Reader) (*expanded, error) {
	raw := &counted{r: r}
	in := bufio.NewReader(raw)
	x := &expanded{r: in, fileSize: sizeOf(r)}
	head, err := in.Peek(2)
	if err != nil || head[0] != 0x1f || head[1] != 0x8b {
		return x, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, damaged("gzip", "%v", err)
	}
	x.r, x.packed = z, raw
	return x, nil
}

type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// sizeOf is what is left of r, -1 if unknown.
func sizeOf(r io.Reader) int64 {
	switch v := r.(type) {
	case interface{ Len() int }:
		return int64(v.Len())
	case *os.File:
		if info, err := v.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return -1
}

// bound is the most bytes that a packed file of so many bytes may unpack to.
func bound(packed int64) int64 { return min(maxExpanded, max(freely, maxRatio*packed)) }

// maximum is the most bytes that there can be, as far as it is known before reading.
func (x *expanded) maximum() int64 {
	switch {
	case x.fileSize < 0:
		return maxExpanded
	case x.packed == nil:
		return min(maxExpanded, x.fileSize)
	default:
		return bound(x.fileSize)
	}
}

func (x *expanded) Read(p []byte) (int, error) {
	n, err := x.r.Read(p)
	x.done += int64(n)
	limit := int64(maxExpanded)
	if x.packed != nil {
		limit = bound(x.packed.n)
	}
	if x.done > limit {
		return 0, tooPacked(limit)
	}
	if err != nil && !errors.Is(err, io.EOF) && disdel.KindOf(err) == disdel.Internal && x.packed != nil {
		return n, damaged("gzip", "%v", err)
	}
	return n, err
}

func tooPacked(limit int64) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "read file",
		Msg: fmt.Sprintf("it unpacks to more than %v, which is more than %d times its size or more than any file may have",
			disdel.Bytes(limit), maxRatio),
		Hint: "if it is what it should be, unpack it with gunzip and name the unpacked file",
	}
}

// read reads exactly size bytes, and checks that nothing follows them. Memory is allocated at once only if the file
// can have that much; else it grows with the content.
func (x *expanded) read(size int64) ([]byte, error) {
	if maximum := x.maximum(); size > maximum {
		if x.packed != nil && size <= maxExpanded {
			return nil, tooPacked(maximum)
		}
		return nil, damaged("file", "it has %d bytes in all, and its header asks for %d more", maximum, size)
	}
	first := size
	if x.fileSize < 0 {
		first = min(size, 1<<20)
	}
	data := make([]byte, first)
	for at := int64(0); ; {
		n, err := io.ReadFull(x, data[at:])
		at += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, damaged("file", "it ends after %d of %d bytes", at, size)
		case err != nil:
			return nil, err
		}
		if at == size {
			return data, x.end()
		}
		more := make([]byte, min(size, 2*at))
		copy(more, data)
		data = more
	}
}

// end tells whether the file ends here.
func (x *expanded) end() error {
	var more [1]byte
	switch n, err := io.ReadFull(x, more[:]); {
	case n > 0:
		return damaged("file", "more follows than its header says")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}
