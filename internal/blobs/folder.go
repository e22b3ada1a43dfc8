package blobs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// folder is a bucket of files. A key is written to a temporary file beside its place and then given its name, so that a
// full disk or a crash leaves the file that was there. Links are followed: a chunk may be on another disk.
type folder struct{ root string }

func openFolder(root string) (Bucket, error) {
	return &folder{root: root}, os.MkdirAll(root, 0o777)
}

// path refuses a key that would lead out of the folder.
func (f *folder) path(key string) (string, error) {
	if !fs.ValidPath(key) || key == "." {
		return "", &fs.PathError{Op: "open", Path: key, Err: fs.ErrInvalid}
	}
	return filepath.Join(f.root, filepath.FromSlash(key)), nil
}

type fileReader struct {
	*os.File
	size int64
}

func (r *fileReader) Size() int64 { return r.size }

func (f *folder) NewReader(ctx context.Context, key string) (Reader, error) {
	path, err := f.path(key)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &fileReader{file, info.Size()}, nil
}

// draft is a temporary file that becomes its target.
type draft struct {
	*os.File
	ctx    context.Context //nolint:containedctx // a writer's whole life is one call's
	target string
}

func (f *folder) NewWriter(ctx context.Context, key string) (io.WriteCloser, error) {
	path, err := f.path(key)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	return newDraft(ctx, path)
}

func newDraft(ctx context.Context, target string) (*draft, error) {
	for again := false; ; again = true {
		if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
			return nil, err
		}
		file, err := os.CreateTemp(filepath.Dir(target), "*"+draftSuffix)
		if errors.Is(err, fs.ErrNotExist) && !again { // somebody removed the folder, which was empty, a moment ago
			continue
		}
		if err != nil {
			return nil, err
		}
		return &draft{file, ctx, target}, nil
	}
}

// draftSuffix ends the names of temporary files, which are no keys.
const draftSuffix = ".tmp"

func (d *draft) Close() error { return d.finish(replace) }

// replace renames a file. An empty folder in its place is no key, and gives way.
func replace(from, to string) error {
	err := os.Rename(from, to)
	if info, _ := os.Lstat(to); err != nil && info != nil && info.IsDir() && os.Remove(to) == nil {
		return os.Rename(from, to)
	}
	return err
}

// finish gives the file its target's name, by a way that may refuse one that exists. The content is on the disk first:
// a file that has its name after a power failure is whole.
func (d *draft) finish(name func(from, to string) error) error {
	defer os.Remove(d.Name()) //nolint:errcheck // after a rename it is gone
	err := errors.Join(d.Chmod(0o644), d.Sync(), d.File.Close(), d.ctx.Err())
	if err != nil {
		return err
	}
	return name(d.Name(), d.target)
}

// Create takes a hard link, which unlike a rename fails where the target is.
func (f *folder) Create(ctx context.Context, key string, data []byte) error {
	path, err := f.path(key)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	d, err := newDraft(ctx, path)
	if err != nil {
		return err
	}
	_, err = d.Write(data)
	return errors.Join(err, d.finish(func(from, to string) error {
		if err != nil {
			return nil // nothing of it shall be there
		}
		return os.Link(from, to)
	}))
}

func (f *folder) Size(ctx context.Context, key string) (int64, error) {
	path, err := f.path(key)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if info.IsDir() {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
	}
	return info.Size(), nil
}

func (f *folder) Delete(ctx context.Context, key string) error {
	path, err := f.path(key)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	return os.Remove(path)
}

// List passes over what it may not read and what vanishes while it looks.
func (f *folder) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		err := f.walk(ctx, prefix, func(key string, entry fs.DirEntry) error {
			if entry.IsDir() {
				return nil
			}
			info, err := entry.Info()
			if absent(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if !yield(Object{key, info.Size(), info.ModTime()}, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Object{}, err)
		}
	}
}

// walk visits what begins with prefix, in the order of names, folders before what is in them.
func (f *folder) walk(ctx context.Context, prefix string, visit func(key string, entry fs.DirEntry) error) error {
	start := f.root
	if at := strings.LastIndexByte(prefix, '/'); at > 0 {
		below, err := f.path(prefix[:at])
		if err != nil {
			return err
		}
		start = below
	}
	return filepath.WalkDir(start, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err == nil && path == f.root || absent(err):
			return nil
		case err != nil: // a list that ends here would pass for the whole
			return err
		}
		name, err := filepath.Rel(f.root, path)
		if err != nil {
			return err
		}
		key := filepath.ToSlash(name)
		switch begins := strings.HasPrefix(key, prefix); {
		case entry.IsDir() && !begins && !strings.HasPrefix(prefix, key+"/"):
			return fs.SkipDir
		case !begins || strings.HasSuffix(key, draftSuffix):
			return nil
		}
		return visit(key, entry)
	})
}

// absent tells whether an error says that a path is not there, or not to be read: no key is lost with it.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ENAMETOOLONG)
}

func (f *folder) Folders(ctx context.Context, prefix string) ([]string, error) {
	var out []string
	err := f.walk(ctx, prefix, func(key string, entry fs.DirEntry) error {
		if !entry.IsDir() {
			return nil
		}
		out = append(out, strings.TrimPrefix(key, prefix))
		return fs.SkipDir
	})
	return out, err
}
