// Package python carries the Python package disdel, so that actions and commands have it without an installation.
package python

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/disdel/disdel"
)

// sources names its files by pattern: a cache of compiled modules beside them must not get into the program.
//
//go:embed src/disdel/*.py src/disdel/py.typed
var sources embed.FS

const root = "src"

// Digest identifies the sources, as hex.
func Digest() string {
	sum := sha256.New()
	each(func(name string, data []byte) error {
		sum.Write([]byte(name + "\x00" + hex.EncodeToString(data) + "\x00"))
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))
}

// Install writes the package below a folder and returns the folder for PYTHONPATH. It writes once for each content;
// many processes may do so at the same time. It returns Invalid if the folder cannot be written, or if another user
// owns what is there.
func Install(below string) (string, error) {
	dir := filepath.Join(below, "disdel-python-"+Digest()[:16])
	err := owned(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = install(below, dir)
	}
	if err != nil {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "write the Python package to " + dir, Err: err,
			Hint: "remove the folder, or set TMPDIR to a folder of your own",
		}
	}
	return dir, nil
}

// install writes into a folder of its own first: others see the whole package or none.
func install(below, dir string) error {
	draft, err := os.MkdirTemp(below, ".disdel-python-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft) //nolint:errcheck // nothing is there after the rename
	err = each(func(name string, data []byte) error {
		path := filepath.Join(draft, filepath.FromSlash(name))
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600))
	})
	if err != nil {
		return err
	}
	if err := os.Rename(draft, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return owned(dir) // another process may have been faster
}

// owned returns nil if only this user can write to a folder: whoever else can would choose the code that runs.
func owned(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || known && int(stat.Uid) != os.Getuid() {
		return errors.New("others can write to the folder")
	}
	return nil
}

// each calls do for every file, in the order of their names.
func each(do func(name string, data []byte) error) error {
	return fs.WalkDir(sources, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		return errors.Join(err, do(filepath.ToSlash(name), data))
	})
}
