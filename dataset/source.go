package dataset

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/files"
)

// Source opens the bytes of a file, from its beginning, as often as it is asked: who adds rows as a stream reads them
// once to learn what they are, and once more to store them.
type Source struct {
	Name string // for messages
	Open func() (io.ReadCloser, error)
}

// FileSource is a file, plain or gzip, or an object of a bucket: s3://BUCKET/KEY, with the options of the bucket
// behind a question mark. Open returns Invalid for a file that is not there or is none, and what a bucket says.
func FileSource(name string) Source {
	if !strings.HasPrefix(name, objectScheme) {
		return Source{Name: name, Open: func() (io.ReadCloser, error) { return openFile(name) }}
	}
	place, _, _ := strings.Cut(name, "?")
	return Source{Name: place, Open: func() (io.ReadCloser, error) { return openObject(name) }}
}

// objectScheme begins the names of objects.
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

// openObject opens an object of a bucket. A bucket whose key is one with slashes is asked for it as it is.
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
	ctx := context.Background() // who reads no more closes it
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

// unpacked reads through gzip where a file is packed.
func unpacked(name string, f io.ReadCloser) (io.ReadCloser, error) {
	in := bufio.NewReaderSize(f, 32<<10) // who reads more at once reads the file itself
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

// unpacking is a packed file, of which what is damaged is invalid as any other file is that cannot be read.
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

// notPacked is the error of a packed file that is damaged, or ends early, and any other error as it is.
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

// through is a file that is read through something.
type through struct {
	io.Reader
	io.Closer
}
