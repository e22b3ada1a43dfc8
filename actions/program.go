package actions

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
)

// Bounds of a program's archive once it is unpacked.
const (
	maxProgramFiles = 4096
	maxProgramBytes = 64 << 20
)

// programCache keeps the files of users' Python programs in a folder of the container, by the digest of their archive.
type programCache struct {
	root    string            // a folder of this process; "": none yet
	folders map[string]string // by digest
}

// folder returns the folder with a network's program, "" if the network is no program. The archive is read from the
// models at a blob URL once for each digest.
func (c *programCache) folder(ctx context.Context, models string, n disdel.Network) (string, error) {
	if n.Custom == nil || n.Custom.Python == nil {
		return "", nil
	}
	code := n.Custom.Python.Code
	if at, ok := c.folders[code]; ok {
		return at, nil
	}
	store, err := modelstore.Open(ctx, models)
	if err != nil {
		return "", err
	}
	defer store.Close()
	archive, err := store.ReadProgram(ctx, code)
	if err != nil {
		return "", err
	}
	if c.root == "" {
		if c.root, err = os.MkdirTemp("", "disdel-code-"); err != nil {
			return "", unpacking(err)
		}
		c.folders = map[string]string{}
	}
	at := filepath.Join(c.root, fmt.Sprint(len(c.folders)))
	if err := unpack(archive, at); err != nil {
		os.RemoveAll(at) //nolint:errcheck // the first error says more
		return "", err
	}
	c.folders[code] = at
	return at, nil
}

// drop removes all files.
func (c *programCache) drop() error {
	root := c.root
	*c = programCache{}
	if root == "" {
		return nil
	}
	return os.RemoveAll(root)
}

func unpacking(err error) error {
	return &disdel.Error{Kind: disdel.Unavailable, Op: "unpack program", Err: err}
}

func badArchive(format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "unpack program", Msg: fmt.Sprintf(format, args...), Hint: "submit the job again",
	}
}

// unpack writes the files of an archive below a folder. It refuses names that lead out of the folder, everything but
// plain files, and more than the bounds.
func unpack(archive []byte, to string) error {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return badArchive("the archive cannot be read: %v", err)
	}
	if len(r.File) > maxProgramFiles {
		return badArchive("the archive has %d files, the limit is %d", len(r.File), maxProgramFiles)
	}
	remaining := int64(maxProgramBytes)
	for _, f := range r.File {
		name := filepath.FromSlash(f.Name)
		switch {
		case !filepath.IsLocal(name):
			return badArchive("%q leads out of the folder", f.Name)
		case f.FileInfo().IsDir():
			continue
		case !f.Mode().IsRegular():
			return badArchive("%q is no plain file", f.Name)
		}
		n, err := unpackFile(f, filepath.Join(to, name), remaining)
		if err != nil {
			return err
		}
		if remaining -= n; remaining < 0 {
			return badArchive("the files have more than %v", disdel.Bytes(maxProgramBytes))
		}
	}
	return nil
}

// unpackFile writes one file of at most so many bytes and one more, and returns how many it has.
func unpackFile(f *zip.File, to string, maximum int64) (n int64, err error) {
	from, err := f.Open()
	if err != nil {
		return 0, badArchive("%q cannot be read: %v", f.Name, err)
	}
	defer from.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return 0, unpacking(err)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return 0, unpacking(err)
	}
	n, err = io.Copy(out, io.LimitReader(from, maximum+1))
	if err = errors.Join(err, out.Close()); err != nil {
		return n, badArchive("%q cannot be unpacked: %v", f.Name, err)
	}
	return n, nil
}
