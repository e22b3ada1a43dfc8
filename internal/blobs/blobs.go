// Package blobs opens the buckets of data sets and models: file:// folders, mem:// for tests, and s3:// in production.
// Packages dataset and modelstore decide what lies there under which keys.
//
// Keys are relative paths with slashes. Invariant: the content of a key is replaced completely or not at all; readers
// get the old or the new content.
package blobs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/disdel/disdel"
)

// Object is a key of a bucket, how many bytes it has, and when they were written.
type Object struct {
	Key     string
	Size    int64
	Written time.Time
}

// Reader reads one key's content of Size bytes.
type Reader interface {
	io.ReadCloser
	Size() int64
}

// Bucket is a place of keys and contents. It is safe for concurrent use. Its errors are what Wrap understands.
type Bucket interface {
	// NewReader begins to read a key.
	NewReader(ctx context.Context, key string) (Reader, error)
	// NewWriter begins to write a key, which has its new content when Close returns nil. Where ctx has ended by then,
	// nothing is written.
	NewWriter(ctx context.Context, key string) (io.WriteCloser, error)
	// Create writes a key that must not exist yet: of several that write it at once one succeeds, and the others get
	// Conflict from Wrap.
	Create(ctx context.Context, key string, data []byte) error
	// Size is how many bytes a key has.
	Size(ctx context.Context, key string) (int64, error)
	// Delete removes a key. Of one that is not there it returns NotFound or nothing.
	Delete(ctx context.Context, key string) error
	// List goes through the keys that begin with prefix. It ends with the first error.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Folders lists what stands between prefix and the next slash of the keys that begin with prefix and have one,
	// each once.
	Folders(ctx context.Context, prefix string) ([]string, error)
}

// Open opens the bucket at a blob URL; a file:// folder is created if it is missing. With the option prefix every key
// begins with it. It returns Invalid for a URL that is none, and Unavailable for a bucket that cannot be opened.
func Open(ctx context.Context, address string) (Bucket, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "open bucket", Msg: "\"" + disdel.Redacted(address) + "\" is no blob URL",
			Hint: addressHint,
		}
	}
	b, err := open(ctx, u)
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "open bucket", Msg: disdel.Redacted(address), Err: withoutPassword(err, u),
			Hint: "check that the folder is writable, or the bucket and its credentials",
		}
	}
	if wrap, ok := ctx.Value(wrapperKey{}).(Wrapper); ok {
		b = wrap(address, b)
	}
	return b, nil
}

// Wrapper returns a bucket that stands for the one at an address.
type Wrapper = func(address string, b Bucket) Bucket

type wrapperKey struct{}

// WithWrapper returns a context in which Open wraps buckets. Simulations use it: their buckets fail as they are told.
func WithWrapper(ctx context.Context, wrap Wrapper) context.Context {
	return context.WithValue(ctx, wrapperKey{}, wrap)
}

const addressHint = "write file:///folder or s3://bucket?region=REGION"

func open(ctx context.Context, u *url.URL) (Bucket, error) {
	switch u.Scheme {
	case "file":
		return openFolder(folderOf(u))
	case "mem":
		return newMemory(), nil
	case "s3":
		return openS3(ctx, u)
	default:
		return nil, errors.New("there are no buckets of " + u.Scheme + "://; " + addressHint)
	}
}

// withoutPassword is a cause that does not repeat who signs in at an address.
func withoutPassword(err error, u *url.URL) error {
	if u.User == nil {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), u.User.String(), "xxxxx"))
}

// ReadAll reads a key into memory of its size: what grows on the way takes twice as much.
func ReadAll(ctx context.Context, b Bucket, key string) ([]byte, error) {
	r, err := b.NewReader(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, r.Size())
	if _, err = io.ReadFull(r, data); err == nil {
		err = ended(r)
	}
	return data, err
}

// ended reads the end of what was read whole: it is there that S3's checksum is held against the content.
func ended(r io.Reader) error {
	switch _, err := io.ReadFull(r, make([]byte, 1)); {
	case err == nil:
		return errors.New("there is more of it than was said")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// ReadUpTo reads a key, but not more than maximum bytes and one.
func ReadUpTo(ctx context.Context, b Bucket, key string, maximum int64) ([]byte, error) {
	r, err := b.NewReader(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maximum+1))
}

// WriteAll replaces a key's content.
func WriteAll(ctx context.Context, b Bucket, key string, data []byte) error {
	return Write(ctx, b, key, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	})
}

// Write replaces a key's content by what write writes, which nobody has to hold at once. It returns what write does;
// then nothing of it is there.
func Write(ctx context.Context, b Bucket, key string, write func(w io.Writer) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w, err := b.NewWriter(ctx, key)
	if err != nil {
		return err
	}
	if err = write(w); err != nil {
		stop()    // nothing of it shall be there
		w.Close() //nolint:errcheck // that it was given up says nothing
		return err
	}
	return w.Close()
}

// Wrap turns a bucket's error about key into an Error: NotFound, Denied, Conflict (the key exists already), Canceled,
// NoSpace or Unavailable.
func Wrap(err error, op, key string) error {
	if err == nil {
		return nil
	}
	e := &disdel.Error{Kind: disdel.Unavailable, Op: op, Msg: key, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Kind = disdel.NotFound
	case errors.Is(err, fs.ErrPermission):
		e.Kind, e.Hint = disdel.Denied,
			"give your user access to the file, or name your own folder; buckets need credentials for it"
	case errors.Is(err, fs.ErrExist):
		e.Kind = disdel.Conflict
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		e.Kind, e.Hint = disdel.NoSpace,
			"the disk is full: free some space, or name a folder on another disk with --home or --storage"
	case errors.Is(err, context.Canceled): // last: what failed has others give up
		e.Kind = disdel.Canceled
	}
	return e
}

// Folder is the folder that the keys behind a file:// URL are in, "" for every other bucket.
func Folder(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return folderOf(u)
}

func folderOf(u *url.URL) string {
	return filepath.Join(filepath.FromSlash(u.Path), filepath.FromSlash(u.Query().Get("prefix")))
}
