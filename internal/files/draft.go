package files

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/disdel/disdel"
)

// Draft is a file that is written under a temporary name until Finish.
type Draft struct {
	buffer *bufio.Writer
	file   *os.File
	path   string
}

// NewDraft begins a file that must not exist yet, with the permissions of new files. It returns Conflict if it exists,
// and Invalid if it cannot be written.
func NewDraft(path string) (*Draft, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, taken(path)
	}
	for {
		own := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%08x.part", filepath.Base(path), rand.Uint32()))
		f, err := os.OpenFile(own, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil:
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "write " + path, Err: Plain(err), Hint: "name a file in a folder that is there",
			}
		}
		return &Draft{buffer: bufio.NewWriterSize(f, 1<<16), file: f, path: path}, nil
	}
}

func taken(path string) error {
	return &disdel.Error{
		Kind: disdel.Conflict, Op: "write " + path, Msg: "the file is there already",
		Hint: "name another, or remove it first",
	}
}

// unwritten is an error of the file system: NoSpace for a full disk, else Internal.
func (d *Draft) unwritten(err error) error {
	switch {
	case err == nil:
		return nil
	case DiskFull(err):
		return &disdel.Error{
			Kind: disdel.NoSpace, Op: "write " + d.path, Err: Plain(err),
			Hint: "free some space, or name a file on another disk",
		}
	default:
		return &disdel.Error{Kind: disdel.Internal, Op: "write " + d.path, Err: Plain(err), Hint: "check the disk"}
	}
}

// Write adds to the file. It returns NoSpace for a full disk.
func (d *Draft) Write(data []byte) (int, error) {
	n, err := d.buffer.Write(data)
	return n, d.unwritten(err)
}

// Finish gives the file its name. After an error nothing of it stays. It returns Conflict if another file has the name
// by now, and the errors of Write.
func (d *Draft) Finish() error {
	err := errors.Join(d.buffer.Flush(), d.file.Close())
	if err == nil {
		err = named(d.file.Name(), d.path, os.Link)
	}
	removed := os.Remove(d.file.Name())
	switch {
	case errors.Is(err, fs.ErrExist):
		return taken(d.path)
	case err != nil:
		return d.unwritten(err)
	case errors.Is(removed, fs.ErrNotExist): // it has its name alone
		return nil
	default:
		return removed
	}
}

// named gives a file a name that must be free. A link fails if the name is taken, unlike a rename. On file systems
// without links an empty file takes the name first.
func named(file, name string, link func(file, name string) error) error {
	err := link(file, name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	place, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	place.Close()
	if err := os.Rename(file, name); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// Abandon deletes the file.
func (d *Draft) Abandon() error { return errors.Join(d.file.Close(), os.Remove(d.file.Name())) }
