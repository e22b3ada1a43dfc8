// Package blobs opens the buckets that data sets and models live in: file:// folders, mem:// for tests, s3:// in
// production. It only opens: what is kept there, and under which keys, is the business of dataset and modelstore.
//
// Files are written whole or not at all (a temporary file beside the target, then a rename), without metadata files and
// without leftovers in the system's temporary folder.
package blobs

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file://
	_ "gocloud.dev/blob/memblob"  // mem://
	_ "gocloud.dev/blob/s3blob"   // s3://
	"gocloud.dev/gcerrors"

	"github.com/disdel/disdel"
)

// Open opens the bucket at a blob URL; a file:// folder is created if it is missing. It returns Invalid for a URL that
// is none, and Unavailable for a bucket that cannot be opened.
func Open(ctx context.Context, address string) (*blob.Bucket, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "open bucket", Msg: "\"" + disdel.Redacted(address) + "\" is no blob URL",
			Hint: "write file:///folder or s3://bucket?region=REGION",
		}
	}
	if u.Scheme == "file" {
		q := u.Query()
		for _, option := range []string{"create_dir", "no_tmp_dir"} {
			q.Set(option, "true")
		}
		q.Set("metadata", "skip")
		u.RawQuery = q.Encode()
	}
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "open bucket", Msg: disdel.Redacted(address), Err: withoutPassword(err, u),
			Hint: "check that the folder is writable, or the bucket and its credentials",
		}
	}
	return b, nil
}

// withoutPassword is a cause that does not repeat who signs in at an address.
func withoutPassword(err error, u *url.URL) error {
	if u.User == nil {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), u.User.String(), "xxxxx"))
}

// Wrap turns a bucket's error about key into an Error: NotFound, Denied, Conflict (the key exists already) or
// Unavailable.
func Wrap(err error, op, key string) error {
	if err == nil {
		return nil
	}
	kind := disdel.Unavailable
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		kind = disdel.NotFound
	case gcerrors.PermissionDenied:
		kind = disdel.Denied
	case gcerrors.FailedPrecondition, gcerrors.AlreadyExists:
		kind = disdel.Conflict
	case gcerrors.Canceled:
		kind = disdel.Canceled
	}
	if full(err) {
		return &disdel.Error{Kind: disdel.NoSpace, Op: op, Msg: key, Err: err, Hint: fullHint}
	}
	return &disdel.Error{Kind: kind, Op: op, Msg: key, Err: err}
}

// full tells whether the disk behind a folder is.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

const fullHint = "the disk is full: free some space, or name a folder on another disk with --home or --storage"

// Folder is the folder behind a file:// URL, "" for every other bucket.
func Folder(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return filepath.FromSlash(u.Path)
}

// Create writes a key that must not exist yet; of several that write it at once one succeeds and the others get
// Conflict. In a folder (see Folder) that takes a hard link: gocloud's own check looks first and renames later, and the
// last wins.
func Create(ctx context.Context, b *blob.Bucket, folder, key string, data []byte) error {
	if folder == "" {
		return Wrap(b.WriteAll(ctx, key, data, &blob.WriterOptions{IfNotExist: true}), "create", key)
	}
	target := filepath.Join(folder, filepath.FromSlash(key))
	err := link(target, data)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &disdel.Error{Kind: disdel.Conflict, Op: "create", Msg: key, Err: err}
	case full(err):
		return &disdel.Error{Kind: disdel.NoSpace, Op: "create", Msg: key, Err: err, Hint: fullHint}
	case err != nil:
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "create", Msg: key, Err: err,
			Hint: "check that the folder is writable",
		}
	}
	return nil
}

// link writes a temporary file beside target and gives it target's name unless something has that name.
func link(target string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(target), "*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), target)
}
