package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	return disdel.Bytes(int64(st.Bavail) * st.Bsize)
}

// Allocate fills a file with zeros that have blocks on the disk.
func Allocate(f *os.File, size int) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size))
	if errors.Is(err, unix.EOPNOTSUPP) {
		_, err = f.WriteAt(make([]byte, size), 0)
	}
	return errors.Join(err, f.Sync())
}
