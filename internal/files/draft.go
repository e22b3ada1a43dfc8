package files

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/disdel/disdel"
)

// Draft is a file that is being written under a name of its own, until it is whole.
type Draft struct {
	*bufio.Writer
	file *os.File
	path string
}

// NewDraft begins a file that must not exist yet. It returns Conflict where it does, and Invalid where none can be
// written.
func NewDraft(path string) (*Draft, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, taken(path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "write " + path, Err: Plain(err), Hint: "name a file in a folder that is there",
		}
	}
	return &Draft{Writer: bufio.NewWriterSize(f, 1<<16), file: f, path: path}, nil
}

func taken(path string) error {
	return &disdel.Error{
		Kind: disdel.Conflict, Op: "write " + path, Msg: "the file is there already", Hint: "name another, or remove it first",
	}
}

// Finish gives the file its name. Where that cannot be done nothing of it stays.
func (d *Draft) Finish() error {
	err := errors.Join(d.Flush(), d.file.Chmod(0o644), d.file.Close())
	if err == nil {
		err = os.Link(d.file.Name(), d.path) // unlike a rename it fails where somebody wrote one meanwhile
	}
	removed := os.Remove(d.file.Name())
	switch {
	case errors.Is(err, fs.ErrExist):
		return taken(d.path)
	case err != nil:
		return &disdel.Error{Kind: disdel.Internal, Op: "write " + d.path, Err: Plain(err), Hint: "check the disk"}
	default:
		return removed
	}
}

// Abandon leaves nothing of the file.
func (d *Draft) Abandon() error { return errors.Join(d.file.Close(), os.Remove(d.file.Name())) }
