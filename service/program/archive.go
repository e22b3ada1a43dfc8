package program

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// MaxArchive limits the files of a program, together. Data belongs into a data set.
const MaxArchive = 8 << 20

// pack is the zip archive of the program's files. The same files give the same bytes: it has no times, no compression
// and one order.
func (d *description) pack(n needs) ([]byte, error) {
	base, names := filepath.Dir(d.source), n.Files
	if info, err := os.Stat(d.source); err == nil && info.IsDir() {
		base = d.source
		if names, err = filesOf(base); err != nil {
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: d.op(), Err: err}
		}
	}
	slices.Sort(names)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	total := 0
	for _, name := range names {
		data, err := readRegular(filepath.Join(base, name))
		if err != nil {
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: d.op(), Msg: "its file " + name + " cannot be read", Err: err}
		}
		if total += len(data); total > MaxArchive {
			return nil, d.invalid(
				fmt.Sprintf("its files have more than %v, with %s", disdel.Bytes(MaxArchive), name),
				"name a file or a smaller folder, and put data into a data set")
		}
		if err := store(w, filepath.ToSlash(name), data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func store(w *zip.Writer, name string, data []byte) error {
	f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return err
}

// readRegular reads at most what an archive may have: a device or a pipe has no end.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxArchive+1))
}

// filesOf lists a folder's files without hidden ones, caches and virtual environments.
func filesOf(base string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == base:
			return err
		case d.IsDir() && leftOut(path, d.Name()):
			return fs.SkipDir
		case d.IsDir() || leftOut(path, d.Name()):
			return nil
		}
		name, err := filepath.Rel(base, path)
		names = append(names, name)
		return err
	})
	return names, err
}

func leftOut(path, name string) bool {
	if strings.HasPrefix(name, ".") || name == "__pycache__" || strings.HasSuffix(name, ".pyc") || name == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "pyvenv.cfg"))
	return err == nil // a virtual environment by any name
}

// digest identifies an archive: "sha256:" and hex.
func digest(archive []byte) string {
	sum := sha256.Sum256(archive)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// unpack writes an archive that pack made.
func unpack(archive []byte, dir string) error {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return err
	}
	return os.CopyFS(dir, r)
}
