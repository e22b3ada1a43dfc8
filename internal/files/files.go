package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// MaxInput limits what is read from a file or a pipe into memory before it is checked.
const MaxInput = 64 << 20

// Read is the content of a file. It returns Invalid for a file that cannot be read or is larger than MaxInput, and for
// a pipe that no program writes to.
func Read(name string) ([]byte, error) { return read(name, writerWait) }

// writerWait is how long Read waits for a program that writes to a named pipe.
const writerWait = 3 * time.Second

func read(name string, wait time.Duration) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // else to open a pipe waits until somebody writes
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Err: Plain(err), Hint: "check the file's name"}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err == nil && info.IsDir():
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Msg: "it is a folder", Hint: "name a file"}
	case err != nil || info.Mode()&fs.ModeNamedPipe == 0:
		return ReadAll(name, f)
	}
	head, err := fromWriter(f, wait)
	if errors.Is(err, errNoWriter) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + name, Err: err, Hint: "start the program that writes, or name a file",
		}
	}
	return ReadAll(name, io.MultiReader(bytes.NewReader(head), f))
}

// errNoWriter is the error for a pipe without a writer.
var errNoWriter = errors.New("it is a pipe, and no program has written to it")

// fromWriter is the first bytes of a pipe. A pipe without a writer looks like a pipe at its end, so fromWriter reads
// again until wait is over. Once there is a writer, it may take any time.
func fromWriter(pipe io.Reader, wait time.Duration) ([]byte, error) {
	over, head := time.Now().Add(wait), make([]byte, 4096)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		n, err := pipe.Read(head)
		if n > 0 || !errors.Is(err, io.EOF) {
			return head[:n], nil // an error comes again
		}
		if time.Now().After(over) {
			return nil, errNoWriter
		}
		<-again.C
	}
}

// ReadAll is the content of a stream. Errors call it name.
func ReadAll(name string, in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, MaxInput+1))
	if err == nil && len(data) > MaxInput {
		err = fmt.Errorf("it is larger than %v", disdel.Bytes(MaxInput))
	}
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + name, Err: Plain(err)}
	}
	return data, nil
}

// Plain drops the path from an error whose message has it already.
func Plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// WriteWhole writes a file to disk. Readers see the whole file or none. pattern names the temporary file.
func WriteWhole(path, pattern string, data []byte) error {
	if err := write(path, pattern, data, (*os.File).Sync); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// Replace writes a file that others may read at any time: they see the old or the new content. A symbolic link stays
// one. Only the user may read the file.
func Replace(path, pattern string, data []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return write(path, pattern, data, func(*os.File) error { return nil })
}

func write(path, pattern string, data []byte, sync func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), pattern) // readable by the user alone
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, sync(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // the first error is the one to tell
	}
	return err
}

// syncFolder writes the names of a folder to disk.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// DiskFull says whether a file could not be written because the disk is full.
func DiskFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// Free is the free space of a folder's disk in bytes, -1 if unknown.
func Free(dir string) disdel.Bytes {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return -1
	}
	return disdel.Bytes(int64(st.Bavail) * int64(st.Bsize))
}

// Allocate fills a file with zeros that have blocks on the disk.
func Allocate(f *os.File, size int) error {
	err := allocate(f, int64(size))
	if errors.Is(err, unix.EOPNOTSUPP) {
		_, err = f.WriteAt(make([]byte, size), 0)
	}
	return errors.Join(err, f.Sync())
}

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

// Named says whether path still names the open file.
func Named(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}

// Lock creates and locks the file at path. The lock belongs to the open file, not to the process: two locks in one
// process exclude each other. A former owner may remove the file between creation and lock; then Lock creates another
// one.
func Lock(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lockFile(f); err != nil {
			f.Close()
			return nil, err
		}
		if Named(f, path) {
			return f, nil
		}
		f.Close()
	}
}

// Unlock removes a locked file while it is still locked.
func Unlock(f *os.File) error {
	err := os.Remove(f.Name())
	if errors.Is(err, os.ErrNotExist) { // it has another name by now
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Held says whether Lock failed because another process has the lock.
func Held(err error) bool { return errors.Is(err, unix.EAGAIN) }

// heldOutFolders are common names of the folder of held-out files, beside train.
var heldOutFolders = []string{"test", "val", "valid", "validation"}

// TrainAndTest returns the folders of training and held-out files, each with a folder for each class. test is "" if
// there is only one of them.
func TrainAndTest(root string) (train, test string) {
	train = filepath.Join(root, "train")
	if !IsFolder(train) {
		return root, ""
	}
	for _, name := range heldOutFolders {
		if test = filepath.Join(root, name); IsFolder(test) {
			return train, test
		}
	}
	return train, ""
}

// IsFolder tells whether there is a folder at path.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Subfolders returns the names of the folders in a folder, without hidden ones and those of macOS archives. It returns
// Invalid if the folder cannot be read.
func Subfolders(root string) (names []string, err error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + root, Err: Plain(err), Hint: "check the folder's name"}
	}
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") || e.Name() == "__MACOSX"
		if !hidden && IsFolder(filepath.Join(root, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
